package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
	"github.com/fermata-agents/fermata/testsuite/eval/stats"
)

// of makes an evaluation from the states of its cases' trials: p, f, e (error) and l (left
// out). A dot is a trial that has not ended.
func of(minRate float64, ended bool, cases ...string) *eval.Evaluation {
	s := &eval.Suite{Name: "s", Agent: "a", MinPassRate: &minRate}
	e := &eval.Evaluation{Info: eval.Info{ID: "s-1", Suite: "s"}, Definition: s, Progress: eval.Progress{Ended: ended}, Started: time.Unix(0, 0)}
	states := map[rune]eval.State{'p': eval.StatePassed, 'f': eval.StateFailed, 'e': eval.StateError, 'l': eval.StateLeftOut}
	for i, text := range cases {
		name := fmt.Sprintf("c%d", i)
		s.Cases = append(s.Cases, eval.Case{Name: name, Trials: len(text), Graders: []grade.Spec{{Exact: "x"}}})
		for n, r := range text {
			if r != '.' {
				e.Trials = append(e.Trials, eval.Trial{Counts: eval.Counts{Case: name, N: n + 1, State: states[r], Cost: 100}, RunCost: 60, Turns: 2, Duration: agent.Second})
			}
		}
	}
	return e
}

// A case is decided as soon as no other trial could change it.
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		rate  float64
		ended bool
		cases []string
		want  State
	}{
		{1, true, []string{"ppp", "p"}, StatePassed},
		{1, true, []string{"ppf"}, StateFailed},
		{0.6, true, []string{"ppf"}, StatePassed},
		{0.7, true, []string{"ppf"}, StateFailed},
		{1, true, []string{"pel", "pp"}, StateError},
		{1, true, []string{"ppl"}, StateLeftOut},
		{1, true, []string{"fel"}, StateFailed},
		{0.5, true, []string{"ppll"}, StateLeftOut}, // its case passed, and the suite was cut
		{0.5, true, []string{"ppee"}, StatePassed},
		{1, true, []string{"e", "f", "l"}, StateFailed},
		{1, false, []string{"p."}, StateRunning},
		{0, true, []string{"ff"}, StatePassed},
		{0, true, []string{"ll"}, StateLeftOut},
	} {
		require.Equal(t, tt.want, Of(of(tt.rate, tt.ended, tt.cases...)).State, "%+v", tt)
	}
}

func TestNumbers(t *testing.T) {
	r := Of(of(0.5, true, "pppff", "ppppp"))
	c := r.Cases[0]
	require.InDelta(t, 0.6, c.Rate.Rate, 1e-12)
	require.Equal(t, stats.Wilson(3, 5), c.Rate.Interval)
	require.Equal(t, []int{1, 5}, []int{c.K[0].K, c.K[1].K})
	require.InDelta(t, 1.0, c.K[1].At.Rate, 1e-12)
	require.InDelta(t, 0.0, c.K[1].Hat.Rate, 1e-12)
	require.InDelta(t, 0.8, r.K[0].At.Rate, 1e-12)
	require.InDelta(t, 0.5, r.K[1].Hat.Rate, 1e-12)
	require.Equal(t, []agent.USD{1000, 600, 100}, []agent.USD{r.Cost, r.RunCost, c.Cost})
	require.InDelta(t, 2.0, c.Turns, 1e-12)
	require.Equal(t, agent.Second, c.Duration)

	var lines bytes.Buffer
	for _, trial := range r.Trials() {
		require.NoError(t, json.NewEncoder(&lines).Encode(struct {
			Type string `json:"type"`
			eval.Trial
		}{"trial", trial}))
	}
	require.NoError(t, json.NewEncoder(&lines).Encode(r))
	again, err := Parse(lines.Bytes())
	require.NoError(t, err)
	again.Started = r.Started
	require.Equal(t, r, again)
	for _, text := range []string{"", "{", `{"type":"outcome"}`} {
		_, err := Parse([]byte(text))
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
}

func TestCompare(t *testing.T) {
	// One trial each: McNemar's test, of 6 that became better.
	d := Compare(Of(of(1, true, "f", "f", "f", "f", "f", "f", "p")), Of(of(1, true, "p", "p", "p", "p", "p", "p", "p", "p")))
	require.Equal(t, []any{stats.MethodMcNemar, 7, Better}, []any{d.Method, d.Pairs, d.Verdict})
	require.InDelta(t, 0.03125, d.P, 1e-12)
	require.Equal(t, Unpaired, d.Cases[7].Verdict)
	require.Nil(t, d.Cases[7].Before)
	for _, one := range d.Cases {
		require.NotEqual(t, Better, one.Verdict, "a single trial says nothing")
	}
	// Several: the permutation test, and Fisher's for each case.
	d = Compare(Of(of(1, true, "pppppppp", "pppp")), Of(of(1, true, "ffffffff", "pppl")))
	require.Equal(t, stats.MethodSignFlip, d.Method)
	require.Equal(t, Worse, d.Cases[0].Verdict)
	require.InDelta(t, 2*2.0/12870, d.Cases[0].P, 1e-9, "adjusted for two cases")
	require.Equal(t, []any{Chance, 3}, []any{d.Cases[1].Verdict, d.Cases[1].After.Trials})
	require.Equal(t, Chance, d.Verdict, "one of two cases may be chance")
	require.True(t, d.Worse(), "a case became worse")
	require.Equal(t, 0, Compare(Of(of(1, true, "l")), Of(of(1, true, "p"))).Pairs)
	stopped := of(1, true, "pl", "p")
	stopped.Trials[1].Cost, stopped.Trials[2].Cost = 5000, 300
	require.EqualValues(t, 200, Compare(Of(stopped), Of(stopped)).CostBefore, "a trial that was left out does not count")
}

// What models write does not become markup, nor does it turn the text around it.
func TestHostileTexts(t *testing.T) {
	e := of(1, true, "f")
	hostile := "</testcase><script>x()</script>]]>{{.}}\x00\x1b[31m\u202e\u2066\ufeff\xff&\"'"
	e.Label = hostile
	e.Trials[0].Text, e.Trials[0].Why, e.Trials[0].Reason, e.Trials[0].Model, e.Trials[0].Tools = hostile, hostile, hostile, hostile, []string{hostile}
	e.Trials[0].Verdicts = []grade.Verdict{{Grader: hostile, Reason: hostile, Model: hostile}, {Grader: "x", Error: agent.Errorf(agent.CodeInternal, "%s", hostile)}}
	e.Trials[0].Answers = []eval.Answer{{Text: hostile, Refused: hostile}}
	var page, junit bytes.Buffer
	require.NoError(t, Of(e).HTML(&page))
	require.NotContains(t, page.String(), "<script")
	require.NotRegexp(t, `[\x00\x1b\x{202e}\x{2066}\x{feff}]`, page.String())
	require.Equal(t, 1, strings.Count(page.String(), "</body>"))
	require.Greater(t, strings.Count(page.String(), "&lt;script&gt;"), 9, "each of them is shown")
	require.NoError(t, Of(e).JUnit(&junit))
	d := xml.NewDecoder(&junit)
	elements := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	require.Equal(t, map[string]int{"testsuite": 1, "testcase": 1, "failure": 1}, elements)
}
