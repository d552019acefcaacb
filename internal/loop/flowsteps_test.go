package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// asksMuch answers as a function does that waits for many questions: it asks for those that are neither
// open nor answered.
type asksMuch struct {
	*player
	paths    []string
	question string
	answered map[string]bool
}

func (a *asksMuch) answers(more bool) {
	in := FlowAnswered{AskSeq: a.state.Turn.AskSeq}
	in.Answer.More = more
	for _, path := range a.paths {
		open := slices.ContainsFunc(a.state.Calls.List, func(c Call) bool { return c.ProviderID == path })
		if open || a.answered[path] {
			continue
		}
		arguments, err := json.Marshal(map[string]string{"question": "Well?", "context": a.question})
		require.NoError(a.t, err)
		in.Answer.Steps = append(in.Answer.Steps, wire.FlowStep{ToolCall: agent.ToolCall{ProviderID: path, Tool: agent.AskUserTool, Arguments: arguments}})
	}
	a.step(in)
	require.NoError(a.t, a.wrong)
}

func asks(t *testing.T, n int) *asksMuch {
	a := &asksMuch{player: &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, question: strings.Repeat("x", 3_900), answered: map[string]bool{}}
	for i := range n {
		a.paths = append(a.paths, fmt.Sprintf("m.%d/ask", i+1))
	}
	a.lines("begin go", `opened {"flow":true,"toolset":[{"name":"ask_user","executor":"runtime"}],"limits":{"own_turns":1000}}`)
	return a
}

// A flow asks more questions than the state can keep: the further ones are asked when others are
// answered, in their order, and none is lost. Meanwhile the run is suspended.
func TestAFlowAsksMoreThanCanBeKept(t *testing.T) {
	const n = 110
	a := asks(t, n)
	a.answers(false)
	kept := len(a.state.Requests.Open)
	require.Greater(t, kept, 50)
	require.Less(t, kept, n)
	for i := range n {
		require.Equal(t, TurnWorking, a.state.Turn.Phase, "it is not asked while there is no space")
		require.GreaterOrEqual(t, len(a.state.Requests.Open), min(kept, n-i))
		first := a.state.Requests.Open[0]
		require.Equal(t, a.paths[i], first.Step)
		for a.state.Log.SealingSeq > 0 {
			a.line("sealed")
		}
		require.Equal(t, agent.StatusSuspended, a.state.Status())
		a.answered[first.Step] = true
		a.line(fmt.Sprintf(`answer {"request":%q,"text":"yes"}`, first.ID))
		require.NoError(t, a.wrong)
		require.Equal(t, TurnAdvancing, a.state.Turn.Phase)
		if i < n-1 {
			a.answers(false)
		}
	}
	counts := a.state.Calls.Counts[0]
	require.Equal(t, n, counts.OK)
	require.Zero(t, counts.Rejected)
}

// If there is no space for any of a flow's steps, the rest of an answer that was cut is not asked for:
// it would be cut the same way.
func TestAFlowIsNotAskedForWhatCannotBeKept(t *testing.T) {
	a := asks(t, 110)
	a.answers(true)
	require.Equal(t, TurnAdvancing, a.state.Turn.Phase, "the rest may have space")
	a.answers(true)
	require.Equal(t, TurnWorking, a.state.Turn.Phase)
	require.True(t, a.state.stepsOnlyWait())
}

// A step that the state cannot keep even alone is rejected: no other step would ever leave space for it.
func TestAFlowsOnlyApprovalIsRejected(t *testing.T) {
	a := asks(t, 0)
	for range 4 { // messages take space, too
		a.line(fmt.Sprintf(`send {"text":%q,"mode":"queue"}`, strings.Repeat("x", 58_000)))
		require.NoError(t, a.wrong)
	}
	a.line(`steps pay approve {"what":"Pay?","subject":"` + strings.Repeat(`\"`, 130_900) + `"}`)
	require.NoError(t, a.wrong)
	require.Equal(t, 1, a.state.Calls.Counts[0].Rejected)
	require.Contains(t, a.out.String(), tooMuchAsked[:40])
}

// A step that another run has made first is made with that run's key, and is listed with it.
func TestAStepThatAnotherRunHasMadeFirst(t *testing.T) {
	p := played(t, "begin go", `opened {"flow":true,"toolset":[{"name":"pay"}]}`)
	st, err := take(p.state, Moment{At: p.now}, p.input("flow", `{"steps":[{"tool":"pay","provider_id":"a","arguments":{},"on_unknown":"fail","origin_run":"before"},{"tool":"pay","provider_id":"b","arguments":{},"on_unknown":"fail"}]}`))
	require.NoError(t, err)
	var origins []string
	for _, e := range st.effects {
		if c, ok := e.(CallTool); ok {
			origins = append(origins, c.OriginRun)
		}
	}
	require.Equal(t, []string{"before", ""}, origins)
	p.state = st.State
	p.lines("result t1.1 unknown gone", "flow {}", "result t1.2 unknown gone")
	require.Equal(t, []string{"before/a", "r/b"}, []string{p.state.Calls.Unknown[0].Key, p.state.Calls.Unknown[1].Key})
}

// An interrupt stops a step at once, and the server loses the task that would have recorded the
// interrupt. So the run knows no hold, and not whether the step had its effect: it asks.
func TestAStepIsCutOffByAHoldThatIsLost(t *testing.T) {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines("begin go", `opened {"flow":true,"toolset":[{"name":"pay"}]}`, `steps pay pay {}`)
	hold := &agent.HoldRef{Session: p.state.Session, N: 1, Verb: agent.VerbInterrupt}
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "pay", Status: agent.CallFailed, Text: "The tool was interrupted."}, Hold: hold})
	require.NoError(t, p.wrong)
	require.Len(t, p.state.Requests.Open, 1)
	require.Equal(t, "pay", p.state.Requests.Open[0].Step)
}
