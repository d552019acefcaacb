package conformance

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Model tests an adapter against the contract of [model.Model]. p plays the provider. o
// says what its protocol can't express; nil means that nothing is missing. Run it with
// -race: some parts need it.
func Model(t *testing.T, p Provider, o *ModelOptions) {
	t.Helper()
	a := newAdapter(p, o)
	for _, part := range modelParts {
		if part.lacking == nil || !part.lacking(a.o.Unsupported) {
			t.Run(part.name, func(t *testing.T) { part.run(t, a) })
		}
	}
}

// modelPart is a rule for adapters, and its check.
type modelPart struct {
	name    string
	check   func(testing.TB, adapter)
	lacking func(Unsupported) bool // reports whether the protocol can't express what the rule is about
	lacks   string                 // the field of Unsupported that says so
}

// run checks the part. Its failures say which option to set if the protocol is the
// reason.
func (p modelPart) run(t testing.TB, a adapter) {
	if p.lacks != "" {
		t = hintTB{t, "Where the protocol can't say this, set Unsupported." + p.lacks + " in the ModelOptions."}
	}
	p.check(t, a)
}

// hintTB is a test whose failures end with a hint.
type hintTB struct {
	testing.TB
	hint string
}

func (h hintTB) Errorf(format string, args ...any) {
	h.TB.Helper()
	h.TB.Errorf("%s\n%s", fmt.Sprintf(format, args...), h.hint)
}

func (h hintTB) Fatalf(format string, args ...any) {
	h.TB.Helper()
	h.TB.Fatalf("%s\n%s", fmt.Sprintf(format, args...), h.hint)
}

var modelParts = []modelPart{
	{"a reply is what the provider said", replyIsWhatWasSaid, nil, ""},
	{"no call is lost, doubled, moved or changed", callsStay, nil, ""},
	{"arguments that are not JSON are kept as they came", brokenArgumentsAreKept, func(l Unsupported) bool { return l.BrokenJSON }, "BrokenJSON"},
	{"the provider's ids of calls are kept, also missing and repeated ones", idsStay, func(l Unsupported) bool { return l.CallIDs }, "CallIDs"},
	{"thinking keeps its signature", thinkingStays, func(l Unsupported) bool { return l.Thinking }, "Thinking"},
	{"the reason to stop is the provider's", finishIsRight, nil, ""},
	{"usage is counted once and in our terms", usageIsRight, nil, ""},
	{"a reply is emitted while it arrives", replyIsEmitted, func(l Unsupported) bool { return l.Streaming }, "Streaming"},
	{"a call that arrives in pieces is a sign of life", callIsASign, func(l Unsupported) bool { return l.Streaming }, "Streaming"},
	{"a ping is a sign of life", pingIsASign, func(l Unsupported) bool { return l.Streaming || l.Pings }, "Streaming or Unsupported.Pings"},

	{"a conversation is sent as it happened", conversationIsAsked, nil, ""},
	{"results go with their calls, whatever these are called", resultsGoWithCalls, func(l Unsupported) bool { return l.CallIDs }, "CallIDs"},
	{"thinking goes back to its own provider and to no other", thinkingGoesBack, func(l Unsupported) bool { return l.Signatures }, "Signatures"},
	{"instructions, tools and bounds are sent", settingsAreSent, nil, ""},
	{"private names are not sent", privateStays, nil, ""},
	{"an output schema does not break a call", schemaIsAccepted, nil, ""},

	{"a failure has its kind", failureHasItsKind, nil, ""},
	{"a gateway's error page gets its kind by status", gatewayIsSorted, nil, ""},
	{"a failure in the middle of a reply has its kind", midwayHasItsKind, func(l Unsupported) bool { return l.Streaming || l.Midway }, "Streaming or Unsupported.Midway"},
	{"a reply that is cut off is a failure that can be retried", cutIsAFailure, nil, ""},
	{"a provider that hangs up is a failure that can be retried", hangUpIsAFailure, nil, ""},

	{"a cancelled call is not made", overIsNotMade, nil, ""},
	{"the end of the context ends a call that waits", endEndsSilence, nil, ""},
	{"the end of the context ends a reply that arrives", endEndsReply, func(l Unsupported) bool { return l.Streaming }, "Streaming"},
	{"many calls at once are kept apart", callsAreKeptApart, nil, ""},
	{"cancelled calls leave nothing behind", nothingIsLeft, nil, ""},
	{"an unknown model has no info", unknownIsUnknown, nil, ""},
}

const (
	// suiteKey is the key that adapters get.
	suiteKey = "sk-conformance-0123456789"
	// promptTime is how soon a cancelled call has to end.
	promptTime = 2 * time.Second
)

// plainUsage is the usage of replies that are not about usage.
var plainUsage = agent.Usage{Input: 10, Output: 25}

// adapter is what a part checks.
type adapter struct {
	p Provider
	o ModelOptions
	// patience is how long a call may take before the test fails.
	patience time.Duration
}

func newAdapter(p Provider, o *ModelOptions) adapter {
	a := adapter{p: p, patience: 10 * time.Second}
	if o != nil {
		a.o = *o
	}
	a.o.Model = cmp.Or(a.o.Model, "test-1")
	return a
}

// question returns a new request with one short message.
func (a adapter) question() *model.Request {
	return &model.Request{Model: a.o.Model, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "How is Rome?")}}
}

// modelSession is an adapter with its stand-in for the provider.
type modelSession struct {
	t     testing.TB
	m     model.Model
	wait  time.Duration
	mu    sync.Mutex
	asked []ProviderRequest
}

// open returns an adapter whose provider does what play says.
func (a adapter) open(t testing.TB, play func(ProviderRequest) ProviderResponse) *modelSession {
	s := &modelSession{t: t, wait: a.patience}
	s.m = a.p.Open(t, suiteKey, func(asked ProviderRequest) ProviderResponse {
		// An adapter may send requests from several goroutines.
		s.mu.Lock()
		s.asked = append(s.asked, asked)
		s.mu.Unlock()
		return play(asked)
	})
	return s
}

// plays returns an adapter whose provider always does the same.
func (a adapter) plays(t testing.TB, response ProviderResponse) *modelSession {
	return a.open(t, func(ProviderRequest) ProviderResponse { return response })
}

func (s *modelSession) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// last returns the last request.
func (s *modelSession) last() ProviderRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(s.t, s.asked, "the adapter made no request")
	return s.asked[len(s.asked)-1]
}

// outcome is the result of a call.
type outcome struct {
	reply   *model.Reply
	err     error
	emitted *deltaRecorder
}

// deltaRecorder records what is emitted.
type deltaRecorder struct {
	on             func(model.Delta) // nil ignores further pieces
	busy, over     atomic.Bool
	overlap, late  atomic.Bool
	text, thinking strings.Builder
}

func (e *deltaRecorder) record(d model.Delta) {
	// A lock would hide what this looks for: two calls of emit at once.
	if !e.busy.CompareAndSwap(false, true) {
		e.overlap.Store(true)
		return
	}
	defer e.busy.Store(false)
	// The caller has its reply already, so nobody would read this piece.
	if e.over.Load() {
		e.late.Store(true)
		return
	}
	e.text.WriteString(d.Text)
	e.thinking.WriteString(d.Thinking)
	if e.on != nil {
		e.on(d)
	}
}

// ask makes one call and checks what has to be true of every call. how describes the call
// in failures.
func (s *modelSession) ask(ctx context.Context, how string, req func() *model.Request, on func(model.Delta)) outcome {
	s.t.Helper()
	before := s.requests()
	// Two requests, to compare what was sent with what it should still be.
	out, sent, same := outcome{emitted: &deltaRecorder{on: on}}, req(), req()
	// Room for one: after the time is up nobody receives, and the goroutine must end.
	done := make(chan error, 1)
	go func() {
		err := panicked(func() { out.reply, out.err = s.m.Generate(ctx, sent, out.emitted.record) })
		out.emitted.over.Store(true)
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(s.t, err, how)
	case <-time.After(s.wait):
		s.t.Fatalf("%s: Generate had not returned after %s", how, s.wait)
	}
	// Checked at the end of the test, because emit may be called long after Generate has returned.
	s.t.Cleanup(func() {
		if out.emitted.late.Load() {
			s.t.Errorf("%s: emit was called after Generate had returned: nobody reads it any more", how)
		}
	})
	require.Equal(s.t, same, sent, "%s: the request was changed: the caller may use it for other models at the same time", how)
	require.False(s.t, out.emitted.overlap.Load(), "%s: emit was called by two goroutines at once: it is for one goroutine", how)
	require.LessOrEqual(s.t, s.requests()-before, 1, "%s: one Generate made more than one request: the runtime retries, and it counts and pays each request; turn off the retries of the provider's SDK", how)
	if out.err != nil {
		require.Nil(s.t, out.reply, "%s: there are both a reply and the error %v: one of them would be lost", how, out.err)
	} else {
		require.NotNil(s.t, out.reply, "%s: there is neither a reply nor an error", how)
	}
	return out
}

// panicked returns the panic of a function as an error.
func panicked(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	do()
	return nil
}

// answered makes a call that has to succeed.
func (s *modelSession) answered(how string, req func() *model.Request) outcome {
	s.t.Helper()
	out := s.ask(s.t.Context(), how, req, nil)
	require.NoError(s.t, out.err, how)
	require.Equal(s.t, 1, s.requests(), "%s: requests", how)
	return out
}
