package eval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

const suiteText = `
name: refunds
agent: clerk
trials: 3
min_pass_rate: 0.5
timeout: 2m
person: {rules: [{type: approval, approve: true}]}
graders: [{status: completed}]
cases:
  # The first.
  - {name: small, input: Refund order 7, graders: [{contains: [refunded]}]}
  - {name: data, agent: flow, input: {order: 7}, trials: 1, min_pass_rate: 1, person: {model: acme/user, goal: a refund}, graders: [{judge: {model: acme/judge, rubric: polite}}]}
`

// A case has what the suite says for all, unless it says something else.
func TestRead(t *testing.T) {
	s, err := Read([]byte(suiteText))
	require.NoError(t, err)
	small, data := s.Complete(0), s.Complete(1)
	require.Equal(t, []any{"clerk", 3, 0.5, "Refund order 7"}, []any{small.Agent, small.Trials, *small.MinPassRate, small.Task()})
	require.Len(t, small.Graders, 2)
	require.True(t, small.Person.Rules[0].Approve)
	require.Equal(t, []any{"flow", 1, 1.0, `{"order":7}`}, []any{data.Agent, data.Trials, *data.MinPassRate, data.Task()})
	require.Equal(t, 4, s.Total())
	require.Equal(t, 4, s.Parallel())
	whole := s.WithDefaults()
	require.Equal(t, []any{4, s.Timeout, 0}, []any{whole.AtOnce, whole.Timeout, s.AtOnce}, "an evaluation records what it runs with")
	require.Equal(t, defaultTimeout, (&Suite{}).WithDefaults().Timeout)
	require.Equal(t, []string{"acme/user", "acme/judge"}, s.Models())
	require.Len(t, s.Cases[0].Graders, 1, "the suite itself stays as it is written")
}

func TestSuitesThatAreRefused(t *testing.T) {
	one := "name: a\nagent: b\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n"
	_, err := Read([]byte(one))
	require.NoError(t, err)
	for text, says := range map[string]string{
		"":                            "the suite is empty",
		"[":                           "not YAML",
		"a\n":                         "must be",
		"name: A B\n":                 "name is \"A B\"",
		"name: a\n":                   "cases is missing",
		one + "at_once: 101\n":        "at_once is 101",
		one + "per_minute: -1\n":      "per_minute is negative",
		one + "k: [0]\n":              "k has 0",
		one + "budget: {usd: 1}\n":    "budget.usd is not known here",
		one + "min_pass_rate: 1.5\n":  "min_pass_rate is 1.5",
		one + "limits: {turns: -1}\n": "limits",
		one + "graders: [{exact: a, regex: b}]\n":        "this one has 2",
		one + "person: {model: m}\n":                     "person.goal is missing",
		strings.ReplaceAll(one, "exact: z", "exatc: z"):  "cases[0].graders[0].exatc is not known here",
		strings.ReplaceAll(one, "input: y", "trials: 2"): "input is missing",
		strings.ReplaceAll(one, "agent: b\n", ""):        "cases[0].agent",
		"name: a\nagent: b\ntrials: 600\ncases: [{name: x, input: y, graders: [{exact: z}]}, {name: w, input: y, graders: [{exact: z}]}]\n":                                                                            "1200 trials",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n": "", // bounded by the reader or by the size
	} {
		_, err := Read([]byte(text))
		require.Error(t, err, text)
		require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge}, agent.CodeOf(err), text)
		require.ErrorContains(t, err, says, text)
	}
}

// A case of a recorded run asks for the same path and end, and the suite keeps its comments.
func TestAppend(t *testing.T) {
	c, left := FromRun("big", "clerk", "s-1", &grade.Facts{
		Task: "7", Status: agent.StatusCompleted, Text: "Refunded: 12 EUR", Calls: []grade.Call{{Tool: "lookup"}, {Tool: "pay"}},
		Requests: []grade.Request{{Type: agent.RequestApproval, Tool: "pay", Decision: "approve"}, {Type: agent.RequestQuestion, Text: "Why?", Decision: "answer"}, {Type: agent.RequestQuestion}},
	})
	require.Equal(t, []string{`the answer to "Why?": add a rule under person`}, left)
	text, err := Append([]byte(suiteText), "unused", c)
	require.NoError(t, err)
	require.Contains(t, string(text), "# The first.")
	s, err := Read(text)
	require.NoError(t, err)
	added := s.Cases[2]
	require.Equal(t, []any{"7", "s-1", "clerk"}, []any{added.Task(), added.Session, added.Agent})
	require.Equal(t, []string{"lookup", "pay"}, added.Graders[1].Calls.Exactly)
	require.Equal(t, grade.Exact("Refunded: 12 EUR"), added.Graders[2].Exact)
	require.Equal(t, []PersonRule{{Type: agent.RequestApproval, Tool: "pay", Times: 1, Approve: true}}, added.Person.Rules)

	fresh, err := Append(nil, "new", Case{Name: "x", Agent: "a", Input: json.RawMessage(`"y"`), Graders: []grade.Spec{{Exact: "z"}}})
	require.NoError(t, err)
	require.Equal(t, "name: new\ncases:\n    - name: \"x\"\n      agent: \"a\"\n      input: \"y\"\n      graders:\n        - exact: \"z\"\n", string(fresh))
	_, err = Append(fresh, "new", Case{Name: "x", Agent: "a", Input: json.RawMessage(`"y"`), Graders: []grade.Spec{{Exact: "z"}}})
	require.ErrorContains(t, err, "as that of a case before it")
	_, err = Append([]byte("name: a\n"), "a", Case{Name: "x"})
	require.ErrorContains(t, err, "no list of cases")
}
