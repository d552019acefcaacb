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
		o.refused(agent.Start{Agent: name, Input: agent.Input{Text: "secret"}})
		require.Equal(t, agent.Start{Agent: kept}, *o.Start)
	}
	o := Origin{}
	o.asked(agent.Start{Input: agent.Input{Text: "go"}, Labels: map[string]string{"a": "b"}}, "brief")
	o.located(Located{Lost: "gone"})
	o.located(Located{Head: "h"})
	require.Equal(t, []string{"h", "gone"}, []string{o.Point.Head, o.Point.Lost})
	o.dropStart()
	require.Equal(t, Origin{Task: "go", Labels: map[string]string{"a": "b"}}, o)
}
