package logging

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
)

// A worker's lines of the Temporal SDK name the session as all others do.
func TestLinesOfTheSDKNameTheSession(t *testing.T) {
	var lines bytes.Buffer
	all := New(&lines, false)
	all.SDKWarnings = true
	l := log.With(all.SDK(), "WorkflowID", "trip-42", "RunID", "01a1")
	l.Error("Activity error.", "Error", errors.New("no"))
	all.SDK().Warn("late", "WorkflowID", "trip-43")
	all.SDK().Warn("away")
	told := bytes.Split(lines.Bytes(), []byte("\n"))
	require.Contains(t, string(told[0]), `"session": "trip-42"`)
	require.Contains(t, string(told[1]), `"session": "trip-43"`)
	require.NotContains(t, string(told[2]), "session")
}
