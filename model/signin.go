package model

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// SignIn returns the token for a request, for providers to which a worker signs in
// without a key, such as a cloud's. An adapter calls it for each request, from many
// goroutines. The implementation caches the token and renews it.
//
// An error that is a [Fault] becomes the call's error. Any other error becomes a fault of
// kind auth.
type SignIn func(ctx context.Context) (token string, err error)

// SignedIn returns the token for one request, and an endpoint whose faults do not show
// the token.
func (e *Endpoint) SignedIn(ctx context.Context, in SignIn) (*Endpoint, string, error) {
	token, err := in(ctx)
	var fault *agent.Error
	switch {
	// First: a sign-in that was cancelled may return an error of any kind.
	case ctx.Err() != nil:
		return nil, "", e.Cancelled(ctx.Err())
	case errors.As(err, &fault):
		return nil, "", fault
	case err != nil:
		return nil, "", e.Faultf(agent.FaultAuth, 0, 0, "%s: signing in failed: %v", e.name, err)
	}
	return e.Hiding(token), token, nil
}

// Hiding returns the endpoint with more secrets, those of one request.
func (e *Endpoint) Hiding(secrets ...string) *Endpoint {
	more, before := *e, e.hide
	more.hide = func(message string) string { return hiding(secrets)(before(message)) }
	return &more
}
