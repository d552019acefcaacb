package journal_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
)

// asks is one asking of a flow with steps, each with its status; an empty one stays open. It returns
// the checkpoint.
func (b *book) asks(steps ...agent.CallUpdate) string {
	b.begin()
	for i := range steps {
		s := &steps[i]
		b.add(agent.Event{Type: agent.EventCallRequested, Call: &agent.CallUpdate{Call: s.Call, Tool: s.Tool, Step: s.Step}})
		if s.Status != "" {
			b.add(agent.Event{Type: agent.EventCallDone, Call: s})
		}
	}
	return b.end(nil)
}

// The plan of a flow says of each step whether its result is kept, and if not, why. It agrees with
// the results that the fork has.
func TestPlanOfAFlow(t *testing.T) {
	b := &book{}
	flow := *spec
	flow.Name, flow.Flow = "files", true
	flow.Toolset = append(slices.Clone(spec.Toolset), agent.ToolSpec{Name: agent.ApproveTool, Executor: agent.ExecutorRuntime})
	b.turn, b.last = 0, "r1"
	b.add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "r1", Spec: &flow}})
	b.say(agent.RoleUser, "go")
	at := b.asks(
		agent.CallUpdate{Call: "t1.1", Tool: "pay", Step: "file.1/pay", Status: agent.CallOK},
		agent.CallUpdate{Call: "t1.2", Tool: "pay", Step: "file.2/pay", Status: agent.CallFailed},
		agent.CallUpdate{Call: "t1.3", Tool: "look", Step: "file.3/look", Status: agent.CallRejected},
		agent.CallUpdate{Call: "t1.4", Tool: "pay", Step: "file.4/pay", Status: agent.CallUnknown, Dropped: true},
		agent.CallUpdate{Call: "t1.5", Tool: "look", Step: "file.5/look", Status: agent.CallSkipped},
		agent.CallUpdate{Call: "t1.6", Tool: agent.ApproveTool, Step: "merge", Status: agent.CallOK},
		agent.CallUpdate{Call: "t1.7", Tool: agent.AskUserTool, Step: "ask"},
	)
	b.ends(agent.StatusFailed)
	v := b.view()
	p, err := journal.Find(v, "s", at)
	require.NoError(t, err)
	plan := func(f agent.Forked, to string) (map[string]agent.AgainReason, []string, []string) {
		whole := journal.ForkPlan(v, p, f, to)
		again, kept, repeat := map[string]agent.AgainReason{}, []string{}, []string{}
		for _, s := range whole.Steps {
			again[s.Path] = s.Again
		}
		for _, e := range whole.Kept {
			kept = append(kept, e.Step)
		}
		for _, e := range whole.MayRepeat {
			repeat = append(repeat, e.Step)
		}
		return again, kept, repeat
	}
	retry, kept, repeat := plan(agent.Forked{Retry: true}, "files")
	require.Equal(t, map[string]agent.AgainReason{
		"file.1/pay": "", "file.2/pay": agent.AgainFailed, "file.3/look": agent.AgainFailed, "file.4/pay": agent.AgainDropped, "file.5/look": agent.AgainOpen, "merge": "", "ask": agent.AgainOpen,
	}, retry)
	require.Equal(t, []string{"file.1/pay"}, kept)
	require.Equal(t, []string{"file.2/pay", "file.4/pay"}, repeat)

	fork, kept, repeat := plan(agent.Forked{Redo: []string{"file.1"}}, "files")
	require.Equal(t, map[string]agent.AgainReason{
		"file.1/pay": agent.AgainRedo, "file.2/pay": "", "file.3/look": "", "file.4/pay": agent.AgainDropped, "file.5/look": agent.AgainOpen, "merge": agent.AgainApproval, "ask": agent.AgainOpen,
	}, fork)
	require.Equal(t, []string{"file.2/pay"}, kept)
	require.Equal(t, []string{"file.1/pay", "file.4/pay"}, repeat)

	edit, kept, _ := plan(agent.Forked{ReplaceInput: true}, "files")
	require.Equal(t, agent.AgainInput, edit["file.1/pay"])
	require.Equal(t, agent.AgainApproval, edit["merge"])
	require.Empty(t, kept)

	other, kept, _ := plan(agent.Forked{}, "others")
	require.Equal(t, agent.AgainAgent, other["file.1/pay"])
	require.Empty(t, kept)

	// What the fork then has is what the plan keeps.
	for forked, again := range map[*agent.Forked]map[string]agent.AgainReason{{Retry: true}: retry, {Redo: []string{"file.1"}}: fork} {
		b.add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "r2", Spec: &flow}})
		forked.Session, forked.Run, forked.Checkpoint = "s", "r1", at
		b.add(agent.Event{Type: agent.EventForked, Forked: forked})
		has := map[string]bool{}
		for _, s := range journal.Steps(b.view()) {
			has[s.Path] = true
		}
		for path, why := range again {
			require.Equal(t, why == "", has[path], "%s: %s", path, why)
		}
		b.events = b.events[:len(b.events)-2]
	}
}
