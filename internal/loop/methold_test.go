package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Two forged holds, the second met by a hook that is told of the suspension: together they are higher than
// the parent believes. The sub-agent takes the first alone, so that the parent's answer releases it.
func TestTwoForgedHoldsHoldNoSubAgentForGood(t *testing.T) {
	child := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`,
		`opened {"toolset":[{"name":"add"}],"hooks":{"after_suspension":{"checks":[{"name":"post","tool":"post"}]}}}`)
	hook := ""
	var met []wire.ChildReport
	child.watch = func(_ State, _ Moment, _ Input, done *step) {
		for _, e := range done.effects {
			switch e := e.(type) {
			case CallTool:
				hook = e.Call
			case ReportToParent:
				if e.Report.MetHold != nil {
					met = append(met, e.Report)
				}
			}
		}
	}
	first, second := agent.HoldRef{Session: "s", N: 1_000_000, Verb: agent.VerbInterrupt}, agent.HoldRef{Session: "s", N: 2_000_000, Verb: agent.VerbInterrupt}
	child.step(ModelReplied{AskSeq: child.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Hold: &first}})
	require.NotEmpty(t, hook)
	child.step(ToolReturned{Result: agent.ToolResult{Call: hook, Tool: "post", Status: agent.CallSkipped}, Hold: &second})
	require.NoError(t, child.wrong)
	child.now = child.now.Add(time.Hour)
	child.step(TimerFired{})
	child.step(ParentChecked{})
	require.Len(t, met, 1)

	parent := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one"}`, `child-started s/b-1`)
	var answer wire.ParentOrder
	parent.watch = func(_ State, _ Moment, _ Input, done *step) {
		for _, e := range done.effects {
			if o, ok := e.(OrderChild); ok {
				answer = o.Order
			}
		}
	}
	met[0].Session, met[0].Run, met[0].From = "s/b-1", parent.state.Run, "run of s/b-1"
	parent.step(ChildReported{Report: met[0]})
	require.NoError(t, parent.wrong)
	answer.Run, answer.From = child.state.Run, "r0"
	child.step(ParentOrdered{Order: answer})
	require.NoError(t, child.wrong)
	require.False(t, child.state.Holds.any())
}

// A hook before a resume meets a forged hold. The run asks its parent within a minute, also if it was
// suspended for so long that it looks at its parent once a day.
func TestAHoldThatIsMetInAnOldSuspensionIsAskedAbout(t *testing.T) {
	child := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`,
		`opened {"toolset":[{"name":"add"}],"hooks":{"before_resume":{"checks":[{"name":"post","tool":"post"}]}}}`)
	hook, asked := "", false
	child.watch = func(_ State, _ Moment, _ Input, done *step) {
		for _, e := range done.effects {
			switch e := e.(type) {
			case CallTool:
				hook = e.Call
			case CheckParent:
				asked = true
			}
		}
	}
	child.step(CommandReceived{Command: agent.InterruptCommand{Reason: "lunch"}, ID: "i1", PolicyChecked: true})
	child.step(ModelReplied{AskSeq: child.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}})
	child.step(Sealed{Head: "h", Seq: child.state.Log.SealingSeq})
	require.Equal(t, agent.StatusSuspended, child.state.Status())
	child.now = child.now.Add(10 * time.Hour)
	child.step(TimerFired{})
	child.step(ParentChecked{})
	asked = false
	child.step(CommandReceived{Command: agent.ResumeCommand{}, ID: "r1", PolicyChecked: true})
	require.NotEmpty(t, hook)
	child.step(ToolReturned{Result: agent.ToolResult{Call: hook, Tool: "post", Status: agent.CallSkipped}, Hold: &agent.HoldRef{Session: "s", N: 1_000_000, Verb: agent.VerbInterrupt}})
	require.NoError(t, child.wrong)
	child.step(Sealed{Head: "h", Seq: child.state.Log.SealingSeq})
	child.now = child.now.Add(time.Minute)
	child.step(TimerFired{})
	require.True(t, asked)
}
