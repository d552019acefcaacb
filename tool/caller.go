package tool

import "context"

// caller names the session and run for which a [Source] lists its tools.
type caller struct{ session, run string }

type callerKey struct{}

// WithCaller returns a context that tells a [Source] for which session and run it lists
// its tools. A server's list may depend on who has signed in. The runtime calls it before
// List; for a call, read the [Call] instead.
func WithCaller(ctx context.Context, session, run string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{session, run})
}

// CallerOf returns the session and run for which a source lists its tools. Both are empty
// if there is none, as when a command only checks a server.
func CallerOf(ctx context.Context) (session, run string) {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.session, c.run
}
