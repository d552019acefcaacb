package workflows

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// stand is a run to which that has happened.
func stand(t require.TestingT, spec agent.Definition, childStart *wire.ChildStart, inputs ...loop.Input) loop.State {
	spec.Name, spec.Model = "a", "m"
	session := "s"
	if childStart != nil {
		session = childStart.Parent.Session + "/a-1"
	}
	begin := loop.Begin{Session: session, Run: "01a1", Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}, ChildStart: childStart}
	opened := loop.Opened{Spec: &agent.Spec{V: 1, Definition: spec.WithDefaults(), Toolset: []agent.ToolSpec{{Name: "add"}}}}
	var state loop.State
	for _, in := range append([]loop.Input{begin, opened}, inputs...) {
		if reply, ok := in.(loop.ModelReplied); ok {
			reply.AskSeq = state.Turn.AskSeq
			in = reply
		}
		if sealed, ok := in.(loop.Sealed); ok {
			sealed.Seq = state.Log.SealingSeq
			in = sealed
		}
		next, _, err := loop.Step(state, loop.Moment{At: noon, Revision: loop.Revision}, in)
		require.NoError(t, err, "%T %+v", in, in)
		state = next
	}
	return state
}

// calls is a reply that asks for tools.
func calls(all ...agent.ToolCall) loop.ModelReplied {
	in := loop.ModelReplied{Reply: wire.Reply{Finish: agent.FinishToolCalls}}
	for _, c := range all {
		in.Reply.Parts = append(in.Reply.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
		if c.Tool == agent.AwaitResumptionTool {
			in.Reply.ParkRequests = append(in.Reply.ParkRequests, wire.ParkRequest{Reason: "why", Conditions: agent.Conditions{Event: &agent.EventCondition{Topic: "t"}}})
		}
	}
	return in
}

// runs are what something may be said to.
func runs(t require.TestingT) []loop.State {
	add := agent.ToolCall{Tool: "add", Arguments: json.RawMessage(`{"a":1}`)}
	ask := agent.ToolCall{Tool: agent.AskUserTool, Arguments: json.RawMessage(`{"question":"Which?","choices":["a","b"]}`)}
	below := agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(`{"task":"one"}`)}
	wait := agent.ToolCall{Tool: agent.AwaitResumptionTool, Arguments: json.RawMessage(`{}`)}
	plain := agent.Definition{Tools: []string{agent.AskUserTool, agent.AwaitResumptionTool}, Agents: []agent.SubAgent{{Agent: "b"}}}
	asks := plain
	asks.Rules = []agent.Rule{{Do: agent.RulingAsk}}
	asking := calls(add, add)
	asking.Reply.RuleMatches = [][]int{{0}, {0}}
	childStart := &wire.ChildStart{
		Parent: wire.Parent{Session: "p", Run: "p"}, Depth: 1, KnownHolds: []agent.HoldRef{{Session: "p", N: 1}},
		Holds: []agent.Hold{{ID: "h-1", From: agent.HoldInherited, Session: "p", Verb: agent.VerbPause}},
	}
	return []loop.State{
		stand(t, plain, nil), stand(t, plain, nil, calls(add)), stand(t, plain, nil, calls(ask), loop.Sealed{Head: "h"}),
		stand(t, asks, nil, asking, loop.Sealed{Head: "h"}), stand(t, plain, nil, calls(wait), loop.Sealed{Head: "h"}), stand(t, plain, childStart),
		stand(t, plain, nil, calls(below, add), loop.ChildStarted{Session: "s/b-1", Run: "c"}),
		stand(t, agent.Definition{Daemon: &agent.Daemon{Every: agent.Duration(time.Minute)}}, nil),
		stand(t, plain, nil, loop.CommandReceived{Command: agent.CancelCommand{}}),
	}
}

// Whatever a run hears, from people, from the runs around it or from anybody else, it
// is refused and changes nothing, or the run is one that can continue: it can be shown,
// carried over, led to its end, and hear the same again.
func FuzzSignal(f *testing.F) {
	names := []string{signals.ChildReport, signals.ParentOrder, signals.GrantOrder}
	for _, v := range signals.Verbs {
		names = append(names, string(v))
		data, err := os.ReadFile(filepath.Join("..", "signals", "testdata", "wire", "v1", "verb-"+string(v)+".json"))
		require.NoError(f, err)
		f.Add(uint8(len(names)-1), data)
	}
	for _, said := range []string{
		`answer {"request":"q-1","text":"so"}`, `answer {"request":"q-1","choice":1}`, `answer {"request":"s/b-1/q-1","data":{}}`, `approve {"request":"q-1"}`,
		`approve {"request":"q-2","always":true,"digest":"00"}`, `approve {"request":"q-1","arguments":{"a":2}}`, `reject {"request":"q-1","reason":"no"}`,
		`answers {"answers":[{"request":"q-1","approve":{}},{"request":"q-2","reject":{"reason":"no"}}]}`, `emit {"topic":"t","payload":1}`, `resume {"message":"go","from_summary":true}`, `resume {"suspension":"s-1"}`,
	} {
		verb, data, _ := strings.Cut(said, " ")
		f.Add(uint8(slices.Index(names, verb)), []byte(data))
	}
	for _, report := range []string{
		`"status":"suspended","suspension":{"id":"s-1","kind":"input_required","requests":[{"id":"q-1","type":"question"}]}`, `"status":"running"`, `"met_hold":{"session":"s","n":3}`,
		`"status":"completed","outcome":{"status":"completed","text":"yes"}`, `"status":"stopped","outcome":{"status":"stopped","handoff":{"summary":"x","children":[{}]}}`, `"outcome":{}`,
	} {
		f.Add(uint8(0), []byte(`{"run":"01a1","session":"s/b-1","from":"c","seq":1,`+report+`}`))
	}
	for _, order := range []string{
		`"verb":"pause","holds":[{"id":"h-2","from":"inherited","session":"p","verb":"pause"}],"known_holds":[{"session":"p","n":2}]`, `"verb":"resume","known_holds":[{"session":"p","n":1}]`,
		`"verb":"interrupt","own":true,"by":"agent:p","grace":"2s"`, `"verb":"resume","own":true,"by":"agent:p","reason":"now"`, `"verb":"stop","deadline":"-8s"`, `"verb":"cancel"`, `"verb":"send"`,
	} {
		f.Add(uint8(1), []byte(`{"run":"01a1",`+order+`}`))
	}
	states := runs(f)
	f.Fuzz(func(t *testing.T, name uint8, data []byte) {
		for _, state := range states {
			said := signal{name: names[int(name)%len(names)], data: data}
			in, refusal := (&run{}).readSignal(said)
			if refusal != nil {
				require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge}, refusal.Code)
				return
			}
			if next, taken := hears(t, state, in); taken {
				next, _ = hears(t, next, in)
				hears(t, next, loop.TimerFired{})
			}
		}
	})
}

// hears steps a run, and checks what is to be true of it then.
func hears(t *testing.T, state loop.State, in loop.Input) (next loop.State, taken bool) {
	before := written(t, state)
	next, _, err := loop.Step(state, loop.Moment{At: noon, Revision: loop.Revision}, in)
	require.Equal(t, before, written(t, state), "what it was is not touched")
	if err != nil {
		require.NotEqual(t, agent.CodeInternal, agent.CodeOf(err), "%v", err)
		require.Equal(t, before, written(t, next), "a refusal changes nothing")
		return state, false
	}
	after := written(t, next)
	var carried loop.State
	require.NoError(t, json.Unmarshal([]byte(after), &carried))
	require.Equal(t, after, written(t, carried))
	for _, shown := range []any{next.View(noon), next.Memo(), next.Nodes(), next.Suspension(), next.WaitsFor()} {
		_, err := json.Marshal(shown)
		require.NoError(t, err)
	}
	_, _, err = loop.Step(next, loop.Moment{At: noon, Revision: loop.Revision}, loop.CommandReceived{Command: agent.CancelCommand{}})
	require.NoError(t, err, "a cancel is taken")
	return next, true
}

func written(t *testing.T, state loop.State) string {
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	return string(raw)
}
