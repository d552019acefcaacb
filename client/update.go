package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/google/uuid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// atOnce is the most updates that a client has under way to one session. A server accepts
// ten by default; with more, all of them time out.
const atOnce = 8

// updateLimiter keeps a client within atOnce. Sessions share its slots by hash, so
// nothing has to be cleaned up after a session. Two sessions with one slot may wait for
// each other.
type updateLimiter struct {
	seed  maphash.Seed
	gate  [64]chan struct{}
	large [64]chan struct{}
}

// largeFrom is the size in bytes from which verbs go one at a time. One workflow task
// gets all updates that are under way, and the server terminates a run whose task has
// more than 4 MB.
const largeFrom = 64 << 10

func newUpdateLimiter() updateLimiter {
	g := updateLimiter{seed: maphash.MakeSeed()}
	for i := range g.gate {
		g.gate[i], g.large[i] = make(chan struct{}, atOnce), make(chan struct{}, 1)
	}
	return g
}

// enter waits for a free slot of the session for a verb of a size. The caller has to call
// leave.
func (g *updateLimiter) enter(ctx context.Context, session string, size int) (leave func(), err error) {
	i := maphash.String(g.seed, session) % uint64(len(g.gate))
	gate := g.gate[i]
	if size >= largeFrom {
		gate = g.large[i]
	}
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, durable.FromRPC(ctx.Err())
	}
}

// update sends a verb as an update. It refuses before sending what the run would refuse
// in any state.
func (c *Client) update(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
	if session == "" {
		return agent.Ack{}, agent.Errorf(agent.CodeInvalidInput, "%s refused: session is missing", command.Verb()).WithPath("session")
	}
	size, err := checkCommand(command)
	if err != nil {
		return agent.Ack{}, err
	}
	leave, err := c.gates.enter(ctx, session, size)
	if err != nil {
		return agent.Ack{}, fmt.Errorf("sending %s to session %s: %w", command.Verb(), session, err)
	}
	defer leave()
	ack, err := signals.Update(ctx, c.temporal, session, command)
	return ack, c.withStatus(ctx, session, err)
}

// withStatus adds the run's final status to a refusal by the server. The server does not
// know it, and no worker saw the verb. If it can't be learned, the refusal stays as it
// is.
func (c *Client) withStatus(ctx context.Context, session string, refusal error) error {
	var e *agent.Error
	if !errors.As(refusal, &e) || e.Code != agent.CodeClosed || e.Status != "" {
		return refusal
	}
	if info, err := c.describe(ctx, session, ""); err == nil && info != nil && durable.Closed(info) {
		e.Status = listed(info).Status
	}
	return refusal
}

// checkCommand checks a verb's payload, and returns its size in bytes.
func checkCommand(command agent.Command) (size int, err error) {
	raw, err := json.Marshal(command)
	if err != nil {
		return 0, agent.Errorf(agent.CodeInvalidInput, "%s refused: it can't be written as JSON: %w", command.Verb(), err)
	}
	if _, refusal := signals.Decode(command.Verb(), raw); refusal != nil {
		return 0, refusal
	}
	return len(raw), nil
}

// patience is how long a verb waits for a worker before it becomes a signal.
const patience = 3 * time.Second

// UpdateOrSignal sends pause, interrupt, stop, cancel or send as an update. If no worker
// answers within 3 s, it sends a signal with the same id, which waits for the next
// worker. Then later is true and ack is nil. If the run refuses the signal, its status
// shows that. A verb with a token is never sent as a signal, because signals can't prove
// who sent them. If a run's first workflow task keeps failing, stop and cancel terminate
// it at once.
//
// Errors are those of an update, and [agent.CodeInvalidInput] for every other verb:
// nobody would learn that an answer as a signal came too late.
func (c *Client) UpdateOrSignal(ctx context.Context, session string, command agent.Command) (ack *agent.Ack, later bool, err error) {
	if command, err = named(command); err != nil {
		return nil, false, err
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := c.update(soon, session, command)
	switch {
	case err == nil:
		return &said, false, nil
	case ctx.Err() == nil && command.Header().Token == "" && (errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker)):
		// A run whose first task fails would never read the signal.
		if ended, err := c.endUnbegun(ctx, session, command); ended || err != nil {
			return &agent.Ack{V: agent.Version, Session: session, Status: agent.StatusCancelled, Effect: agent.EffectAccepted}, false, err
		}
		err = signals.Signal(ctx, c.temporal, session, command)
		return nil, err == nil, err
	}
	return nil, false, err
}

// named returns the verb with an id, so that the update and the signal together have one
// effect.
func named(command agent.Command) (agent.Command, error) {
	switch o := command.(type) {
	case agent.PauseCommand:
		o.ID = idOr(o.ID)
		return o, nil
	case agent.InterruptCommand:
		o.ID = idOr(o.ID)
		return o, nil
	case agent.StopCommand:
		o.ID = idOr(o.ID)
		return o, nil
	case agent.CancelCommand:
		o.ID = idOr(o.ID)
		return o, nil
	case agent.SendCommand:
		o.ID = idOr(o.ID)
		return o, nil
	}
	return nil, agent.Errorf(agent.CodeInvalidInput, "%s can't be left as a signal: only pause, interrupt, stop, cancel and send can", command.Verb())
}

func idOr(id string) string {
	if id == "" {
		id = uuid.Must(uuid.NewV7()).String()
	}
	return id
}
