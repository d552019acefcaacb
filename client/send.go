package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// SendOptions says more of a message; nil means every default.
type SendOptions struct {
	// Mode says when it reaches the model; empty means at the next turn. A run
	// that it begins has it from the start.
	Mode agent.SendMode
	// By is who says it: a claim, recorded as one.
	By string
	// Agent is whose run the session's next one is, where one has to begin; empty
	// means the agent of the last.
	Agent string
	// ID makes a message that is sent again the same one; empty means a new one.
	ID string
}

// sendTries bounds the race between a run that ends and others who begin the next.
const sendTries = 5

// Send says something in a session, and returns the run that has it: the live one
// or, where the last has ended, a new one. Errors are [agent.InvalidInput],
// [agent.NotFound] where there is no session and no agent is named,
// [agent.NoWorker] or [agent.Timeout] where nobody answers (send it again with
// the same id then), [agent.Stale] while the run is being stopped, [agent.TooLarge]
// where too much waits already, and [agent.Closed] for an ended run that has a
// parent.
func (c *Client) Send(ctx context.Context, session, text string, o *SendOptions) (*Run, error) {
	if o == nil {
		o = &SendOptions{}
	}
	order := agent.SendOrder{Order: agent.Order{ID: idOr(o.ID), By: o.By}, Text: text, Mode: o.Mode}
	for try := 1; ; try++ {
		ack, err := c.say(ctx, session, order)
		switch {
		case err == nil && ack.Effect != agent.Moot:
			run := &Run{client: c, Session: session, ID: ack.Run}
			run.acted(ack.Seq)
			return run, nil
		case err == nil:
			err = tooLate(session, ack)
		}
		if child := strings.Contains(session, "/"); child || !errors.Is(err, agent.Closed) && !errors.Is(err, agent.NotFound) {
			return nil, err
		}
		if err := c.ended(ctx, session, err); err != nil {
			return nil, err
		}
		run, err := c.next(ctx, session, order, o.Agent)
		if err == nil || !errors.Is(err, agent.Busy) || try == sendTries {
			return run, err
		}
	}
}

func tooLate(session string, ack agent.Ack) error {
	e := agent.Errorf(agent.Closed, "send came too late: the run of session %s was at its end", session)
	e.Session, e.Run, e.Status = session, ack.Run, ack.Status
	return e
}

// ended waits for the end of a run that refused a verb since it is about to end:
// it stores what was said before.
func (c *Client) ended(ctx context.Context, session string, refusal error) error {
	var e *agent.Error
	if !errors.As(refusal, &e) || e.Code != agent.Closed || e.Run == "" {
		return nil // the server refused: nothing lives
	}
	_, err := (&Run{client: c, Session: session, ID: e.Run}).Result(ctx)
	return err
}

// next begins the session's next run with what was to be said.
func (c *Client) next(ctx context.Context, session string, order agent.SendOrder, name string) (*Run, error) {
	if name == "" {
		info, err := c.last(ctx, session)
		if err != nil {
			return nil, err
		}
		if name = agentOf(info); name == "" {
			return nil, agent.Errorf(agent.NotFound, "the last run of session %s does not say whose it was; name an agent", session)
		}
	}
	run, err := c.start(ctx, session, agent.Start{
		V: agent.Version, Agent: name, Input: agent.Input{Text: order.Text}, By: order.By, ID: order.ID, Carry: agent.CarryInherit,
	})
	if err != nil {
		return nil, fmt.Errorf("beginning the next run of session %s: %w", session, err)
	}
	return run, nil
}
