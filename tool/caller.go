package tool

import "context"

// caller is for whom a [Source] is asked for its tools.
type caller struct{ session, run string }

type callerKey struct{}

// WithCaller returns a context that tells a [Source] for which session and run it is asked
// for its tools: what a server lists may depend on who has signed in to it. The runtime
// calls it before List; a Call says so itself.
func WithCaller(ctx context.Context, session, run string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{session, run})
}

// CallerOf returns for whom a source is asked for its tools; both are empty where that is
// not known, as when somebody looks whether a server answers.
func CallerOf(ctx context.Context) (session, run string) {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.session, c.run
}
