package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// asker is a run below another whose model asks for calls that people have to approve.
func asker(t require.TestingT, calls, long int) *player {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines(`begin-child {"parent":{"session":"s","run":"r"},"depth":1}`, `opened {"toolset":[{"name":"pay"}],"rules":[{"do":"ask"}]}`)
	in := ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls}}
	for n := range calls {
		in.Reply.RuleMatches = append(in.Reply.RuleMatches, []int{0})
		in.Reply.Parts = append(in.Reply.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{
			Tool: "pay", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d,"note":%q}`, n, strings.Repeat("x", long))),
		}})
	}
	p.step(in)
	require.NoError(t, p.wrong)
	return p
}

// reports steps an input and returns what the parent is told of it.
func (p *player) reports(in Input) (told []wire.ChildReport) {
	next, effects, err := Step(p.state, Moment{At: p.now}, in)
	require.NoError(p.t, err)
	p.state = next
	for _, e := range effects {
		if e, ok := e.(ReportToParent); ok {
			told = append(told, e.Report)
		}
	}
	return told
}

// A run tells the one above it what it asks, and how much of it is still open, in little:
// never the arguments, and not each answer.
func TestReportsAreSmall(t *testing.T) {
	const calls = 64
	p := asker(t, calls, 10_000)
	told := p.reports(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
	for _, id := range p.state.Requests.ids() {
		told = append(told, p.reports(CommandReceived{Command: agent.ApproveCommand{Request: id}})...)
		if p.state.Log.SealingSeq > 0 {
			told = append(told, p.reports(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})...)
		}
	}
	var open []int
	for _, r := range told {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		require.Less(t, len(raw), 2_000)
		require.NotContains(t, string(raw), "xxxx")
		if r.Suspension != nil {
			open = append(open, r.Suspension.Open)
		}
	}
	require.Equal(t, []int{64, 32, 16, 8, 4, 2, 1}, open)
	require.Equal(t, agent.StatusRunning, told[len(told)-1].Status)
}

// Whoever writes a report, a run keeps of it no more than a note has.
func TestAHostileReportIsKeptShort(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"x","background":true}`, `child-started s/b-1`)
	long := strings.Repeat("\x01", 100_000)
	n := agent.SuspensionSummary{ID: long, Kind: agent.SuspensionKind(long), Initiator: agent.Initiator(long), Cause: long, Reason: long, Owner: agent.Owner(long)}
	for range 1000 {
		n.Requests = append(n.Requests, agent.RequestSummary{ID: long, Type: agent.RequestType(long), Text: long, Tool: long, Digest: long, Approvers: []string{long, long, long, long, long}})
	}
	p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: "run of s/b-1", Seq: 1, Status: agent.StatusSuspended, Suspension: &n}})
	require.NoError(t, p.wrong)
	require.Less(t, written(p.state.Children), 50_000)
	require.Equal(t, 1000, p.state.Children.List[0].Suspension.Open)
}

// Reports may come late, twice, or not at all, and both runs may continue in new executions:
// the newest that arrives is what the parent knows, and that is whole.
func TestReportsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := asker(t, rapid.IntRange(1, 20).Draw(t, "calls"), 10)
		told := p.reports(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
		for _, id := range rapid.Permutation(p.state.Requests.ids()).Draw(t, "answered")[:rapid.IntRange(0, len(p.state.Requests.Open)-1).Draw(t, "answers")] {
			told = append(told, p.reports(CommandReceived{Command: agent.RejectCommand{Request: id, Reason: "no"}})...)
			p.state = overTheWire(t, p.state)
		}
		above := &player{t: t, now: p.now}
		above.lines(`begin go`, `opened {"agents":[{"agent":"a"}]}`, `calls subagent__a {"task":"x"}`, `child-started s/a-1`)
		arrive := rapid.SliceOfN(rapid.IntRange(0, len(told)-1), 1, 2*len(told)).Draw(t, "arrive")
		for _, i := range arrive {
			told[i].From = "run of s/a-1"
			above.step(ChildReported{Report: told[i]})
			above.state = overTheWire(t, above.state)
		}
		require.Equal(t, *told[slices.Max(arrive)].Suspension, *above.state.Children.List[0].Suspension)
		newest, open := told[len(told)-1].Suspension, len(p.state.Requests.Open)
		require.LessOrEqual(t, open, newest.Open)
		require.Greater(t, 2*open, newest.Open-1, "the run above knows it to a factor of two")
	})
}

func overTheWire(t require.TestingT, s State) (out State) {
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}
