package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// Only an application error's type crosses a boundary: codes live there (OA-66,
// PA-63).
func TestErrorsCrossAsCodes(t *testing.T) {
	was := agent.Errorf(agent.CodeProviderError, "overloaded: %w", io.ErrUnexpectedEOF)
	was.Retryable, was.RetryAfter = true, time.Minute
	was.Provider = &agent.ProviderFault{Kind: agent.FaultOverload, Model: "m", HTTP: 529}
	left := cross(toTemporal(fmt.Errorf("asking m: %w", was)))
	var app *temporal.ApplicationError
	require.ErrorAs(t, left, &app)
	require.Equal(t, "provider_error", app.Type())
	require.False(t, app.NonRetryable())
	require.Equal(t, time.Minute, app.NextRetryDelay())

	got := FromTemporal(left)
	require.ErrorIs(t, got, agent.CodeProviderError)
	require.Equal(t, "asking m: overloaded: unexpected EOF", got.Message)
	require.Equal(t, was.Provider, got.Provider)
	require.NotErrorIs(t, got, io.ErrUnexpectedEOF)
}

// cross takes an error over the boundary as Temporal does.
func cross(err error) error {
	c := temporal.GetDefaultFailureConverter()
	return c.FailureToError(c.ErrorToFailure(err))
}

func TestErrorsWithoutACodeAreOurFault(t *testing.T) {
	var app *temporal.ApplicationError
	require.ErrorAs(t, toTemporal(errors.New("oops")), &app)
	require.Equal(t, "internal", app.Type())
	require.True(t, app.NonRetryable())
	// A type that is not ours, such as a Go type's name, is no code.
	require.Equal(t, agent.CodeInternal, FromTemporal(temporal.NewApplicationError("x", "*errors.errorString")).Code)
}

func TestALostWorkerIsTold(t *testing.T) {
	lost := FromTemporal(temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil))
	require.ErrorIs(t, lost, ErrLost)
	for _, cut := range []error{context.Canceled, context.DeadlineExceeded} { // the SDK's own, as a worker stops
		stopped := FromTemporal(cross(cut))
		require.ErrorIs(t, stopped, ErrLost)
		var what Lost
		require.ErrorAs(t, stopped, &what)
		require.False(t, what.HeartbeatDetails(new(int)))
		require.NotErrorIs(t, FromTemporal(cross(toTemporal(cut))), ErrLost)
	}
	slow := FromTemporal(temporal.NewTimeoutError(enums.TIMEOUT_TYPE_START_TO_CLOSE, nil))
	require.NotErrorIs(t, slow, ErrLost)
	require.Equal(t, agent.CodeTimeout, slow.Code)
	require.Nil(t, FromTemporal(nil))
}

// A step that was not begun says so across Temporal, and how often it was tried before.
func TestAStepThatFindsNoSlot(t *testing.T) {
	var full NoSlot
	err := FromTemporal(toTemporal(NoSlot{Tried: 2}))
	require.ErrorAs(t, err, &full)
	require.Equal(t, 2, full.Tried)
	var app *temporal.ApplicationError
	require.ErrorAs(t, toTemporal(NoSlot{}), &app)
	require.True(t, app.NonRetryable(), "the run schedules it anew, and not the server")
}

// What a validator refuses is told from an outcome that the server keeps, on the other side too.
func TestARejectionIsKnown(t *testing.T) {
	bad := agent.Errorf(agent.CodeDenied, "no")
	for _, err := range []error{Rejection(bad), cross(Rejection(bad))} {
		require.True(t, Rejected(err))
		require.Equal(t, agent.CodeDenied, FromTemporal(err).Code)
	}
	for _, err := range []error{nil, bad, Failure(bad, nil), cross(Failure(bad, nil)), Rejection(nil)} {
		require.False(t, Rejected(err))
	}
}
