package loop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What became of the last verbs is known by their ids; one without an id is not kept, and
// of refusals only the last.
func TestVerbsAreBounded(t *testing.T) {
	v := Verbs{}
	v.processed(Processed{Seq: 1})
	require.Empty(t, v.Processed)
	for n := range maxProcessed + 5 {
		v.processed(Processed{ID: fmt.Sprint("v-", n), Seq: int64(n)})
		v.refused(agent.RefusedVerb{Verb: fmt.Sprint(n)})
	}
	require.Len(t, v.Processed, maxProcessed)
	_, old := v.find("v-4")
	last, ok := v.find(fmt.Sprint("v-", maxProcessed+4))
	require.Equal(t, []any{false, true, int64(maxProcessed + 4)}, []any{old, ok, last.Seq})
	_, ok = v.find("")
	require.False(t, ok)
	require.Len(t, v.Refused, maxRefused)
	require.Equal(t, fmt.Sprint(maxProcessed+4), v.Refused[maxRefused-1].Verb)
}

// A refusal keeps its code and path when it was wrapped on the way.
func TestWrappedRefusals(t *testing.T) {
	e := asError(fmt.Errorf("reading it: %w", agent.Errorf(agent.NotFound, "no such run").At("run")))
	require.Equal(t, agent.NotFound, e.Code)
	require.Equal(t, "run", e.Path)
}
