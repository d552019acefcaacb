package model_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// The token of a request is in none of its faults, nor are the endpoint's own secrets; a
// failure to sign in has a kind, and the end of the context is no failure.
func TestSignedIn(t *testing.T) {
	e := model.NewEndpoint("house", "http://me:the-password-0123@house.example", "the-key-0123456")
	once, token, err := e.SignedIn(t.Context(), func(context.Context) (string, error) { return "the-token-0123456", nil })
	require.NoError(t, err)
	require.Equal(t, "the-token-0123456", token)
	said := once.Faultf(agent.FaultAuth, 401, 0, "%s %s %s", token, "the-key-0123456", "the-password-0123").Error()
	require.Contains(t, said, "[secret] [secret] [secret]")
	require.Contains(t, e.Faultf(agent.FaultAuth, 401, 0, "%s", token).Error(), token, "the endpoint itself is for all requests")

	var fault *agent.Error
	_, _, err = e.SignedIn(t.Context(), func(context.Context) (string, error) { return "", errors.New("who are you?") })
	require.ErrorAs(t, err, &fault)
	require.Equal(t, agent.FaultAuth, fault.Provider.Kind)
	require.Contains(t, fault.Message, "house: signing in failed: who are you?")
	_, _, err = e.SignedIn(t.Context(), func(context.Context) (string, error) {
		return "", model.Fault(agent.FaultTransient, 503, 0, "come back later")
	})
	require.ErrorAs(t, err, &fault)
	require.Equal(t, agent.FaultTransient, fault.Provider.Kind)

	ctx, cancel := context.WithCancel(t.Context())
	_, _, err = e.SignedIn(ctx, func(context.Context) (string, error) {
		cancel()
		return "", errors.New("stopped")
	})
	require.ErrorIs(t, err, context.Canceled)
}
