package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// New instructions replace the agent's own. Those of its tool sources stay behind them, also when the
// change is applied twice.
func TestNewInstructionsKeepThoseOfTheSources(t *testing.T) {
	spec := func(own string) Spec { return Spec{Definition: Definition{Name: "a", Instructions: own}} }
	for _, c := range []struct{ own, sources, fresh, want string }{
		{"Be brief.", "The wiki is read-only.", "Be kind.", "Be kind.\n\nThe wiki is read-only."},
		{"", "The wiki is read-only.", "Be kind.", "Be kind.\n\nThe wiki is read-only."},
		{"Be brief.", "The wiki is read-only.", "", "The wiki is read-only."},
		{"Be brief.", "", "Be kind.", "Be kind."},
		{"Be brief.", "", "", ""},
	} {
		change := NewInstructions(c.fresh, "ana")
		was := spec(c.own).WithSources(c.sources)
		now := change.ApplyTo(was)
		require.Equal(t, c.want, now.Instructions)
		require.Equal(t, now, change.ApplyTo(now))
		was.Instructions, was.SourceInstructions = now.Instructions, now.SourceInstructions
		require.Equal(t, was, now, "nothing else changes")
	}
	require.Equal(t, "213c22ed", NewInstructions("Be brief.", "").Digest[:8])
}
