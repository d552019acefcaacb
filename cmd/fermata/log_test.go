package main

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
	c := &cli{log: newLogger(&lines, false), sdkWarnings: true}
	l := log.With(c.sdkLogger(), "WorkflowID", "trip-42", "RunID", "01a1")
	l.Error("Activity error.", "Error", errors.New("no"))
	c.sdkLogger().Warn("late", "WorkflowID", "trip-43")
	c.sdkLogger().Warn("away")
	all := bytes.Split(lines.Bytes(), []byte("\n"))
	require.Contains(t, string(all[0]), `"session": "trip-42"`)
	require.Contains(t, string(all[1]), `"session": "trip-43"`)
	require.NotContains(t, string(all[2]), "session")
}
