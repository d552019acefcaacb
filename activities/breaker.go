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

// When a circuit opens, and for how long.
const (
	breakAfter  = 5 // failures in a row
	breakWithin = time.Minute
	breakFor    = 15 * time.Second
)

// errOpen is the cause of the fault of a call that was not made.
var errOpen = errors.New("the circuit is open")

// Breaker is the [model.Middleware] that a worker puts around each of its models,
// inside of all other: while a provider is down, calls fail at once in the place
// of waiting for it. A circuit is of this process and of one name of a model. It
// opens when overload, timeouts and transient faults came five times in a row
// within a minute. For 15s every call gets a fault of the kind overload that says
// how long; then one is let through, whose first words, or whose end, decide for
// the next ones. A call that was given up decides nothing.
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
	sign := outcomeUnknown // of a call that panics
	defer func() { c.record(era, sign) }()
	reply, err := b.Model.Generate(ctx, req, func(d model.Delta) {
		if probe && d != (model.Delta{}) {
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

// outcome is what the end of a call tells of the provider.
type outcome int

const (
	outcomeUnknown outcome = iota
	outcomeUp              // also one that has a limit of rate, or wants another key
	outcomeDown
)

// outcomeOf reads the end of a call.
func outcomeOf(ctx context.Context, err error) outcome {
	if err == nil {
		return outcomeUp
	}
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

// circuit is closed while until is zero.
type circuit struct {
	mu         sync.Mutex
	generation int         // grows when it opens, closes or tries: signs of calls from before are old
	failed     []time.Time // the last failures in a row
	until      time.Time   // when it lets a call through
	trying     bool        // one was let through
}

// enter lets a call through, as the probe of an open circuit or as one of many,
// or returns the fault of a call that is not made.
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

// record takes the sign of a call of an era.
func (c *circuit) record(era int, s outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if era != c.generation {
		return
	}
	now := time.Now()
	switch s {
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

// set opens the circuit until a time, or closes it.
func (c *circuit) set(until time.Time) {
	c.generation++
	c.failed, c.until, c.trying = nil, until, false
}
