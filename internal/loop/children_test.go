package loop

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// How children stand: who works keeps an end, until the time for that is over; who is
// suspended or has ended rests.
func TestHowChildrenStand(t *testing.T) {
	at := time.Unix(100, 0)
	c := Children{EndWaitUntil: at.Add(time.Second), List: []Child{
		{Session: "s/a-1", StartedBy: "t1.1", Started: true, Status: agent.StatusRunning},
		{Session: "s/a-2", StartedBy: "t1.1", Started: true, Status: agent.StatusSuspended},
		{Session: "s/a-3", StartedBy: "t1.2", Status: agent.StatusCompleted, Outcome: &agent.Outcome{}},
	}}
	require.Equal(t, agent.ChildCounts{Running: 1, Suspended: 1, Ended: 1}, c.counts())
	for session, rests := range map[string]bool{"s/a-1": false, "s/a-2": true, "s/a-3": true, "s/a-4": false} {
		require.Equal(t, rests, c.endedOrSuspended(session), session)
	}
	require.Equal(t, []string{"s/a-1", "s/a-2"}, c.startedBy("t1.1"))
	require.Equal(t, []bool{true, false}, []bool{c.blocksEnd(at), c.blocksEnd(c.EndWaitUntil)})
	require.False(t, c.starting())
	c.List[0].Outcome = &agent.Outcome{}
	require.Equal(t, []any{1, true, false}, []any{c.countNotEnded(), c.anyNotEnded(), c.anyWorking()})
}

// A child that has not begun is owed the last of what holds it, however often that changed,
// and a stop beside it.
func TestAChildIsOwedTheLastHold(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`)
	for range 500 {
		p.step(CommandReceived{Command: agent.PauseCommand{Reason: strings.Repeat("x", 60_000)}})
		p.step(CommandReceived{Command: agent.ResumeCommand{}})
	}
	p.lines(`pause {"reason":"lunch"}`)
	owed := p.state.Children.List[0].PendingOrders
	require.Len(t, owed, 1)
	require.Equal(t, "lunch", owed[0].Holds[0].Reason)
	p.lines(`stop {}`)
	owed = p.state.Children.List[0].PendingOrders
	require.Equal(t, agent.VerbStop, owed[len(owed)-1].Verb)
	require.LessOrEqual(t, len(owed), 2)
	p.full = true
	p.step(TimerFired{})
	require.NotEqual(t, RunContinuing, p.state.Phase, "what is owed is in no state that is carried over")
}

// A wait names each child once, however often the model did.
func TestAWaitNamesAChildOnce(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"x","background":true}`, `child-started s/b-1`,
		`calls subagent_wait {"children":[`+strings.TrimSuffix(strings.Repeat(`"s/b-1",`, 10_000), ",")+`]}`)
	require.Equal(t, []string{"s/b-1"}, p.state.Calls.List[0].Children)
	p.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Session: "s/b-1", Status: agent.StatusCompleted, Text: "done"}})
	require.NoError(t, p.wrong)
	require.NotContains(t, p.out.String(), `"child":"s/b-1"},{"child":"s/b-1"`)
}

// Work in the background is offered, and left there, only where the model can wait for it.
func TestBackgroundNeedsLifecycle(t *testing.T) {
	for _, lifecycle := range []bool{false, true} {
		spec := agent.Spec{Definition: agent.Definition{Agents: []agent.SubAgent{{Agent: "b"}}, Lifecycle: lifecycle}}
		require.Equal(t, lifecycle, strings.Contains(string(OwnTools(spec)[0].Input), "background"))
		p := played(t, `begin go`, fmt.Sprintf(`opened {"agents":[{"agent":"b"}],"lifecycle":%t}`, lifecycle), `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
		require.Equal(t, !lifecycle, p.state.Calls.count(CallAwaitingChildren) > 0, "the call waits for its result")
	}
}

// No report makes a run deaf to those that come after it: one with a number that the child
// does not come to is not believed.
func TestNoReportMakesDeaf(t *testing.T) {
	report := func(seq int64, status agent.Status) wire.ChildReport {
		return wire.ChildReport{Run: "r", Session: "s/b-1", From: "run of s/b-1", Seq: seq, Status: status}
	}
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
	for _, seq := range []int64{math.MaxInt64, 1 << 60, math.MinInt64, 0} {
		p.step(ChildReported{Report: report(seq, agent.StatusSuspended)})
		require.ErrorIs(t, p.wrong, agent.CodeStale, seq)
	}
	p.step(ChildReported{Report: report(40, agent.StatusSuspended)})
	require.NoError(t, p.wrong)
	require.Equal(t, agent.StatusSuspended, p.state.Children.List[0].Status)
	p.step(ChildReported{Report: report(1<<30, agent.StatusRunning)}) // forged, and not to be told from a true one
	require.NoError(t, p.wrong)
	p.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Status: agent.StatusCompleted, Text: "yes"}})
	require.NoError(t, p.wrong)
	require.Equal(t, "yes", p.state.Children.List[0].Outcome.Text)
}

// A report counts only if it is from the run that this one has started, and an order only from
// the run that started this one.
func TestWhatOtherRunsTellIsRefused(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`)
	for _, from := range []string{"", "another run"} {
		p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: from, Seq: 9, Status: agent.StatusSuspended}})
		require.ErrorIs(t, p.wrong, agent.CodeStale, "before it has begun")
	}
	p.lines(`child-started s/b-1`)
	for _, from := range []string{"", "another run"} {
		p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: from, Seq: 9, Status: agent.StatusSuspended}})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
		require.Equal(t, agent.StatusRunning, p.state.Children.List[0].Status)
	}
	for _, from := range []string{"", "another run"} {
		p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1,"grant":{"tokens":5}}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
		p.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", From: from, Verb: agent.VerbCancel}})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
		p.step(ParentGranted{Order: wire.GrantOrder{Run: "r", From: from, Granted: wire.Amounts{wire.ResourceTokens: 9}}})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
	}
	root := played(t, `begin go`, `opened {}`)
	root.step(ParentOrdered{Order: wire.ParentOrder{Run: "r", Verb: agent.VerbCancel}})
	require.ErrorIs(t, root.wrong, agent.CodeStale, "nobody started it")
}

// That a child says that it has ended is no result: Temporal is asked, once an execution, for
// a child that began in an earlier one, and tells by itself of the others.
func TestTheEndOfAChildIsFetched(t *testing.T) {
	end := ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: "run of s/b-1", Seq: 50, Status: agent.StatusCompleted}}
	for name, ins := range map[string][]Input{
		"told before a new execution": {end, Continued{}, end, Continued{}},
		"told in a new execution":     {Continued{}, end, end, Continued{}},
	} {
		p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
		var looks []int
		for _, in := range ins {
			if _, anew := in.(Continued); anew {
				p.state.Phase = RunContinuing
			}
			next, effects, err := Step(p.state, Moment{At: p.now, Revision: Revision}, in)
			if err == nil {
				p.state = next
			}
			n := 0
			for _, e := range effects {
				if e, ok := e.(CheckChild); ok {
					require.Equal(t, CheckChild{Session: "s/b-1", Run: "run of s/b-1", Ending: true}, e)
					n++
				}
			}
			looks = append(looks, n)
			require.True(t, p.state.Children.List[0].notEnded())
		}
		want := []int{0, 1, 0, 1} // the last look went with the execution that began it
		require.Equal(t, want, looks, name)
		require.Equal(t, p.now.Add(parentCheckFirst), p.state.Children.checkDue(), "and again if that finds nothing")
	}
}

// A decision is passed on to what can be a run below, and to nothing else in the namespace.
func TestADecisionIsPassedOnToARunBelow(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one"}`, `child-started s/b-1`)
	for below, code := range map[string]agent.Code{
		"s/b-1/c-2/q-1": "", "b-1/c-2/d-11/q-1": "", "b-1//q-1": agent.CodeNotFound, "s/b-1/c 2/q-1": agent.CodeNotFound, "b-1/../q-1": agent.CodeNotFound,
		"b-1/c/q-1": agent.CodeNotFound, "b-1/fermata/process/q-1": agent.CodeNotFound, "b-1/c-0/q-1": agent.CodeNotFound, "b-1/c-02/q-1": agent.CodeNotFound, "/b-1/q-1": agent.CodeNotFound, "b-1/c-2/": agent.CodeNotFound,
	} {
		_, effects, err := Step(p.state, Moment{At: p.now}, CommandReceived{Command: agent.AnswerCommand{Request: below, Text: "x"}})
		require.Equal(t, code, agent.CodeOf(err), below)
		passed := slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(ForwardCommand); return ok })
		require.Equal(t, code == "", passed, below)
	}
}

// toolsOf lists the tools of a run that an executor carries out; empty means a worker.
func toolsOf(s State, executor agent.ToolExecutor) (names []string) {
	for _, tool := range s.Spec.Toolset {
		if tool.Executor == executor {
			names = append(names, tool.Name)
		}
	}
	return names
}

// childStart returns what a run starts a sub-agent with when its model makes a call.
func childStart(t *testing.T, p *player, call string) string {
	t.Helper()
	_, effects, err := Step(p.state, Moment{At: p.now}, p.input("calls", call))
	require.NoError(t, err)
	i := slices.IndexFunc(effects, func(e Effect) bool { _, starts := e.(StartChild); return starts })
	start, err := json.Marshal(effects[i].(StartChild).ChildStart)
	require.NoError(t, err)
	return string(start)
}

// A tool of the provider is within every ceiling of the agents above and of the run's own, or no request
// of the run has it. A parent whose entry lists nothing passes on what its own ceilings allow.
func TestACeilingBoundsTheToolsOfTheProvider(t *testing.T) {
	for _, c := range []struct {
		parent, entry, child string
		want                 []string
	}{
		{``, ``, ``, []string{"web_search", "code_execution"}},
		{``, `,"tools":["*"]`, ``, []string{"web_search", "code_execution"}},
		{``, `,"tools":["pay","server_tools:web_search"]`, ``, []string{"web_search"}},
		{``, `,"tools":["pay"]`, ``, nil},
		{``, `,"tools":["server_tools:[^c]*"]`, ``, []string{"web_search"}}, // it matches "server_tools:*", and not all
		{``, `,"tools":["server_tools:?"]`, ``, nil},
		{`"ceiling":["server_tools:*","subagent__*"],`, ``, `"ceiling":["server_tools:code_execution"],`, []string{"code_execution"}},
		{`"ceiling":["web_search","subagent__*"],`, `,"tools":["*"]`, ``, nil}, // that would be a worker's tool
		{`"ceiling":["server_tools:web_search","subagent__*"],`, `,"tools":["server_tools:*"]`, ``, []string{"web_search"}},
	} {
		parent := played(t, `begin go`, `opened {`+c.parent+`"agents":[{"agent":"b"`+c.entry+`}],"toolset":[{"name":"add"}]}`)
		child := played(t, `begin-child `+childStart(t, parent, `subagent__b {"task":"one"}`), `opened {`+c.child+`"toolset":[{"name":"add"}]}`)
		spec := child.state.Log.Tail[0].Started.Spec // model calls read the log's
		var served []string
		for _, name := range []string{"web_search", "code_execution"} {
			if MayServe(spec, name) {
				served = append(served, name)
			}
		}
		require.Equal(t, c.want, served, "%+v", c)
	}
}

// A child has the tools that its parent has, or those that its entry lists, and of them
// none that is beyond the ceiling of an ancestor (HA-97).
func TestAChildHasNoToolBeyondItsAncestors(t *testing.T) {
	for entry, want := range map[string][]string{``: {"add"}, `,"tools":["pay","subagent__*"]`: {"pay"}, `,"tools":["*"]`: {"add", "pay"}} {
		parent := played(t, `begin go`, `opened {"ceiling":["add","pay","subagent__*"],"agents":[{"agent":"b"`+entry+`}],"toolset":[{"name":"add"}]}`)
		child := played(t, `begin-child `+childStart(t, parent, `subagent__b {"task":"one"}`), `opened {"agents":[{"agent":"c","tools":["*"]}],"toolset":[{"name":"add"},{"name":"pay"},{"name":"wipe"}]}`)
		require.Equal(t, want, toolsOf(child.state, ""), entry)
		// The child hands on no more than it was given, whatever its own entry lists.
		grandchild := played(t, `begin-child `+childStart(t, child, `subagent__c {"task":"two"}`), `opened {"toolset":[{"name":"add"},{"name":"pay"},{"name":"wipe"}]}`)
		require.Equal(t, want, toolsOf(grandchild.state, ""), entry)
	}
}

// So it is for tools that the client carries out (HA-97).
func TestAChildHasNoClientToolBeyondItsAncestors(t *testing.T) {
	for entry, want := range map[string][]string{``: {"sign"}, `,"tools":["stamp"]`: {"stamp"}, `,"tools":["*"]`: {"sign", "stamp"}} {
		parent := played(t, `begin go`, `opened {"ceiling":["sign","stamp","subagent__*"],"agents":[{"agent":"b"`+entry+`}],"client_tools":[{"name":"sign"}]}`)
		child := played(t, `begin-child `+childStart(t, parent, `subagent__b {"task":"one"}`), `opened {"client_tools":[{"name":"sign"},{"name":"stamp"},{"name":"wipe"}]}`)
		require.Equal(t, want, toolsOf(child.state, agent.ExecutorClient), entry)
	}
}

// An agent that a check asks may be parked for a day from its start, and each below it as long, also one that
// checks there; a sub-agent of any other run has no such bound.
func TestHowLongAChildMayBeParked(t *testing.T) {
	started := func(p *player, in Input) time.Time {
		next, effects, err := Step(p.state, Moment{At: p.now}, in)
		require.NoError(t, err)
		p.state = next
		i := slices.IndexFunc(effects, func(e Effect) bool { _, starts := e.(StartChild); return starts })
		return effects[i].(StartChild).ChildStart.ParkUntil
	}
	const spec = `opened {"verify":{"checks":[{"name":"review","agent":"b","task":"Look."}]},"agents":[{"agent":"c"}]}`
	p := played(t, `begin go`, spec)
	require.True(t, started(p, p.input("calls", `subagent__c {"task":"one"}`)).IsZero())
	p = played(t, `begin go`, spec)
	require.Equal(t, p.now.Add(longestCheckPark), started(p, p.input("says", "done")))
	const below = `begin-child {"parent":{"session":"lead","run":"r0","call":"t1.check1"},"depth":1,"max_depth":4,"park_until":"2026-01-01T05:00:00Z"}`
	until := time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)
	p = played(t, below, spec)
	require.Equal(t, until, started(p, p.input("calls", `subagent__c {"task":"one"}`)))
	p = played(t, below, spec)
	require.Equal(t, until, started(p, p.input("says", "done")))
}
