package env

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestPlainUntil(t *testing.T) {
	for text, want := range map[string]time.Time{"": {}, "2026-12-01T08:00:00Z": time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Always: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Setenv(Plain, text)
		got, err := PlainUntil()
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), text)
	}
	t.Setenv(Plain, "tomorrow")
	_, err := PlainUntil()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, Plain)
}
