package model

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/fermata-agents/fermata/agent"
)

// Middleware wraps a model, so that a host sees every call of it: to count, to
// log, to change what is asked, to answer from elsewhere, or to refuse with a
// [Fault]. What it returns is called as the model is, from many goroutines at
// once. It runs in a worker's process and outside of what is replayed, so it may
// do whatever a program may; a call that is tried again passes it again.
//
// It must not change the [Request] that it is given, but may hand on a copy. A
// type that embeds the Model and has a Generate of its own is enough.
type Middleware func(Model) Model

// Wrap puts middleware around a model. The first is the outermost: it sees a
// call first, and what came of it last.
func Wrap(m Model, with ...Middleware) Model {
	for i := len(with) - 1; i >= 0; i-- {
		m = with[i](m)
	}
	return m
}

// CallInfo says which call of which run a [Request] is. The runtime fills it in;
// it is zero where something else asks.
type CallInfo struct {
	Session string
	Run     string
	Agent   string
	// Model is the full name of the model that is asked, "anthropic/claude-sonnet-5".
	Model string
	// Trace is where the call's span hangs.
	Trace agent.Trace
	// Turn counts the run's model calls, from 1.
	Turn int
	// Attempt counts how often this call was tried, from 1, attempts included that
	// were lost with their worker. The fallbacks of an attempt have its number.
	Attempt int
}

// CacheKey is a name for the session that is the same in all its calls, for
// providers that keep the requests of one conversation together to read them from
// a cache. It is a digest, since what a session is called is nobody's business but
// ours; empty if there is no session.
func (c CallInfo) CacheKey() string {
	if c.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("fermata session " + c.Session))
	return hex.EncodeToString(sum[:16])
}
