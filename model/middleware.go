package model

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/fermata-agents/fermata/agent"
)

// Middleware wraps a model, so that a program sees every model call. It can count, log,
// change the request, answer from elsewhere, or refuse with a [Fault]. The model that it
// returns has to be safe for concurrent use. It runs in a worker and outside of what is
// replayed, so it may do anything that a program may do. A retried call passes through it
// again.
//
// It must not change the [Request], but may pass on a changed copy. A type that embeds
// [Model] and has its own Generate is enough.
type Middleware func(Model) Model

// Wrap returns a model with middleware around it. The first middleware is the outermost:
// it sees a call first, and its result last.
func Wrap(m Model, with ...Middleware) Model {
	for i := len(with) - 1; i >= 0; i-- {
		m = with[i](m)
	}
	return m
}

// CallInfo says which call of which run a [Request] belongs to. The runtime sets it; it
// is zero for other callers.
type CallInfo struct {
	Session string
	Run     string
	Agent   string
	// Model is the full name of the called model, "anthropic/claude-sonnet-5".
	Model string
	// Trace is the parent of the call's span.
	Trace agent.Trace
	// Turn counts the run's model calls, from 1.
	Turn int
	// Attempt counts the attempts at this call, from 1, also those that were lost with
	// their worker. The fallbacks of an attempt have its number.
	Attempt int
}

// CacheKey returns a key that is the same in all calls of a session. Providers use it to
// find the cached requests of a conversation. It is a digest, because a session's id is
// private. It is empty if there is no session.
func (c CallInfo) CacheKey() string {
	if c.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("fermata session " + c.Session))
	return hex.EncodeToString(sum[:16])
}
