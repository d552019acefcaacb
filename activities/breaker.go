package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// A circuit opens after breakAfter failures in a row within breakWithin, for breakFor.
const (
	breakAfter  = 5 // failures in a row
	breakWithin = time.Minute
	breakFor    = 15 * time.Second
)

// errOpen is the cause of the fault if a call was not made.
var errOpen = errors.New("the circuit is open")

// Breaker returns m with a circuit breaker. A worker puts it around each of its models,
// inside all other middleware. While a provider is down, calls fail at once instead of
// waiting for it.
//
// A circuit belongs to this process and one provider's name of a model. It opens after
// five faults in a row within a minute: overload, timeout or transient. For 15s every
// call gets a fault of the kind overload that says how long. Then one call is let
// through. Its first delta, or its end, decides for the next ones. A call that was
// cancelled decides nothing.
func Breaker(m model.Model) model.Model {
	return &breaker{Model: m, circuits: map[string]*circuit{}}
}

type breaker struct {
	model.Model
	mu       sync.Mutex
	circuits map[string]*circuit // by the provider's name for the model
}

// Generate implements [model.Model].
func (b *breaker) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	c := b.circuit(req.Model)
	era, probe, err := c.enter()
	if err != nil {
		return nil, err
	}
	sign := outcomeUnknown // stays so if the call panics
	defer func() { c.record(era, sign) }()
	reply, err := b.Model.Generate(ctx, req, func(d model.Delta) {
		if probe && d != (model.Delta{}) { // do not wait for the end, which may be minutes away
			c.record(era, outcomeUp) // its end may be minutes away
		}
		emit(d)
	})
	sign = outcomeOf(ctx, err)
	return reply, err
}

func (b *breaker) circuit(name string) *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.circuits[name] == nil {
		b.circuits[name] = &circuit{}
	}
	return b.circuits[name]
}

// outcome is what the end of a call says about the provider.
type outcome int

const (
	outcomeUnknown outcome = iota
	outcomeUp              // also a provider that limits the rate or refuses the key
	outcomeDown
)

// outcomeOf classifies the end of a call.
func outcomeOf(ctx context.Context, err error) outcome {
	if err == nil {
		return outcomeUp
	}
	// Before ctx.Err: the two timeouts end the context too, but are the provider's fault.
	if outOfTime(ctx) != nil {
		return outcomeDown
	}
	if ctx.Err() != nil {
		return outcomeUnknown
	}
	switch faultOf(err).Provider.Kind {
	case agent.FaultOverload, agent.FaultTransient, agent.FaultTimeout:
		return outcomeDown
	}
	return outcomeUp
}

// circuit is one breaker; it is closed while until is zero.
type circuit struct {
	mu         sync.Mutex
	generation int         // grows when it opens, closes or probes: outcomes of older calls are ignored
	failed     []time.Time // the last failures in a row
	until      time.Time   // when it lets a call through
	trying     bool        // a call was let through
}

// enter lets a call through, or returns the fault of a call that is not made. probe means
// that this call decides whether an open circuit closes.
func (c *circuit) enter() (era int, probe bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		return c.generation, false, nil
	}
	wait := max(0, time.Until(c.until))
	if wait > 0 || c.trying {
		f := model.Fault(agent.FaultOverload, 0, wait, fmt.Sprintf("it was not asked, since it failed %d times in a row; the next try is in %s", breakAfter, wait.Round(time.Second)))
		f.Err = errOpen
		return 0, false, f
	}
	c.generation++
	c.trying = true
	return c.generation, true, nil
}

// record takes the outcome of a call of a generation.
func (c *circuit) record(era int, s outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The call began before the circuit changed, and says nothing about the state since.
	if era != c.generation {
		return
	}
	now := time.Now()
	switch s {
	// A probe that says nothing leaves the circuit open, and the next call probes.
	case outcomeUnknown:
		c.trying = false
	case outcomeUp:
		if c.failed = nil; c.trying {
			c.set(time.Time{})
		}
	case outcomeDown:
		c.failed = append(slices.DeleteFunc(c.failed, func(t time.Time) bool { return now.Sub(t) > breakWithin }), now)
		if c.trying || len(c.failed) >= breakAfter {
			c.set(now.Add(breakFor))
		}
	}
}

// set opens the circuit until a time, or closes it with the zero time.
func (c *circuit) set(until time.Time) {
	c.generation++
	c.failed, c.until, c.trying = nil, until, false
}
