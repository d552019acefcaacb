package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The origin keeps what the beginning needs until the run has opened, and of a start that
// can't be meant only a name that could be one.
func TestWhatAnOriginKeeps(t *testing.T) {
	for name, kept := range map[string]string{"reviewer": "reviewer", "no name\n": ""} {
		o := Origin{}
		o.refuseStart(agent.Start{Agent: name, Input: agent.Input{Text: "secret"}})
		require.Equal(t, agent.Start{Agent: kept}, *o.Start)
	}
	o := Origin{}
	o.setStart(agent.Start{Input: agent.Input{Text: "go"}, Labels: map[string]string{"a": "b"}}, "brief")
	o.located(Located{Unrecovered: "gone"})
	o.located(Located{Head: "h"})
	require.Equal(t, []string{"h", "gone"}, []string{o.StartPoint.Head, o.StartPoint.Unrecovered})
	o.dropStart()
	require.Equal(t, Origin{Task: "go", Labels: map[string]string{"a": "b"}}, o)
}
