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
)

// charges counts what a model call uses, over all its attempts and models: what is not the
// reply's own is charged beside it, also if there is no reply. An attempt leaves what it
// knows to the next one in its heartbeats; a worker that is lost leaves the last of them.
type charges struct {
	mu    sync.Mutex
	meter window.TokenEstimator
	known bool // the meter is there
	Carryover
	answered *agent.Charge // what the reply that came has used
	// fresh is what this attempt has found used, also by those before it that were lost, and
	// no daily limit has counted yet.
	fresh []agent.Charge
	price agent.Price // of what no fallback has used
}

// Carryover is what the attempts at a model call leave to the next one.
type Carryover struct {
	Attempt int            `json:"attempt,omitempty"` // which of its activity's wrote this
	Charges []agent.Charge `json:"charges,omitempty"`
	// Open is about what the question has used that is under way, and Lost counts attempts
	// of which nothing is known.
	Open            *agent.Charge `json:"open,omitempty"`
	UnknownAttempts int           `json:"unknown_attempts,omitempty"`
}

// newCharges takes over what the attempts before this one have left, in this activity or in
// those before it.
func newCharges(ctx context.Context, before *Carryover) *charges {
	t := &charges{}
	if before != nil {
		t.Carryover = *before
		t.Charges = slices.Clone(before.Charges)
	}
	left := Carryover{}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &left) == nil {
		t.Carryover = left // else another build wrote it: all attempts count as lost
	}
	t.Attempt = int(activity.GetInfo(ctx).Attempt)
	t.UnknownAttempts += max(0, t.Attempt-1-left.Attempt)
	t.chargeBrokenOff()
	return t
}

// measures lets the tab know how long requests are.
func (t *charges) measures(m window.TokenEstimator) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meter, t.known = m, true
}

// startCall begins a question. Attempts of which nothing is known have asked the same.
func (t *charges) startCall(name string, messages []agent.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	input := int64(0)
	if t.known {
		input = t.meter.RequestTokens(messages)
	}
	for ; t.UnknownAttempts > 0; t.UnknownAttempts-- {
		t.add(agent.Charge{Usage: agent.Usage{Input: input}, Estimated: true})
	}
	t.Open = &agent.Charge{Model: name, Usage: agent.Usage{Input: input}, Estimated: true}
}

// bytesPerToken is less than texts in English have: an estimate is rather high.
const bytesPerToken = 3

// addReceived takes what has come of the reply: bytes in all, and what the provider has told.
func (t *charges) addReceived(bytes int, told agent.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Open == nil {
		return
	}
	u := &t.Open.Usage
	if told.Input > 0 {
		u.Input, u.CacheRead, u.CacheWrite = told.Input, told.CacheRead, told.CacheWrite
	}
	u.Searches = max(u.Searches, told.Searches)
	u.Output = max(u.Output, told.Output, int64(bytes+bytesPerToken-1)/bytesPerToken)
}

// endCall ends the question that is under way: with what its reply has used, or with nothing
// if it was free of charge.
func (t *charges) endCall(answered *agent.Charge) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Open, t.answered = nil, answered
	if answered != nil {
		t.fresh = append(t.fresh, *answered)
	}
}

// endCallEstimated ends a question whose reply has so many bytes, and of which the provider did
// not tell what it has used.
func (t *charges) endCallEstimated(bytes int, price agent.Price) agent.Usage {
	t.addReceived(bytes, agent.Usage{})
	t.mu.Lock()
	used := t.Open.Usage
	if t.Open.Model != "" {
		t.Open.Cost = price.Of(used)
	}
	t.mu.Unlock()
	t.chargeBrokenOff()
	return used
}

// chargeBrokenOff charges a question that broke off.
func (t *charges) chargeBrokenOff() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Open != nil {
		t.add(*t.Open)
		t.Open = nil
	}
}

// add adds a charge; there is one for each model.
func (t *charges) add(c agent.Charge) {
	t.fresh = append(t.fresh, c)
	t.addBeside(c)
}

// addBeside puts a charge beside the others.
func (t *charges) addBeside(c agent.Charge) {
	i := slices.IndexFunc(t.Charges, func(o agent.Charge) bool { return o.Model == c.Model && o.Estimated == c.Estimated })
	if i < 0 {
		t.Charges = append(t.Charges, c)
		return
	}
	t.Charges[i].Usage, t.Charges[i].Cost = t.Charges[i].Usage.Add(c.Usage), amount.Add(t.Charges[i].Cost, c.Cost)
}

// failed ends a question that failed: it is charged, unless it was free.
func (t *charges) failed(err error, fallback string, price agent.Price) {
	if t.refused(err) {
		t.endCall(nil)
		return
	}
	if fallback != "" {
		t.mu.Lock()
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

// charged is what was found used since the last look, in the measures of daily limits.
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

// heartbeat is what a heartbeat carries.
func (t *charges) heartbeat() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.Carryover
	out.Charges = slices.Clone(t.Charges)
	if t.Open != nil {
		open := *t.Open
		out.Open = &open
	}
	return out
}

// settle puts what was used beside what came of the call.
func (t *charges) settle(ctx context.Context, reply wire.Reply, err error) (wire.Reply, error) {
	t.chargeBrokenOff()
	if t.answered != nil && (err != nil || reply.Usage == agent.Usage{}) { // its reply was of no use
		t.addBeside(*t.answered)
	}
	if err == nil {
		reply.Charges = t.Charges
		return reply, nil
	}
	activity.RecordHeartbeat(ctx, t.heartbeat())
	var e *agent.Error
	if !errors.As(err, &e) || len(t.Charges) == 0 {
		return reply, err
	}
	whole := *e
	whole.Message, whole.Charges = err.Error(), t.Charges
	return reply, &whole
}

// free reports whether a question that failed costs nothing: it did not reach the provider,
// or was refused before there was anything of a reply.
func free(err error, heard bool) bool {
	var e *agent.Error
	if heard || !errors.As(err, &e) || e.Provider == nil {
		return errors.Is(err, errOpen)
	}
	kinds := []agent.FaultKind{agent.FaultTransient, agent.FaultTimeout}
	return e.Provider.Unsent || e.Provider.HTTP >= 400 || errors.Is(err, errOpen) || !slices.Contains(kinds, e.Provider.Kind)
}

// charges is all that was used; an estimate of nothing is that of a call of which nothing
// is known.
func (l Carryover) charges() []agent.Charge {
	all := slices.Clone(l.Charges)
	if l.Open != nil {
		all = append(all, *l.Open)
	}
	return append(all, slices.Repeat([]agent.Charge{{Estimated: true}}, l.UnknownAttempts)...)
}

// TakeOver hands on what the attempts of an activity have used that ended with an error, to
// the activity that makes the call again.
func (in *ModelInput) TakeOver(err *agent.Error) {
	left := Carryover{}
	if in.Carryover != nil {
		left = *in.Carryover
	}
	var lost durable.Lost
	var full durable.NoSlot
	said := Carryover{}
	switch {
	case errors.As(err, &lost):
		if lost.HeartbeatDetails(&said) {
			left = said
		}
		if said.Open == nil { // it had told nothing of what it was at
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
	left.Attempt = 0
	in.Carryover = &left
}

// AddCharges says with an error what the call has used that was not told by an attempt.
func (in ModelInput) AddCharges(err *agent.Error) *agent.Error {
	if in.Carryover == nil || len(err.Charges) > 0 {
		return err
	}
	whole := *err
	whole.Charges = in.Carryover.charges()
	return &whole
}
