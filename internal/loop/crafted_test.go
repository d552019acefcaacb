package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// suspendedRuns are runs that can be moved, each waiting for something else.
func suspendedRuns(t *testing.T) map[string]State {
	const tools = `"toolset":[{"name":"add"}],"tools":["ask_user","await_resumption"],"rules":[{"do":"ask","deadline":"1h","default":"approve"}]`
	all := map[string]State{}
	for name, lines := range map[string][]string{
		"asks":     {`opened {` + tools + `}`, `calls ask_user {"question":"Where to?","choices":["a","b"]}`},
		"approves": {`opened {` + tools + `}`, `replies {"finish":"tool_calls","rule_matches":[[0],[0]],"parts":[{"type":"tool_call","call":{"tool":"add","arguments":{"a":1}}},{"type":"tool_call","call":{"tool":"add","arguments":{"a":2}}}]}`},
		"tool":     {`opened {` + tools + `}`, `calls add {"a":1}`, `asks t1.1 Which? keeping {"k":1}`},
		"parked":   {`opened {` + tools + `}`, `calls await_resumption {"reason":"later","conditions":{"event":{"topic":"t"},"after":"2h"}}`},
		"idle":     {`opened {"daemon":{"every":"1m"},` + tools + `}`, `says done`},
		"held":     {`opened {` + tools + `}`, `send {"text":"and","mode":"queue"}`, `interrupt {}`, `held`},
		"limit":    {`opened {"on_limit":"ask","limits":{"turns":1},` + tools + `}`, `calls add {"a":1}`, `result t1.1 ok 3`},
		"late": {
			`opened {"answer_timeouts":{"deadline":"1h","default":"Oslo"},` + tools + `}`, `calls ask_user {"question":"Where to?"}`, "sealed", "after 1h", "timer",
			`calls ask_user {"question":"When?"}`, "sealed", "after 1h", "timer", `calls ask_user {"question":"Who?"}`, "sealed", `answer {"request":"q-1","text":"Rome"}`,
		},
		"below": {`opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"tokens":1000},` + tools + `}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`, `child-ended s/b-1 completed yes`, `interrupt {}`, `held`},
	} {
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		p.line("begin go")
		for _, line := range lines {
			if line == "held" {
				p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}})
				continue
			}
			p.line(line)
		}
		if name != "idle" { // which it would wake
			p.line(`send! @m1 {"text":"more","mode":"queue"}`)
		}
		for p.state.Log.SealingSeq > 0 {
			p.line("sealed")
		}
		require.NoError(t, p.state.CheckPortable(), name)
		all[name] = exported(t, p.state)
	}
	return all
}

// crafted yields a JSON value with one thing in it changed, for each place and each change.
func crafted(v any, yield func(what string, change func() (back func()))) {
	odd := []any{nil, "x", -1, math.MaxInt64, map[string]any{}}
	var walk func(path string, get func() any, set func(any))
	walk = func(path string, get func() any, set func(any)) {
		was := get()
		for i, o := range odd {
			yield(fmt.Sprintf("%s is odd %d", path, i), func() func() { set(o); return func() { set(was) } })
		}
		switch v := was.(type) {
		case []any:
			yield(path+" is doubled", func() func() { set(slices.Concat(v, v)); return func() { set(was) } })
			yield(path+" is empty", func() func() { set([]any{}); return func() { set(was) } })
			for i := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), func() any { return v[i] }, func(o any) { v[i] = o })
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(path+"."+k, func() any { return v[k] }, func(o any) { v[k] = o })
			}
		}
	}
	walk("", func() any { return v }, func(any) {})
}

// pokes are inputs to a run that was imported.
func pokes(s State) (all []Input) {
	ids := s.Requests.ids()
	for _, r := range s.Late.Requests {
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		for _, c := range []agent.Command{
			agent.AnswerCommand{Request: id, Text: "x"}, agent.ApproveCommand{Request: id, Arguments: json.RawMessage(`{"a":3}`)},
		} {
			all = append(all, CommandReceived{Command: c, ID: "one"})
		}
	}
	return append(all, CommandReceived{Command: agent.ResumeCommand{Message: "go"}, ID: "two"}, CommandReceived{Command: agent.EmitCommand{Topic: "t"}, ID: "three"}, CommandReceived{Command: agent.StopCommand{}}, TimerFired{})
}

// What is in a signed export may be anything: a run that continues with it never panics, can
// be told of what comes, and ends when it is cancelled; else it is refused.
func TestACraftedStateIsRefusedOrGoesOn(t *testing.T) {
	t.Parallel()
	for name, s := range suspendedRuns(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(s)
			require.NoError(t, err)
			var tree any
			require.NoError(t, json.Unmarshal(raw, &tree))
			refused, taken := 0, 0
			sometimes := every(12) // all of them take half a minute
			crafted(tree, func(what string, change func() func()) {
				sometimes(func() {
					back := change()
					raw, err := json.Marshal(tree)
					back()
					require.NoError(t, err)
					at, err := ReadState(raw)
					if err != nil {
						return
					}
					if goesOnWith(t, what, at) {
						taken++
					} else {
						refused++
					}
				})
			})
			t.Logf("%d refused, %d taken", refused, taken)
			require.True(t, goesOnWith(t, "as it was", s))
		})
	}
}

// A request at a limit has no call that an answer would make again. The search above changes only keys that
// a state has.
func TestACraftedLimitMakesNoCall(t *testing.T) {
	s := suspendedRuns(t)["limit"]
	s.Requests.Open[0].RetryCall = true
	require.False(t, goesOnWith(t, "a limit's request with retry_call", s))
}

// goesOnWith imports a state and pokes it, and reports whether it was taken.
func goesOnWith(t *testing.T, what string, at State) (taken bool) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %v", what, r)
		}
	}()
	at.Log = Log{Head: "moved", Seq: 9, Version: 1}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(s State, in Input) State {
		now = now.Add(24 * time.Hour)
		next, _, err := Step(s, Moment{At: now, Revision: Revision}, in)
		if err != nil {
			return s
		}
		for next.Log.SealingSeq > 0 {
			next, _, err = Step(next, Moment{At: now}, Sealed{Head: "h", Seq: next.Log.SealingSeq})
			require.NoError(t, err, what)
		}
		return next
	}
	s := step(State{}, Begin{Session: "s", Run: "r2", Start: agent.Start{Agent: "a", Import: "d"}})
	s = step(s, Opened{})
	s = step(s, Imported{Export: "e", State: at, Spec: &agent.Spec{}})
	if s.Phase == RunEnded {
		return false
	}
	require.Equal(t, "s", s.Session, what)
	next := s
	for n := range 4 {
		next = step(next, CommandReceived{Command: agent.SendCommand{Text: strings.Repeat("x", 100_000), Mode: agent.SendQueue}, ID: fmt.Sprint(n)})
	}
	require.LessOrEqual(t, next.Messages.PendingSize, pendingShare, what)
	for _, in := range pokes(s) {
		next := step(s, in)
		next.View(now)
		next.Memo()
		next.Nodes()
		for range 3 {
			switch {
			case next.Turn.Phase == TurnAsking:
				next = step(next, ModelReplied{AskSeq: next.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{
					{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "add", Arguments: json.RawMessage(`{"a":9}`)}},
					{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(`{"task":"x","background":true}`)}},
				}}})
			case next.Turn.Phase == TurnSummarizing:
				next = step(next, ModelReplied{AskSeq: next.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "so"}}}})
			}
			for _, c := range next.Calls.List {
				next = step(next, ToolReturned{Result: agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Text: "3"}})
			}
			next = step(next, TimerFired{})
		}
		end := step(step(next, CommandReceived{Command: agent.CancelCommand{}}), TimerFired{}) // the grace is over
		require.True(t, end.outcomeDecided() || end.Phase == RunEnded, "%s: a cancel ends it", what)
		_, err := json.Marshal(end.End.Outcome)
		require.NoError(t, err)
	}
	return true
}
