package signals

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestCursors(t *testing.T) {
	for cursor, want := range map[string]int64{"": 0, "0": 0, "118": 118} {
		seq, err := CursorSeq(cursor)
		require.NoError(t, err)
		require.Equal(t, want, seq)
	}
	for _, cursor := range []string{"-1", "+1", "007", "1.0", "cp-7", "99999999999999999999", " 1"} {
		_, err := CursorSeq(cursor)
		require.ErrorIs(t, err, agent.CodeInvalidInput, cursor)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "after", e.Path)
	}
	require.Contains(t, CursorBeyondEnd(9, 7).Message, `"7"`)
}
