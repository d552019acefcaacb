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
	sign := nothing // of a call that panics
	defer func() { c.tell(era, sign) }()
	reply, err := b.Model.Generate(ctx, req, func(d model.Delta) {
		if probe && d != (model.Delta{}) {
			c.tell(era, alive) // its end may be minutes away
		}
		emit(d)
	})
	sign = signOf(ctx, err)
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

// sign is what the end of a call tells of the provider.
type sign int

const (
	nothing sign = iota
	alive        // also one that has a limit of rate, or wants another key
	down
)

// signOf reads the end of a call.
func signOf(ctx context.Context, err error) sign {
	if err == nil {
		return alive
	}
	if outOfTime(ctx) != nil {
		return down
	}
	if ctx.Err() != nil {
		return nothing
	}
	switch faultOf(err).Provider.Kind {
	case agent.FaultOverload, agent.FaultTransient, agent.FaultTimeout:
		return down
	}
	return alive
}

// circuit is closed while until is zero.
type circuit struct {
	mu     sync.Mutex
	era    int         // grows when it opens, closes or tries: signs of calls from before are old
	failed []time.Time // the last failures in a row
	until  time.Time   // when it lets a call through
	trying bool        // one was let through
}

// enter lets a call through, as the probe of an open circuit or as one of many,
// or returns the fault of a call that is not made.
func (c *circuit) enter() (era int, probe bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		return c.era, false, nil
	}
	wait := max(0, time.Until(c.until))
	if wait > 0 || c.trying {
		f := model.Fault(agent.FaultOverload, 0, wait, fmt.Sprintf("it was not asked, since it failed %d times in a row; the next try is in %s", breakAfter, wait.Round(time.Second)))
		f.Err = errOpen
		return 0, false, f
	}
	c.era++
	c.trying = true
	return c.era, true, nil
}

// tell takes the sign of a call of an era.
func (c *circuit) tell(era int, s sign) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if era != c.era {
		return
	}
	now := time.Now()
	switch s {
	case nothing:
		c.trying = false
	case alive:
		if c.failed = nil; c.trying {
			c.turn(time.Time{})
		}
	case down:
		c.failed = append(slices.DeleteFunc(c.failed, func(t time.Time) bool { return now.Sub(t) > breakWithin }), now)
		if c.trying || len(c.failed) >= breakAfter {
			c.turn(now.Add(breakFor))
		}
	}
}

// turn opens the circuit until a time, or closes it.
func (c *circuit) turn(until time.Time) {
	c.era++
	c.failed, c.until, c.trying = nil, until, false
}
