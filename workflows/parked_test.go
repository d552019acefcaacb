package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
)

// An agent in the background that is parked for a year looks at its parent ever more
// seldom, and once a day at last.
func TestAParkedAgentLooksOnceADay(t *testing.T) {
	start := &wire.ChildStart{Parent: wire.Parent{Session: "p", Run: "p"}, Depth: 1, Background: true}
	wait := agent.ToolCall{Tool: agent.AwaitResumptionTool, Arguments: []byte(`{}`)}
	state := stand(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, start, calls(wait), loop.Sealed{Head: "h"})
	at, looks := noon, 0
	step := func(in loop.Input) {
		next, effects, err := loop.Step(state, loop.Moment{At: at}, in)
		require.NoError(t, err)
		state = next
		for _, e := range effects {
			switch e := e.(type) {
			case loop.CheckParent:
				looks++
			case loop.SetTimer:
				at = e.At
			}
		}
	}
	at = noon.Add(time.Minute)
	for at.Before(noon.AddDate(1, 0, 0)) {
		before, was := at, looks
		step(loop.TimerFired{})
		if looks > was {
			step(loop.ParentChecked{})
		}
		require.True(t, at.After(before), "it wakes again")
	}
	require.InDelta(t, 365, looks, 15)
}
