package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// faultReason is the provider's message in failures. People must see it.
const faultReason = "conformance: the reason why"

// failed makes a call that has to fail, and checks what has to be true of every failure.
func (s *modelSession) failed(how string, req func() *model.Request) *agent.Error {
	s.t.Helper()
	before := s.requests()
	out := s.ask(s.t.Context(), how, req, nil)
	require.Error(s.t, out.err, "%s: the reply %s", how, asJSON(out.reply))
	require.Equal(s.t, 1, s.requests()-before, "%s: requests", how)
	var fault *agent.Error
	require.True(s.t, errors.As(out.err, &fault) && fault.Provider != nil, "%s: %v is not a provider's fault (model.Fault): the runtime can't tell whether to retry", how, out.err)
	kind := fault.Provider.Kind
	require.Equal(s.t, kind.Retryable(), fault.Retryable, "%s: the kind %s decides whether to retry, not the adapter", how, kind)
	require.Equal(s.t, kind == agent.FaultAuth, fault.Code == agent.CodeProviderAuth, "%s: the code of %s is %s", how, kind, fault.Code)
	require.NotEmpty(s.t, strings.TrimSpace(fault.Message), "%s: the error has no message for people", how)
	require.NotContains(s.t, fault.Message, "\n", "%s: a message is one line", how)
	require.NotContains(s.t, fmt.Sprintf("%v %+v %#v", out.err, out.err, out.err), suiteKey, "%s: the key is in the error, so it gets into histories and logs", how)
	return fault
}

// kinds returns the kinds of failures that the provider distinguishes.
func (l Unsupported) kinds() []agent.FaultKind {
	return slices.DeleteFunc([]agent.FaultKind{
		agent.FaultRateLimit, agent.FaultOverload, agent.FaultTransient, agent.FaultAuth, agent.FaultQuota, agent.FaultBadRequest, agent.FaultContext,
	}, func(k agent.FaultKind) bool { return slices.Contains(l.Kinds, k) })
}

// failing makes a response a failure of a kind. The provider's message contains the key,
// if there is one: some real providers quote it.
func (l Unsupported) failing(s ProviderResponse, kind agent.FaultKind) ProviderResponse {
	s.Fail, s.FailMessage = kind, faultReason
	// Some providers quote the key that they refuse; adapters must remove it.
	if !l.Keys {
		s.FailMessage += " (you sent " + suiteKey + ")"
	}
	return s
}

// kindMatters explains what a wrong kind causes.
const kindMatters = "%s: the kind decides whether and when the call is retried, and with which model"

func failureHasItsKind(t testing.TB, a adapter) {
	for _, kind := range a.o.Unsupported.kinds() {
		response := a.o.Unsupported.failing(ProviderResponse{}, kind)
		if kind == agent.FaultRateLimit || kind == agent.FaultOverload {
			response.RetryAfter = 17 * time.Second
		}
		fault := a.plays(t, response).failed(string(kind), a.question)
		require.Equal(t, kind, fault.Provider.Kind, kindMatters+" (see Unsupported.Kinds)", kind)
		require.Equal(t, response.RetryAfter, fault.RetryAfter, "%s: how long the provider asked to wait", kind)
		require.Contains(t, fault.Message, faultReason, "%s: the provider's message is lost", kind)
	}
}

func gatewayIsSorted(t testing.TB, a adapter) {
	for status, kind := range map[int]agent.FaultKind{
		400: agent.FaultBadRequest, 401: agent.FaultAuth, 402: agent.FaultQuota, 403: agent.FaultAuth, 404: agent.FaultBadRequest,
		408: agent.FaultTransient, 409: agent.FaultTransient, 413: agent.FaultContext, 429: agent.FaultRateLimit,
		500: agent.FaultTransient, 502: agent.FaultTransient, 503: agent.FaultOverload, 504: agent.FaultTransient, 529: agent.FaultOverload,
	} {
		how := fmt.Sprintf("a page with status %d", status)
		fault := a.plays(t, ProviderResponse{GatewayStatus: status}).failed(how, a.question)
		require.Equal(t, kind, fault.Provider.Kind, kindMatters, how)
		require.Equal(t, status, fault.Provider.HTTP, how)
	}
}

func midwayHasItsKind(t testing.TB, a adapter) {
	for _, kind := range a.o.Unsupported.kinds() {
		response := a.o.Unsupported.failing(wholeReply(model.FinishStop, textBlock("Hel", "lo", ", ", "wor", "ld")), kind)
		response.FailMidway = true
		how := string(kind) + " in the middle of a reply"
		fault := a.plays(t, response).failed(how, a.question)
		require.Equal(t, kind, fault.Provider.Kind, kindMatters+" (see Unsupported.Kinds)", how)
	}
}

// cutIsAFailure cuts replies at many places. What the adapter then returns as a complete
// reply must be complete.
func cutIsAFailure(t testing.TB, a adapter) {
	const cuts = 25
	whole := wholeReply(model.FinishToolCalls, textBlock("Let me ", "look."), callBlock("call_a", "weather", `{"city"`, `:"Rome"}`), callBlock("call_b", "now", `{}`))
	for i := range cuts {
		for _, reset := range []bool{false, true} {
			response := whole
			// Not zero: a cut before the first byte is the case of a provider that hangs up.
			response.Cut, response.Reset = max(0.001, float64(i)/cuts), reset
			how := fmt.Sprintf("a reply that ends after %.0f%% of it", 100*response.Cut)
			s := a.plays(t, response)
			out := s.ask(t.Context(), how, a.question, nil)
			// An error is right after every cut; a reply only if nothing of it is missing.
			if out.err != nil {
				cutFault(t, how, out.err)
				continue
			}
			require.Equal(t, calledTools(whole.parts()), calledTools(out.reply.Parts), "%s: half a reply counts as a complete one", how)
			// Usage usually comes last, so a cut may lose it.
			a.same(t, how, ProviderResponse{Blocks: whole.Blocks, Finish: whole.Finish, Usage: out.reply.Usage}, out)
		}
	}
}

func cutFault(t testing.TB, how string, err error) {
	t.Helper()
	var fault *agent.Error
	require.True(t, errors.As(err, &fault) && fault.Provider != nil, "%s: %v is not a provider's fault", how, err)
	require.Equal(t, agent.FaultTransient, fault.Provider.Kind, "%s: %v: the same request may succeed", how, err)
	require.True(t, fault.Retryable, "%s: %v", how, err)
}

func hangUpIsAFailure(t testing.TB, a adapter) {
	fault := a.plays(t, ProviderResponse{Cut: 1}).failed("a connection that is closed without an answer", a.question)
	require.Equal(t, agent.FaultTransient, fault.Provider.Kind, kindMatters, "a connection that is closed without an answer")
	require.Zero(t, fault.Provider.HTTP, "no answer has no status")
}

// contextEnded checks the error of a call whose context has ended.
func contextEnded(t testing.TB, how string, err, cause error) {
	t.Helper()
	require.ErrorIs(t, err, cause, "%s: the error must be the context's", how)
	var fault *agent.Error
	// A provider's fault would open its circuit and call fallbacks.
	require.False(t, errors.As(err, &fault) && fault.Provider != nil,
		"%s: %v blames the provider for the caller's cancellation: circuits open, and fallbacks are called", how, err)
}

func overIsNotMade(t testing.TB, a adapter) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := a.plays(t, anyReply)
	out := s.ask(ctx, "a context that has ended before", a.question, nil)
	contextEnded(t, "a context that has ended before", out.err, context.Canceled)
	require.Zero(t, s.requests(), "a request was sent although the context had ended")
}

// cancelled makes a call and cancels it when the provider has started or when something is emitted.
// The call must end soon and disconnect. Otherwise the provider continues to write at the caller's
// cost.
func (a adapter) cancelled(ctx context.Context, t testing.TB, how string, response ProviderResponse, started func(), on func(model.Delta)) {
	t.Helper()
	left := make(chan struct{})
	var once sync.Once
	// The server may notice a disconnect more than once.
	response.OnDisconnect = func() { once.Do(func() { close(left) }) }
	response.Wait = make(chan struct{})
	s := a.open(t, func(ProviderRequest) ProviderResponse {
		started()
		return response
	})
	start := time.Now()
	out := s.ask(ctx, how, a.question, on)
	require.Less(t, time.Since(start), promptTime, "%s: it continued, and a person who interrupts a run waits for it", how)
	contextEnded(t, how, out.err, ctx.Err())
	if s.requests() == 0 {
		return // it was cancelled before the provider got it
	}
	select {
	case <-left:
	case <-time.After(promptTime):
		t.Errorf("%s: the connection is still open after %s: the provider continues to write at the caller's cost", how, promptTime)
	}
}

func endEndsSilence(t testing.TB, a adapter) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.cancelled(ctx, t, "a call that was cancelled before the answer", ProviderResponse{Silent: true}, cancel, nil)
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a.cancelled(ctx, t, "a call whose time is up before the answer", ProviderResponse{Silent: true}, func() {}, nil)
}

func endEndsReply(t testing.TB, a adapter) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	response := wholeReply(model.FinishStop, textBlock("Hello", ", ", "world"))
	a.cancelled(ctx, t, "a call that was cancelled in the middle of a reply", response, func() {}, func(d model.Delta) {
		if d.Text != "" {
			cancel()
		}
	})
}

func callsAreKeptApart(t testing.TB, a adapter) {
	const many = 16
	answer := func(question string) ProviderResponse {
		return wholeReply(model.FinishToolCalls, textBlock("You said ", question), callBlock("call_a", "note", `{"text":`, asJSON(question)+`}`))
	}
	// The answer depends on the question, so a mix-up of two calls shows.
	s := a.open(t, func(asked ProviderRequest) ProviderResponse {
		var last string
		for _, m := range asked.Messages {
			last = m.Text()
		}
		return answer(last)
	})
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			// Different lengths, so calls overlap in different ways.
			question := fmt.Sprint("number ", i, strings.Repeat(" and more", i))
			req, emitted := a.question(), &deltaRecorder{}
			req.Messages[0] = agent.TextMessage(agent.RoleUser, question)
			req.Tools = suiteTools()
			var reply *model.Reply
			var err error
			if p := panicked(func() { reply, err = s.m.Generate(t.Context(), req, emitted.record) }); p != nil {
				err = p
			}
			// Errorf and not require: only the test's own goroutine may end the test.
			if err != nil || len(reply.Parts) != 2 || reply.Parts[0].Text != "You said "+question || emitted.text.String() != "You said "+question {
				t.Errorf("many calls at once: %q was answered with %s, %v", question, asJSON(reply), err)
			}
		})
	}
	wg.Wait()
	if got := s.requests(); got != many {
		t.Errorf("many calls at once: %d requests for %d calls", got, many)
	}
}

// nothingIsLeft cancels calls and counts the goroutines that remain.
func nothingIsLeft(t testing.TB, a adapter) {
	const calls = 20
	var cancel context.CancelFunc
	s := a.open(t, func(ProviderRequest) ProviderResponse {
		cancel()
		// Wait is never closed: only a disconnect ends the request.
		return ProviderResponse{Silent: true, Wait: make(chan struct{})}
	})
	before := runtime.NumGoroutine()
	for range calls {
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		s.ask(ctx, "a cancelled call", a.question, nil)
		stop()
	}
	// Idle connections of the client may stay, so some more goroutines are allowed.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+calls/2 }, a.patience, 10*time.Millisecond,
		"about %d cancelled calls left a goroutine each: a worker runs for months", calls)
}

func unknownIsUnknown(t testing.TB, a adapter) {
	m := a.plays(t, anyReply).m
	info := m.Info("a-model-that-nobody-has-0")
	info.Files, info.ResultFiles = nil, nil // a model of one's own may read files under any name
	require.True(t, info.IsZero(), "for an unknown model, no price, window or cap is better than a wrong one")
}
