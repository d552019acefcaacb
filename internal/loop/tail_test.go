package loop

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func refusal(verb string) CommandRefused {
	return CommandRefused{Verb: verb, Err: agent.Errorf(agent.CodeStale, "nobody waits for it")}
}

// States that continue from the same one have each their own log.
func TestLogsPart(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}})
	d.step(refusal("first"))
	for cap(d.state.Log.Tail) < len(d.state.Log.Tail)+2 { // until there is room for both behind it
		d.step(refusal("first"))
	}
	from, n := d.state, len(d.state.Log.Tail)
	d.step(refusal("left"))
	d.step(refusal("left again"))
	left := d.state
	d.state = from
	d.step(refusal("right"))
	verbs := func(s State) (list []string) {
		for _, e := range s.Log.Tail[n-1:] {
			list = append(list, e.Refusal.Verb)
		}
		return list
	}
	require.Equal(t, []string{"first"}, verbs(from))
	require.Equal(t, []string{"first", "left", "left again"}, verbs(left))
	require.Equal(t, []string{"first", "right"}, verbs(d.state))
}

// Of thousands of signals that come with one task the last costs what the first does:
// what is in the log already is not copied for each.
func TestALongTailCostsNoMore(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}})
	const many = 5000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range many {
		next, _, err := Step(d.state, Moment{}, refusal("emit"))
		require.NoError(t, err)
		d.state = next
	}
	runtime.ReadMemStats(&after)
	require.Greater(t, len(d.state.Log.Tail), many)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/many, uint64(50_000), "bytes for each")
}
