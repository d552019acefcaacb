package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

type change struct {
	Files []string `json:"files"`
}

type report struct {
	Found []string `json:"found"`
	Merge bool     `json:"merge"`
}

type look struct {
	File string `json:"file"`
}

func see(_ context.Context, _ *tool.Call, in look) (string, error) {
	switch in.File {
	case "bad":
		return "", errors.New("it is torn")
	case "long":
		return "", agent.Errorf(agent.CodeTooLarge, "it has 900 pages")
	}
	return in.File + " is fine", nil
}

// stage returns an environment for a flow with the tool look.
func stage(t *testing.T, f flow.Flow, o testsuite.Options) *testsuite.Env {
	o.Worker = &worker.Options{Flows: []flow.Flow{f}, Tools: []tool.Tool{tool.New("look", "Looks at a file.", see, nil)}}
	return testsuite.New(t, &o)
}

func with(o flow.Options) *flow.Options {
	o.Tools = []string{"look"}
	return &o
}

func review(c flow.Context, in change) (report, error) {
	found, err := flow.Map(c, "file", in.Files, func(c flow.Context, file string) (string, error) {
		return flow.Tool[string](c, "look", look{file}, nil)
	}, &flow.MapOptions{Width: 2})
	if err != nil {
		return report{}, err
	}
	merge, err := flow.Ask[bool](c, "Merge it?", nil)
	if err != nil {
		return report{}, err
	}
	n, err := flow.Do(c, "count", func(context.Context, *tool.Call) (int, error) { return len(found), nil }, nil)
	if err != nil {
		return report{}, err
	}
	if n != len(found) {
		return report{}, errors.New("counted wrongly")
	}
	return report{Found: flow.Values(found), Merge: merge}, nil
}

func TestToolsAPersonAndCode(t *testing.T) {
	s := stage(t, flow.New("review", review, with(flow.Options{})), testsuite.Options{})
	run := s.Start("review", `{"files":["a.go","b.go","c.go"]}`, nil)
	r := run.Suspended().Requests[0]
	require.Equal(t, "ask", r.Step)
	require.Equal(t, []string{"yes", "no"}, r.Choices)
	run.Answer("yes")
	require.JSONEq(t, `{"found":["a.go is fine","b.go is fine","c.go is fine"],"merge":true}`, string(run.Completed().Output))
}

// A run of a flow whose function fails says how and where (OA-109).
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(flow.Context, string) (string, error)
		code agent.Code
		says string
	}{
		"an error":      {func(flow.Context, string) (string, error) { return "", errors.New("no flour") }, agent.CodeFlowFailed, "no flour"},
		"a code":        {func(flow.Context, string) (string, error) { return "", agent.Errorf(agent.CodeDenied, "not today") }, agent.CodeDenied, "not today"},
		"a step":        {func(c flow.Context, _ string) (string, error) { return flow.Tool[string](c, "look", look{"bad"}, nil) }, agent.CodeStepFailed, "step look (look): failed: it is torn"},
		"no such tool":  {func(c flow.Context, _ string) (string, error) { return flow.Tool[string](c, "sing", nil, nil) }, agent.CodeUnknownTool, "Tool not found: sing"},
		"no such agent": {func(c flow.Context, _ string) (string, error) { return flow.Agent[string](c, "boss", "go", nil) }, agent.CodeUnknownAgent, "Agent not found: boss"},
		"no such model": {func(c flow.Context, _ string) (string, error) {
			return flow.Generate[string](c, "", flow.Prompt{Model: "other/model", Text: "go"})
		}, agent.CodeUnknownModel, `the model "other/model" is not among the flow's Options.Models`},
		"too few items": {func(c flow.Context, _ string) (string, error) {
			_, err := flow.Map(c, "page", []string{"a"}, func(flow.Context, string) (string, error) { return "", nil }, &flow.MapOptions{Need: 2})
			return "", err
		}, agent.CodeJoinFailed, "page: there are 1 items, and 2 successes are needed"},
		"the first failure of a map": {func(c flow.Context, _ string) (string, error) {
			_, err := flow.Map(c, "page", []string{"bad"}, func(c flow.Context, file string) (string, error) {
				return flow.Tool[string](c, "look", look{file}, nil)
			}, nil)
			return "", err
		}, agent.CodeStepFailed, "page.1: step page.1/look (look): failed: it is torn"},
		"a result that does not fit": {func(c flow.Context, _ string) (string, error) {
			n, err := flow.Tool[int](c, "look", look{"a"}, nil)
			return fmt.Sprint(n), err
		}, agent.CodeBadOutput, "step look: \"a is fine\" is no int"},
		"a panic": {func(c flow.Context, _ string) (string, error) {
			var none []string
			return none[3], nil
		}, agent.CodeFlowFailed, "flow_test.go"},
		"a panic in a branch": {func(c flow.Context, _ string) (string, error) {
			return "", flow.Parallel(c, flow.Branch{Name: "a", Do: func(flow.Context) error { panic("oh") }})
		}, agent.CodeFlowFailed, "the flow panicked: oh"},
		"a wait for nothing": {func(c flow.Context, _ string) (string, error) { select {} }, agent.CodeStuck, "flow_test.go"},
		"a go statement": {func(c flow.Context, _ string) (string, error) {
			done := make(chan error)
			go func() {
				defer func() { done <- fmt.Errorf("%v", recover()) }()
				_ = flow.Sleep(c, time.Hour)
			}()
			return "", <-done
		}, agent.CodeFlowFailed, "outside of its branch"},
		"the input": {nil, agent.CodeInvalidInput, "does not fit"},
		"a code around a step": {func(c flow.Context, _ string) (string, error) {
			_, err := flow.Tool[string](c, "look", look{"bad"}, nil)
			return "", agent.Errorf(agent.CodeDenied, "not with this file: %w", err)
		}, agent.CodeDenied, "not with this file: step look"},
	} {
		t.Run(name, func(t *testing.T) {
			f := flow.New("baker", c.do, with(flow.Options{}))
			if c.do == nil {
				f = flow.New("baker", func(flow.Context, int) (string, error) { return "", nil }, nil)
			}
			out := stage(t, f, testsuite.Options{}).Start("baker", "go", nil).Ended()
			require.Equal(t, agent.StatusFailed, out.Status)
			require.Equal(t, c.code, out.Error.Code, out.Error.Message)
			require.Contains(t, out.Error.Message, c.says)
		})
	}
}

// A result has to fit the schema of the flow's options, as JSON or as a text (OA-109).
func TestResultsThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ output, result, why string }{
		{`{"type":"object","required":["n"]}`, `{"n":1}`, ""},
		{`{"type":"object","required":["n"]}`, `{}`, `required: missing properties: ["n"]`},
		{`{"type":"string"}`, `{}`, `type: map[] has type "object", want "string"`},
	} {
		f := flow.New("f", func(flow.Context, string) (json.RawMessage, error) { return json.RawMessage(c.result), nil }, &flow.Options{Output: json.RawMessage(c.output)})
		r := testsuite.Rehearse(t, f, "", nil)
		if c.why == "" {
			require.NoError(t, r.Err)
			continue
		}
		require.ErrorIs(t, r.Err, agent.CodeBadOutput)
		require.EqualError(t, r.Err, "the result does not fit the flow's output: "+c.why)
	}
	for text, fits := range map[string]bool{"low": true, "middling": false} {
		f := flow.New("f", func(flow.Context, string) (string, error) { return text, nil }, &flow.Options{Output: json.RawMessage(`{"enum":["low","high"]}`)})
		r := testsuite.Rehearse(t, f, "", nil)
		require.Equal(t, fits, r.Err == nil, "%s: %v", text, r.Err)
	}
}

// A flow reads the code with which a tool has failed, in a run and in a rehearsal (PA-85).
func TestAToolsCode(t *testing.T) {
	f := flow.New("weigh", func(c flow.Context, _ string) (string, error) {
		_, err := flow.Tool[string](c, "look", look{"long"}, nil)
		if !errors.Is(err, agent.CodeTooLarge) {
			return "", fmt.Errorf("the code is lost: %w", err)
		}
		return err.Error(), nil
	}, with(flow.Options{}))
	const want = "step look (look): failed: it has 900 pages"
	require.Equal(t, want, stage(t, f, testsuite.Options{}).Start("weigh", "go", nil).Completed().Text)
	r := testsuite.Rehearse(t, f, "go", func(testsuite.RehearsedStep) (any, error) { return see(t.Context(), nil, look{"long"}) })
	require.NoError(t, r.Err)
	require.Equal(t, want, r.Text)
}

// Branches go on independently: who waits for a person keeps nobody waiting. Needs decide when
// a fan-out is over; what is left is dropped.
func TestNeeds(t *testing.T) {
	files := []string{"a", "bad", "c", "d"}
	for name, c := range map[string]struct {
		need flow.Need
		want string
		err  string
	}{
		"all":      {flow.All, "a is fine, failed, dropped, dropped", "file.2: step file.2/look (look): failed: it is torn"},
		"collect":  {flow.Collect, "a is fine, failed, c is fine, d is fine", ""},
		"two":      {2, "a is fine, failed, c is fine, dropped", ""},
		"too many": {4, "a is fine, failed, dropped, dropped", "file: 1 of 4 have succeeded, and 4 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			do := func(c flow.Context, _ string) (string, error) {
				items, err := flow.Map(c, "file", files, func(c flow.Context, file string) (string, error) {
					return flow.Tool[string](c, "look", look{file}, nil)
				}, &flow.MapOptions{Width: 1, Need: c2need(name)})
				var got []string
				for i, item := range items {
					switch {
					case errors.Is(item.Err, flow.ErrDropped):
						got = append(got, "dropped")
					case item.Err != nil:
						got = append(got, "failed")
					default:
						got = append(got, items[i].Out)
					}
				}
				if err != nil {
					got = append(got, err.Error())
				}
				return strings.Join(got, ", "), nil
			}
			needs[name] = c.need
			out := stage(t, flow.New("baker", do, with(flow.Options{})), testsuite.Options{}).Start("baker", "go", nil).Completed()
			require.True(t, strings.HasPrefix(out.Text, c.want), out.Text)
			require.Contains(t, out.Text, c.err)
		})
	}
}

var needs = map[string]flow.Need{}

func c2need(name string) flow.Need { return needs[name] }

// A step waits for an event or a time; so do several at once.
func TestWaits(t *testing.T) {
	do := func(c flow.Context, _ string) (string, error) {
		var got []string
		err := flow.Parallel(c,
			flow.Branch{Name: "news", Do: func(c flow.Context) error {
				e, err := flow.Wait(c, agent.Conditions{Event: &agent.EventCondition{Topic: "news"}}, nil)
				got = append(got, string(e.Payload))
				return err
			}},
			flow.Branch{Name: "late", Do: func(c flow.Context) error {
				began := flow.Now(c)
				err := flow.Sleep(c, 100*24*time.Hour)
				got = append(got, flow.Now(c).Sub(began).Truncate(time.Hour).String())
				return err
			}})
		return strings.Join(got, " then "), err
	}
	s := stage(t, flow.New("sleeper", do, nil), testsuite.Options{})
	run := s.Start("sleeper", "go", nil)
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	run.Emit("news", map[string]int{"n": 1})
	require.Len(t, run.Suspended().Waits, 1)
	s.FastForward(100 * 24 * time.Hour)
	require.Equal(t, `{"n":1} then 2400h0m0s`, run.Completed().Text)
}

// An approval of something that is no tool call.
func TestApprove(t *testing.T) {
	do := func(c flow.Context, _ string) (flow.Decision, error) {
		return flow.Approve(c, "Pay 5 EUR?", map[string]int{"eur": 5}, &flow.ApproveOptions{Deadline: 7 * 24 * time.Hour})
	}
	f := flow.New("payer", do, nil)
	run := stage(t, f, testsuite.Options{}).Start("payer", "go", nil)
	r := run.Suspended().Requests[0]
	require.Equal(t, agent.RequestApproval, r.Type)
	require.Equal(t, "Pay 5 EUR?", r.Text)
	require.NotEmpty(t, r.Digest)
	run.Approve()
	require.Contains(t, string(run.Completed().Output), `"Approved":true`)

	s := stage(t, f, testsuite.Options{})
	run = s.Start("payer", "go", nil)
	run.Suspended()
	s.FastForward(7 * 24 * time.Hour)
	require.Contains(t, string(run.Completed().Output), `"Expired":true`)
}

// A pause, an interrupt and a resume run nothing twice.
func TestHolds(t *testing.T) {
	var counted atomic.Int32
	do := func(c flow.Context, _ string) (int, error) {
		n := 0
		for range 3 {
			if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
				return 0, err
			}
			k, err := flow.Do(c, "count", func(context.Context, *tool.Call) (int, error) { return int(counted.Add(1)), nil }, nil)
			if err != nil {
				return 0, err
			}
			n += k
		}
		return n, nil
	}
	run := stage(t, flow.New("counter", do, nil), testsuite.Options{}).Start("counter", "go", nil)
	for range 3 {
		run.Suspended()
		run.Interrupt()
		run.Answer("yes")
		run.Resume()
	}
	require.Equal(t, "6", string(run.Completed().Output))
	require.EqualValues(t, 3, counted.Load())
}

// A scope with a dot in its name is no item of a fan-out.
func TestScopesWithDots(t *testing.T) {
	f := flow.New("f", func(c flow.Context, _ string) (string, error) {
		ask := func(c flow.Context, name string) (string, error) {
			return flow.Ask[string](c, name, &flow.AskOptions{Name: "ask"})
		}
		_, err := flow.Map(c, "m", []string{"item"}, ask, nil)
		if err != nil {
			return "", err
		}
		return "", flow.Scope(c, "m.1", func(c flow.Context) error { _, err := ask(c, "scope"); return err })
	}, nil)
	r := testsuite.Rehearse(t, f, "go", func(testsuite.RehearsedStep) (any, error) { return "x", nil })
	require.Len(t, r.Steps, 2)
	require.Equal(t, "m_1/ask", r.Steps[1].Path)
}

type ownText struct{ n int }

func (o *ownText) UnmarshalText(text []byte) (err error) {
	o.n = len(text)
	return nil
}

// A start whose input does not fit the function's type is refused before the function runs: the error
// says which key is wrong, and what is expected.
func TestWrongInput(t *testing.T) {
	type order struct {
		Number int       `json:"number"`
		Items  []look    `json:"items,omitempty"`
		Due    time.Time `json:"due,omitzero"`
	}
	ran := false
	f := flow.New("orders", func(_ flow.Context, in order) (string, error) { ran = true; return fmt.Sprint(in.Number), nil }, nil)
	for input, want := range map[string]string{
		`{"number": "x"}`:                         `the flow orders: number: type: x has type "string", want "integer"; it has to fit this schema: {"type":"object","properties":{"number"`,
		`{"items": [], "number": 1, "numbr": 2}`:  `"numbr"`,
		`{}`:                                      `missing properties: ["number"]`,
		`{"number": 1, "items": [{"file": 7}]}`:   `items[].file: type: 7 has type "integer", want "string"`,
		`hello`:                                   "it is not JSON",
		`{"number": 1, "due": "tomorrow"}`:        "parsing time",
		`{"number": 1, "items": [{"file": "a"}]}`: "", `{"number": 1, "due": "2027-01-31T09:00:00Z"}`: "",
	} {
		ran = false
		s := stage(t, f, testsuite.Options{})
		o := s.Start("orders", input, nil).Ended()
		if want == "" {
			require.Equal(t, "1", o.Text, "%s: %+v", input, o.Error)
			require.NoError(t, f.CheckInput(input))
			continue
		}
		require.Equal(t, agent.StatusFailed, o.Status, input)
		require.Equal(t, agent.CodeInvalidInput, o.Error.Code)
		require.Contains(t, o.Error.Message, want, input)
		require.Zero(t, o.Turns)
		require.False(t, ran)
		require.ErrorIs(t, f.CheckInput(input), agent.CodeInvalidInput)
	}
	// A type that reads its JSON by itself takes what it takes: its schema says what it is made of.
	own := flow.New("own", func(_ flow.Context, in map[string]ownText) (string, error) { return fmt.Sprint(in["a"].n), nil }, nil)
	require.Equal(t, "3", stage(t, own, testsuite.Options{}).Start("own", `{"a": "abc"}`, nil).Completed().Text)
	// A flow with a text as its input takes any.
	text := flow.New("text", func(_ flow.Context, in string) (string, error) { return in, nil }, nil)
	require.Equal(t, "{", stage(t, text, testsuite.Options{}).Start("text", `{`, nil).Completed().Text)
}
