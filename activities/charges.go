package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// charges counts what a model call uses over all its attempts and models. What the final
// reply's usage does not contain is charged beside it, also if there is no reply. Each
// attempt leaves what it knows in its heartbeats; after a lost worker the last heartbeat
// is all that is known.
type charges struct {
	mu sync.Mutex
	// estimator says how to estimate the length of requests; nil if that is not known yet. To make it
	// reads the whole log, so it is made when an estimate is needed: a provider mostly reports the usage.
	estimator func() window.TokenEstimator
	// sent are the messages of the request in progress, if its input has still to be estimated.
	sent []agent.Message
	Carryover
	answered *agent.Charge // what the last complete reply has used
	// fresh is what this attempt has charged and no daily limit has counted yet,
	// including charges for earlier attempts that were lost.
	fresh []agent.Charge
	price agent.Price // of the run's first model
}

// Carryover is what the attempts at a model call leave to the next attempt.
type Carryover struct {
	Attempt int            `json:"attempt,omitempty"` // the number of the attempt that wrote this
	Charges []agent.Charge `json:"charges,omitempty"`
	// Open estimates what the request in progress has used. UnknownAttempts counts
	// attempts of which nothing is known.
	Open            *agent.Charge `json:"open,omitempty"`
	UnknownAttempts int           `json:"unknown_attempts,omitempty"`
}

// newCharges takes over what earlier attempts have left, in this activity or in those
// before it.
func newCharges(ctx context.Context, before *Carryover) *charges {
	t := &charges{}
	if before != nil {
		t.Carryover = *before
		t.Charges = slices.Clone(before.Charges)
	}
	left := Carryover{}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &left) == nil {
		t.Carryover = left // on an error another build wrote it, and all attempts count as lost
	}
	t.Attempt = int(activity.GetInfo(ctx).Attempt)
	// The attempts after the one that left this, and before this one, were lost without a
	// heartbeat.
	t.UnknownAttempts += max(0, t.Attempt-1-left.Attempt)
	// A request that was in progress when its worker was lost was paid anyway.
	t.chargeBrokenOff()
	return t
}

// measures sets how to estimate the length of requests. The estimator is made once, when it is needed.
func (t *charges) measures(estimator func() window.TokenEstimator) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.estimator = sync.OnceValue(estimator)
}

// estimatorOf makes the estimator for a log's last run, with its Spec.
func estimatorOf(log *store.View, spec *agent.Spec) func() window.TokenEstimator {
	return func() window.TokenEstimator { return window.NewTokenEstimator(log, spec) }
}

// startCall notes that a request is sent. Attempts of which nothing is known are charged
// as if each had sent the same request.
func (t *charges) startCall(name string, messages []agent.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Open, t.sent = &agent.Charge{Model: name, Estimated: true}, messages
	if t.UnknownAttempts > 0 {
		t.estimateInput()
	}
	for ; t.UnknownAttempts > 0; t.UnknownAttempts-- {
		t.add(agent.Charge{Usage: t.Open.Usage, Estimated: true})
	}
}

// estimateInput estimates the input of the request in progress, unless the provider has reported it. The
// caller holds mu.
func (t *charges) estimateInput() {
	if t.Open != nil && t.sent != nil && t.estimator != nil {
		t.Open.Usage.Input = t.estimator().RequestTokens(t.sent)
	}
	t.sent = nil
}

// inCall reports whether a request was begun and has not ended.
func (t *charges) inCall() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Open != nil
}

// bytesPerToken is less than English text has, so that an estimate is rather too high.
const bytesPerToken = 3

// addReceived notes what has arrived of the reply: bytes in all, and the usage that the
// provider has reported so far.
func (t *charges) addReceived(bytes int, reported agent.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Open == nil { // nothing is in progress: late data of a request that ended
		return
	}
	u := &t.Open.Usage
	if reported.Input > 0 {
		t.sent = nil
		u.Input, u.CacheRead, u.CacheWrite = reported.Input, reported.CacheRead, reported.CacheWrite
	}
	u.Searches = max(u.Searches, reported.Searches)
	u.Output = max(u.Output, reported.Output, int64(bytes+bytesPerToken-1)/bytesPerToken)
}

// endCall ends the request in progress: with what its reply has used, or nil if it was
// free.
func (t *charges) endCall(answered *agent.Charge) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Open, t.sent, t.answered = nil, nil, answered
	if answered != nil {
		t.fresh = append(t.fresh, *answered)
	}
}

// endCallEstimated ends a request whose reply has so many bytes and for which the
// provider reported no usage.
func (t *charges) endCallEstimated(bytes int, price agent.Price) agent.Usage {
	t.addReceived(bytes, agent.Usage{})
	t.mu.Lock()
	t.estimateInput()
	used := t.Open.Usage
	// Only a fallback's charge carries its cost. The run prices what its own model has
	// used.
	if t.Open.Model != "" {
		t.Open.Cost = price.Of(used)
	}
	t.mu.Unlock()
	t.chargeBrokenOff()
	return used
}

// chargeBrokenOff charges the request in progress, if there is one: it ended without a
// complete reply.
func (t *charges) chargeBrokenOff() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Open != nil {
		t.estimateInput()
		t.add(*t.Open)
		t.Open = nil
	}
}

// add adds a charge, which counts for the daily limits too.
func (t *charges) add(c agent.Charge) {
	t.fresh = append(t.fresh, c)
	t.addBeside(c)
}

// addBeside merges a charge into the one of the same model and kind.
func (t *charges) addBeside(c agent.Charge) {
	i := slices.IndexFunc(t.Charges, func(o agent.Charge) bool { return o.Model == c.Model && o.Estimated == c.Estimated })
	if i < 0 {
		t.Charges = append(t.Charges, c)
		return
	}
	t.Charges[i].Usage, t.Charges[i].Cost = t.Charges[i].Usage.Add(c.Usage), amount.Add(t.Charges[i].Cost, c.Cost)
}

// failed ends a request that failed. It is charged unless it was free.
func (t *charges) failed(err error, fallback string, price agent.Price) {
	if t.refused(err) {
		t.endCall(nil)
		return
	}
	if fallback != "" {
		t.mu.Lock()
		t.estimateInput()
		t.Open.Cost = price.Of(t.Open.Usage)
		t.mu.Unlock()
	}
	t.chargeBrokenOff()
}

func (t *charges) refused(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return free(err, t.Open.Usage.Output > 0)
}

// charged returns what was charged since the last call, for the daily limits.
func (t *charges) charged() (sum agent.DailyLimits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.fresh = nil }()
	for _, c := range t.fresh {
		if c.Model == "" {
			c.Cost = t.price.Of(c.Usage)
		}
		sum.Tokens, sum.CostUSD = amount.Add(sum.Tokens, c.Usage.Total()), amount.Add(sum.CostUSD, c.Cost)
	}
	return sum
}

// heartbeat returns the details of a heartbeat. They are copies: the SDK encodes them
// later.
func (t *charges) heartbeat() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.estimateInput()
	out := t.Carryover
	out.Charges = slices.Clone(t.Charges)
	if t.Open != nil {
		open := *t.Open
		out.Open = &open
	}
	return out
}

// settle adds the charges to the reply or to the error.
func (t *charges) settle(ctx context.Context, reply wire.Reply, err error) (wire.Reply, error) {
	t.chargeBrokenOff()
	// The provider was paid for a reply that is not used, and the reply's own usage does
	// not count it.
	if t.answered != nil && (err != nil || reply.Usage == agent.Usage{}) { // its reply was of no use
		t.addBeside(*t.answered)
	}
	if err == nil {
		reply.Charges = t.Charges
		return reply, nil
	}
	// The next attempt gets the last heartbeat, and not this error.
	activity.RecordHeartbeat(ctx, t.heartbeat())
	var e *agent.Error
	if !errors.As(err, &e) || len(t.Charges) == 0 {
		return reply, err
	}
	whole := *e
	whole.Message, whole.Charges = err.Error(), t.Charges
	return reply, &whole
}

// free reports whether a failed request costs nothing: it did not reach the provider, or
// was refused before any of the reply arrived.
func free(err error, heard bool) bool {
	var e *agent.Error
	if heard || !errors.As(err, &e) || e.Provider == nil {
		return errors.Is(err, errOpen)
	}
	kinds := []agent.FaultKind{agent.FaultTransient, agent.FaultTimeout}
	return e.Provider.Unsent || e.Provider.HTTP >= 400 || errors.Is(err, errOpen) || !slices.Contains(kinds, e.Provider.Kind)
}

// charges returns all that was used. An estimate of zero stands for a call of which
// nothing is known.
func (l Carryover) charges() []agent.Charge {
	all := slices.Clone(l.Charges)
	if l.Open != nil {
		all = append(all, *l.Open)
	}
	return append(all, slices.Repeat([]agent.Charge{{Estimated: true}}, l.UnknownAttempts)...)
}

// TakeOver passes what the attempts of a failed activity have used to the activity that
// makes the call again.
func (in *ModelInput) TakeOver(err *agent.Error) { in.Carryover = in.Carryover.after(err) }

// TakeOver does for a flow's model call what [ModelInput.TakeOver] does. Other calls use nothing.
func (in *ToolInput) TakeOver(err *agent.Error) {
	if in.generates() {
		in.Carryover = in.Carryover.after(err)
	}
}

// generates reports whether the call is a flow's call of a model.
func (in ToolInput) generates() bool { return in.Tool == agent.GenerateTool && in.Step != "" }

// after returns what is left after the attempts of an activity that failed; l may be nil.
func (l *Carryover) after(err *agent.Error) *Carryover {
	left := Carryover{}
	if l != nil {
		left = *l
	}
	var lost durable.Lost
	var full durable.NoSlot
	said := Carryover{}
	switch {
	case errors.As(err, &lost):
		if lost.HeartbeatDetails(&said) {
			left = said
		}
		// Whatever the lost attempt sent after its last heartbeat is unknown.
		if said.Open == nil { // it names no request in progress
			left.UnknownAttempts++
		}
	case errors.As(err, &full):
		if len(full.HeartbeatDetails) > 0 && json.Unmarshal(full.HeartbeatDetails, &said) == nil {
			left = said
		} else {
			left.UnknownAttempts += full.Tried
		}
	case len(err.Charges) > 0:
		left.Charges = err.Charges
	}
	// The next activity counts its attempts from 1 again.
	left.Attempt = 0
	return &left
}

// AddCharges adds to an error what the call has used, unless an attempt has reported it.
func (in ModelInput) AddCharges(err *agent.Error) *agent.Error { return in.Carryover.addTo(err) }

// AddCharges adds to the last error of a flow's model call what all its attempts have used.
func (in ToolInput) AddCharges(err *agent.Error) *agent.Error {
	if !in.generates() {
		return err
	}
	left := in.Carryover
	if errors.Is(err, durable.ErrLost) {
		left = left.after(err)
	}
	return left.addTo(err)
}

func (l *Carryover) addTo(err *agent.Error) *agent.Error {
	if l == nil || len(err.Charges) > 0 {
		return err
	}
	whole := *err
	whole.Charges = l.charges()
	return &whole
}
