package play

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

func step(arguments string) Step {
	return Step{FlowStep: wire.FlowStep{ToolCall: agent.ToolCall{Tool: "a", Arguments: json.RawMessage(arguments)}}}
}

func said(text string) agent.Event {
	m := agent.TextMessage(agent.RoleUser, text)
	return agent.Event{Message: &m}
}

func asked(id, path string) agent.Event {
	call := agent.ToolCall{ID: id, ProviderID: path, Tool: "a", Arguments: json.RawMessage("{}")}
	return agent.Event{Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &call}}}}
}

func came(id string, r agent.ToolResult) agent.Event {
	r.Call = id
	return agent.Event{Message: &agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &r}}}}
}

func began(flow string) agent.Event {
	return agent.Event{Started: &agent.Started{Spec: &agent.Spec{Definition: agent.Definition{Name: flow}, Flow: true}}}
}

// A function that runs again sees each message where it has seen it before: after the result that
// came before it.
func TestMessagesStayWhereTheyWere(t *testing.T) {
	f := func(c *Context, _ []byte) (Done, error) {
		_, _ = c.Do("first", step("{}"))
		_, _ = c.Do(fmt.Sprintf("saw-%d", len(c.Messages())), step("{}"))
		_, _ = c.Do("ask", step("{}"))
		_, _ = c.Do(fmt.Sprintf("then-%d", len(c.Messages())), step("{}"))
		return Done{}, nil
	}
	ok := agent.ToolResult{Status: agent.CallOK}
	events := []agent.Event{began("f"), said("in"), asked("1", "first"), came("1", ok), asked("2", "saw-0"), said("hello"), came("2", ok), asked("3", "ask"), came("3", ok)}
	var kept Journal
	kept.Read(events[:2])
	p := Start(f, kept.Input, kept.Began)
	defer p.Close()
	for _, e := range events[2:] {
		kept.Read([]agent.Event{e})
		require.NoError(t, p.Run(t.Context(), time.Minute, kept.Take()))
	}
	var again Journal
	again.Read(events)
	q := Start(f, again.Input, again.Began)
	defer q.Close()
	require.NoError(t, q.Run(t.Context(), time.Minute, again.Take()))
	require.Equal(t, "then-1", p.Steps()[0].ProviderID)
	require.Equal(t, "then-1", q.Steps()[0].ProviderID)
}

func TestWhatAForkTakesOver(t *testing.T) {
	ok := agent.ToolResult{Status: agent.CallOK}
	before := func(flow string) []agent.Event {
		return []agent.Event{
			began(flow), said("in"), asked("1", "done"), came("1", ok), asked("2", "dropped"), came("2", agent.ToolResult{Status: agent.CallFailed, Dropped: true}),
			asked("3", "failed"), came("3", agent.ToolResult{Status: agent.CallFailed}),
			asked("4", "unclear"), came("4", agent.ToolResult{Status: agent.CallUnknown, Dropped: true}),
		}
	}
	inherited := func(events []agent.Event, f agent.Forked) (paths []string) {
		var j Journal
		j.Read(append(events, began("f"), agent.Event{Forked: &f}))
		for _, r := range j.Take() {
			paths = append(paths, r.Path)
		}
		return paths
	}
	require.Equal(t, []string{"done", "failed"}, inherited(before("f"), agent.Forked{}), "nobody waited for the other one")
	require.Equal(t, []string{"done"}, inherited(before("f"), agent.Forked{Retry: true}))
	require.Equal(t, []string{"failed"}, inherited(before("f"), agent.Forked{Redo: []string{"done"}}))
	require.Empty(t, inherited(before("another"), agent.Forked{}), "another agent's results are its own word")
}

// A step that was dropped, as a deploy drops an open one, is made again when the function asks for it:
// but not if nobody knows whether it had its effect, and it may not be made again.
func TestADroppedStepIsAskedForAgain(t *testing.T) {
	begun := began("f")
	begun.Started.Spec.Toolset = []agent.ToolSpec{{Name: "reads", ReadOnly: true}, {Name: "pays"}}
	again := func(tool string, o wire.StepOptions, r agent.ToolResult) (asksAgain bool, got Result) {
		call := asked("1", "step")
		call.Message.Parts[0].Call.Tool = tool
		r.Dropped = true
		var j Journal
		j.Read([]agent.Event{begun, said("in"), call, came("1", r)})
		p := Start(func(c *Context, _ []byte) (_ Done, err error) {
			got, err = c.Do("step", Step{FlowStep: wire.FlowStep{ToolCall: agent.ToolCall{Tool: tool}, StepOptions: o}})
			return Done{}, err
		}, j.Input, j.Began)
		defer p.Close()
		require.NoError(t, p.Run(t.Context(), time.Minute, j.Take()))
		return p.WaitsFor("step"), got
	}
	unknown := agent.ToolResult{Status: agent.CallUnknown, Text: "the worker was lost"}
	asksAgain, got := again("pays", wire.StepOptions{}, unknown)
	require.False(t, asksAgain, "it may have paid")
	require.Equal(t, agent.CallUnknown, got.Status)
	for name, asksAgain := range map[string]bool{
		"failed, reads":   first(again("reads", wire.StepOptions{}, agent.ToolResult{Status: agent.CallFailed})),
		"a model call":    first(again(agent.GenerateTool, wire.StepOptions{}, agent.ToolResult{Status: agent.CallFailed})),
		"has attempts":    first(again("pays", wire.StepOptions{Attempts: 2}, unknown)),
		"only reads":      first(again("reads", wire.StepOptions{}, unknown)),
		"says again":      first(again("pays", wire.StepOptions{OnUnknown: wire.UnknownAgain}, unknown)),
		"only reads here": first(again(agent.DoTool, wire.StepOptions{ReadOnly: true}, unknown)),
	} {
		require.True(t, asksAgain, name)
	}
	asksAgain, got = again("pays", wire.StepOptions{}, agent.ToolResult{Status: agent.CallFailed, Text: "it was interrupted"})
	require.False(t, asksAgain, "it may have paid before it was stopped")
	require.Equal(t, agent.CallFailed, got.Status)
	asksAgain, got = again("pays", wire.StepOptions{}, agent.ToolResult{Status: agent.CallOK, Text: "paid"})
	require.False(t, asksAgain)
	require.Equal(t, "paid", got.Text)
}

func first(asksAgain bool, _ Result) bool { return asksAgain }

func TestAResultCountsForItsArguments(t *testing.T) {
	r := Result{Inherited: true, Tool: "a", Arguments: json.RawMessage(`{"account":9007199254740993, "x":1}`)}
	require.True(t, r.countsFor(step(`{"x":1,"account":9007199254740993}`)))
	require.False(t, r.countsFor(step(`{"x":1,"account":9007199254740992}`)), "the numbers are the same only as floats")
	approved := step(`{"subject":"evil"}`)
	approved.Tool = agent.ApproveTool
	require.False(t, Result{Tool: agent.ApproveTool, Arguments: json.RawMessage(`{"subject":"good"}`)}.countsFor(approved), "something else was approved")
}

// The first success of many drops the others, in one pass.
func TestManyAreDroppedAtOnce(t *testing.T) {
	const n = 20_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	good := 0
	f := func(c *Context, _ []byte) (Done, error) {
		c.Fan("m", keys, n, func(w *Context, _ int) {
			if _, err := w.Do("a", step("{}")); err == nil {
				good++
			}
		}, func() bool { return good > 0 })
		return Done{Text: "one"}, nil
	}
	p := Start(f, nil, time.Time{})
	defer p.Close()
	require.NoError(t, p.Run(t.Context(), time.Minute, nil))
	require.NoError(t, p.Run(t.Context(), time.Minute, []Result{{Path: "m.7/a", Status: agent.CallOK}}))
	done, ended, err := p.Done()
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, "one", done.Text)
	require.Equal(t, 1, good)
}

// A function that hangs is found, among however many goroutines.
func TestTheStackOfAFunctionThatHangs(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for range 5000 {
		go func() { <-over }()
	}
	p := Start(func(*Context, []byte) (Done, error) { <-over; return Done{}, nil }, nil, time.Time{})
	err := p.Run(t.Context(), 50*time.Millisecond, nil)
	require.ErrorIs(t, err, ErrHangs)
	require.Contains(t, err.Error(), "[chan receive]")
}

// A retry makes a step that nobody knows the outcome of in the name of the run that made it first, also
// after several retries. A step with an outcome, with other arguments, or of a fork is the new run's own.
func TestWhoMadeAStepFirst(t *testing.T) {
	run := func(id string, f *agent.Forked) []agent.Event {
		e := began("f")
		e.Started.Run = id
		if f == nil {
			return []agent.Event{e, said("in")}
		}
		return []agent.Event{e, {Forked: f}}
	}
	ends := func(id, path string, status agent.CallStatus) []agent.Event {
		return []agent.Event{asked(id, path), came(id, agent.ToolResult{Status: status})}
	}
	retry := &agent.Forked{Retry: true}
	first := slices.Concat(run("1", nil), ends("1", "unknown", agent.CallUnknown), ends("2", "skipped", agent.CallSkipped), ends("3", "failed", agent.CallFailed), ends("4", "ok", agent.CallOK))
	again := slices.Concat(first, run("2", retry), ends("5", "unknown", agent.CallUnknown), ends("6", "new", agent.CallUnknown))
	for _, c := range []struct {
		name      string
		events    []agent.Event
		arguments string
		want      map[string]string
	}{
		{"the same run", first, "{}", map[string]string{"unknown": "1", "skipped": "1"}},
		{"a retry", slices.Concat(first, run("2", retry)), "{}", map[string]string{"unknown": "1", "skipped": "1"}},
		{"other arguments", slices.Concat(first, run("2", retry)), `{"a":1}`, map[string]string{}},
		{"a second retry", slices.Concat(again, run("3", retry)), "{}", map[string]string{"unknown": "1", "skipped": "1", "new": "2"}},
		{"an outcome between", slices.Concat(again, ends("7", "unknown", agent.CallFailed), run("3", retry)), "{}", map[string]string{"skipped": "1", "new": "2"}},
		{"a fork", slices.Concat(first, run("2", &agent.Forked{})), "{}", map[string]string{}},
		{"made again on purpose", slices.Concat(first, run("2", &agent.Forked{Retry: true, Redo: []string{"unknown"}})), "{}", map[string]string{"skipped": "1"}},
		{"the next run", slices.Concat(first, run("2", nil)), "{}", map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j Journal
			j.Read(c.events)
			got := map[string]string{}
			for _, path := range []string{"unknown", "skipped", "failed", "ok", "new"} {
				s := step(c.arguments)
				s.ProviderID = path
				if run := j.FirstRun(s); run != "" {
					got[path] = run
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A function that is only slow goes on where it is, with what came meanwhile.
func TestASlowFunctionIsNotStartedAgain(t *testing.T) {
	slow := make(chan struct{})
	starts := 0
	p := Start(func(c *Context, _ []byte) (Done, error) {
		starts++
		_, _ = c.Do("first", step("{}"))
		<-slow
		r, err := c.Do("second", step("{}"))
		return Done{Text: r.Text}, err
	}, nil, time.Time{})
	defer p.Close()
	require.NoError(t, p.Run(t.Context(), time.Minute, nil))
	require.Nil(t, p.Hangs())
	require.ErrorIs(t, p.Run(t.Context(), time.Millisecond, []Result{{Path: "first", Status: agent.CallOK}}), ErrHangs)
	require.ErrorIs(t, p.Run(t.Context(), time.Millisecond, []Result{{Path: "second", Status: agent.CallOK, Text: "two"}}), ErrHangs)
	require.Equal(t, 1, p.Delivered())
	close(slow)
	<-p.Hangs()
	require.NoError(t, p.Run(t.Context(), time.Minute, nil))
	d, ended, err := p.Done()
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, "two", d.Text)
	require.Equal(t, 1, starts)
}

// The goroutine of a play that was given up ends when the function comes to a step.
func TestAHangingFunctionThatWasGivenUp(t *testing.T) {
	slow := make(chan struct{})
	p := Start(func(c *Context, _ []byte) (Done, error) {
		<-slow
		_, err := c.Do("first", step("{}"))
		return Done{}, err
	}, nil, time.Time{})
	require.ErrorIs(t, p.Run(t.Context(), time.Millisecond, nil), ErrHangs)
	p.Close()
	strand := p.hung.strand
	close(slow)
	<-p.Hangs()
	<-strand.gone
}

// A fork of a flow has the files of the input and of the results that it takes over, and may pass them
// on.
func TestFilesOfAFork(t *testing.T) {
	file := func(digest string) agent.Part {
		return agent.Part{Type: agent.PartFile, File: &agent.File{Session: "s", Digest: digest}}
	}
	in := said("in")
	in.Message.Parts = append(in.Message.Parts, file("photo"))
	events := []agent.Event{began("f"), in, asked("1", "a"), came("1", agent.ToolResult{Status: agent.CallOK, Files: []agent.Part{file("chart")}, LeftFiles: 3})}
	read := func(more ...agent.Event) (j Journal) {
		j.Read(append(slices.Clone(events), more...))
		return j
	}
	for name, j := range map[string]Journal{"the run": read(), "its fork": read(began("f"), agent.Event{Forked: &agent.Forked{}})} {
		require.Equal(t, []agent.File{*file("photo").File}, j.Files, name)
		results := j.Take()
		require.Equal(t, []agent.File{*file("chart").File}, results[0].Files, name)
		require.Equal(t, 3, results[0].LeftFiles, name)
		require.True(t, j.Shows(*file("photo").File), name)
		require.True(t, j.Shows(*file("chart").File), name)
		require.False(t, j.Shows(agent.File{Session: "victim", Digest: "chart"}), name)
	}
	anew := said("another")
	j := read(began("f"), agent.Event{Forked: &agent.Forked{ReplaceInput: true}}, anew)
	require.Empty(t, j.Files)
}
