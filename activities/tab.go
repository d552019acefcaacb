package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/window"
)

// tab counts what a model call uses, over all its attempts and models: what is not the
// reply's own is charged beside it, also if there is no reply. An attempt leaves what it
// knows to the next one in its heartbeats; a worker that is lost leaves the last of them.
type tab struct {
	mu    sync.Mutex
	meter window.Meter
	known bool // the meter is there
	Left
	answered *agent.Charge // what the reply that came has used
	// fresh is what this attempt has found used, also by those before it that were lost, and
	// no daily limit has counted yet.
	fresh []agent.Charge
	price agent.Price // of what no fallback has used
}

// Left is what the attempts at a model call leave to the next one.
type Left struct {
	Attempt int            `json:"attempt,omitempty"` // which of its activity's wrote this
	Spent   []agent.Charge `json:"spent,omitempty"`
	// Open is about what the question has used that is under way, and Lost counts attempts
	// of which nothing is known.
	Open *agent.Charge `json:"open,omitempty"`
	Lost int           `json:"lost,omitempty"`
}

// newTab takes over what the attempts before this one have left, in this activity or in
// those before it.
func newTab(ctx context.Context, before *Left) *tab {
	t := &tab{}
	if before != nil {
		t.Left = *before
		t.Spent = slices.Clone(before.Spent)
	}
	left := Left{}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &left) == nil {
		t.Left = left // else another build wrote it: all attempts count as lost
	}
	t.Attempt = int(activity.GetInfo(ctx).Attempt)
	t.Lost += max(0, t.Attempt-1-left.Attempt)
	t.lose()
	return t
}

// measures lets the tab know how long requests are.
func (t *tab) measures(m window.Meter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meter, t.known = m, true
}

// asks begins a question. Attempts of which nothing is known have asked the same.
func (t *tab) asks(name string, messages []agent.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	input := int64(0)
	if t.known {
		input = t.meter.Request(messages)
	}
	for ; t.Lost > 0; t.Lost-- {
		t.add(agent.Charge{Usage: agent.Usage{Input: input}, Estimated: true})
	}
	t.Open = &agent.Charge{Model: name, Usage: agent.Usage{Input: input}, Estimated: true}
}

// bytesPerToken is less than texts in English have: an estimate is rather high.
const bytesPerToken = 3

// hears takes what has come of the reply: bytes in all, and what the provider has told.
func (t *tab) hears(bytes int, told agent.Usage) {
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

// ends ends the question that is under way: with what its reply has used, or with nothing
// if it was free of charge.
func (t *tab) ends(answered *agent.Charge) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Open, t.answered = nil, answered
	if answered != nil {
		t.fresh = append(t.fresh, *answered)
	}
}

// estimates ends a question whose reply has so many bytes, and of which the provider did
// not tell what it has used.
func (t *tab) estimates(bytes int, price agent.Price) agent.Usage {
	t.hears(bytes, agent.Usage{})
	t.mu.Lock()
	used := t.Open.Usage
	if t.Open.Model != "" {
		t.Open.Cost = price.Of(used)
	}
	t.mu.Unlock()
	t.lose()
	return used
}

// lose charges a question that broke off.
func (t *tab) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Open != nil {
		t.add(*t.Open)
		t.Open = nil
	}
}

// add adds a charge; there is one for each model.
func (t *tab) add(c agent.Charge) {
	t.fresh = append(t.fresh, c)
	t.spend(c)
}

// spend puts a charge beside the others.
func (t *tab) spend(c agent.Charge) {
	i := slices.IndexFunc(t.Spent, func(o agent.Charge) bool { return o.Model == c.Model && o.Estimated == c.Estimated })
	if i < 0 {
		t.Spent = append(t.Spent, c)
		return
	}
	t.Spent[i].Usage, t.Spent[i].Cost = t.Spent[i].Usage.Add(c.Usage), agent.Sum(t.Spent[i].Cost, c.Cost)
}

// failed ends a question that failed: it is charged, unless it was free.
func (t *tab) failed(err error, fallback string, price agent.Price) {
	if t.refused(err) {
		t.ends(nil)
		return
	}
	if fallback != "" {
		t.mu.Lock()
		t.Open.Cost = price.Of(t.Open.Usage)
		t.mu.Unlock()
	}
	t.lose()
}

func (t *tab) refused(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return free(err, t.Open.Usage.Output > 0)
}

// charged is what was found used since the last look, in the measures of daily limits.
func (t *tab) charged() (sum agent.Daily) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.fresh = nil }()
	for _, c := range t.fresh {
		if c.Model == "" {
			c.Cost = t.price.Of(c.Usage)
		}
		sum.Tokens, sum.CostUSD = agent.Sum(sum.Tokens, c.Usage.Total()), agent.Sum(sum.CostUSD, c.Cost)
	}
	return sum
}

// beat is what a heartbeat carries.
func (t *tab) beat() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.Left
	out.Spent = slices.Clone(t.Spent)
	if t.Open != nil {
		open := *t.Open
		out.Open = &open
	}
	return out
}

// settle puts what was used beside what came of the call.
func (t *tab) settle(ctx context.Context, reply agent.Reply, err error) (agent.Reply, error) {
	t.lose()
	if t.answered != nil && (err != nil || reply.Usage == agent.Usage{}) { // its reply was of no use
		t.spend(*t.answered)
	}
	if err == nil {
		reply.Spent = t.Spent
		return reply, nil
	}
	activity.RecordHeartbeat(ctx, t.beat())
	var e *agent.Error
	if !errors.As(err, &e) || len(t.Spent) == 0 {
		return reply, err
	}
	whole := *e
	whole.Message, whole.Spent = err.Error(), t.Spent
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
func (l Left) charges() []agent.Charge {
	all := slices.Clone(l.Spent)
	if l.Open != nil {
		all = append(all, *l.Open)
	}
	return append(all, slices.Repeat([]agent.Charge{{Estimated: true}}, l.Lost)...)
}

// Carry hands on what the attempts of an activity have used that ended with an error, to
// the activity that makes the call again.
func (in *AskInput) Carry(err *agent.Error) {
	left := Left{}
	if in.Left != nil {
		left = *in.Left
	}
	var lost durable.Lost
	var full durable.Full
	said := Left{}
	switch {
	case errors.As(err, &lost):
		if lost.Left(&said) {
			left = said
		}
		if said.Open == nil { // it had told nothing of what it was at
			left.Lost++
		}
	case errors.As(err, &full):
		if len(full.Left) > 0 && json.Unmarshal(full.Left, &said) == nil {
			left = said
		} else {
			left.Lost += full.Tried
		}
	case len(err.Spent) > 0:
		left.Spent = err.Spent
	}
	left.Attempt = 0
	in.Left = &left
}

// Unpaid says with an error what the call has used that was not told by an attempt.
func (in AskInput) Unpaid(err *agent.Error) *agent.Error {
	if in.Left == nil || len(err.Spent) > 0 {
		return err
	}
	whole := *err
	whole.Spent = in.Left.charges()
	return &whole
}
