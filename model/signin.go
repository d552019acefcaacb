package model

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// SignIn gives the token that a request carries, for providers where a worker signs in
// and has no key: a cloud's. An adapter calls it once for each request; who implements it
// keeps a token while it lasts and renews it. It is called from many goroutines.
//
// An error that is a [Fault] is the call's own; any other is one of kind auth.
type SignIn func(ctx context.Context) (token string, err error)

// SignedIn asks for the token of one request. Faults of the endpoint that comes with it
// do not show the token.
func (e *Endpoint) SignedIn(ctx context.Context, in SignIn) (*Endpoint, string, error) {
	token, err := in(ctx)
	var fault *agent.Error
	switch {
	case ctx.Err() != nil:
		return nil, "", e.Cancelled(ctx.Err())
	case errors.As(err, &fault):
		return nil, "", fault
	case err != nil:
		return nil, "", e.Faultf(agent.FaultAuth, 0, 0, "%s: nobody could sign in: %v", e.name, err)
	}
	return e.Hiding(token), token, nil
}

// Hiding is the endpoint with more secrets: those of one request.
func (e *Endpoint) Hiding(secrets ...string) *Endpoint {
	more, before := *e, e.hide
	more.hide = func(message string) string { return hiding(secrets)(before(message)) }
	return &more
}
