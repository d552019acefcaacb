package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// An agent in the background that is parked for a year looks at its parent ever more
// seldom, and once a day at last.
func TestAParkedAgentLooksOnceADay(t *testing.T) {
	birth := &agent.Birth{Parent: agent.Parent{Session: "p", Run: "p"}, Depth: 1, Background: true}
	wait := agent.ToolCall{Tool: agent.ParkTool, Arguments: []byte(`{}`)}
	state := stand(t, agent.Definition{Tools: []string{agent.ParkTool}}, birth, calls(wait), loop.Sealed{Head: "h"})
	at, looks := noon, 0
	step := func(in loop.Input) {
		next, effects, err := loop.Step(state, loop.Moment{At: at}, in)
		require.NoError(t, err)
		state = next
		for _, e := range effects {
			switch e := e.(type) {
			case loop.Lease:
				looks++
			case loop.Wake:
				at = e.At
			}
		}
	}
	at = noon.Add(time.Minute)
	for at.Before(noon.AddDate(1, 0, 0)) {
		before, was := at, looks
		step(loop.Tick{})
		if looks > was {
			step(loop.Leased{})
		}
		require.True(t, at.After(before), "it wakes again")
	}
	require.InDelta(t, 365, looks, 15)
}
