package client

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
)

// A start returns at once, with a session of its own making where none is named;
// where the session has a live run it is refused, with that run (HX-01, HX-05, HX-85).
func TestStart(t *testing.T) {
	f := &fake{begin: func(agent.Start) (string, error) { return "01a1", nil }}
	c := New(f, nil)
	sessions := map[string]bool{}
	for range 2 {
		run, err := c.Start(t.Context(), "payer", "pay", nil)
		require.NoError(t, err)
		require.Equal(t, "01a1", run.ID)
		id, err := uuid.Parse(run.Session)
		require.NoError(t, err)
		require.EqualValues(t, 7, id.Version())
		sessions[run.Session] = true
	}
	require.Len(t, sessions, 2)
	run, err := c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	require.NoError(t, err)
	require.Equal(t, "trip-42", run.Session)
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip/42"})
	require.ErrorIs(t, err, agent.InvalidInput)

	f.begin = func(agent.Start) (string, error) {
		return "", serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "01a1")
	}
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	var e *agent.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, []any{agent.Busy, "trip-42", "01a1"}, []any{e.Code, e.Session, e.Run})
}
