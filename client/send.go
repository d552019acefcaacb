package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
)

// SendOptions are optional; nil means all defaults.
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
	// Token proves who says it, where a policy binds the verb. Then the message is not left
	// for a worker that comes.
	Token string
}

// sendTries bounds the race between a run that ends and others who begin the next.
const sendTries = 5

// Send says something in a session, and returns the run that has it: the live one
// or, where the last has ended, a new one. Where no worker answers within 3 s it
// is left for the one that comes. A message with an id is said once, however often
// it is sent and whoever takes it: the session's last 50 are remembered. Errors are
// [agent.CodeInvalidInput], [agent.CodeNotFound] where there is no session and no agent is
// named, [agent.CodeStale] while the run is being stopped, [agent.CodeTooLarge] where too
// much waits already, and [agent.CodeClosed] for an ended run that has a parent.
func (c *Client) Send(ctx context.Context, session, text string, o *SendOptions) (*Run, error) {
	if o == nil {
		o = &SendOptions{}
	}
	order := agent.SendCommand{CommandHeader: agent.CommandHeader{ID: idOr(o.ID), By: o.By, Token: o.Token}, Text: text, Mode: o.Mode}
	for try := 1; ; try++ {
		soon, cancel := context.WithTimeout(ctx, patience)
		ack, err := c.update(soon, session, order)
		cancel()
		switch {
		case ctx.Err() == nil && o.Token == "" && (errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker)):
			return c.signalMessage(ctx, session, order, o.Agent)
		case err == nil && ack.Effect != agent.EffectRunEnded:
			run := &Run{client: c, Session: session, ID: ack.Run}
			run.noteSeq(ack.Seq)
			return run, nil
		case err == nil:
			err = tooLate(session, order, ack)
		}
		if child := strings.Contains(session, "/"); child || !errors.Is(err, agent.CodeClosed) && !errors.Is(err, agent.CodeNotFound) {
			return nil, err
		}
		if err := c.ended(ctx, session, err); err != nil {
			return nil, err
		}
		run, err := c.next(ctx, session, order, o.Agent)
		if err == nil || !errors.Is(err, agent.CodeBusy) || try == sendTries {
			return run, err
		}
	}
}

func tooLate(session string, command agent.Command, ack agent.Ack) error {
	e := agent.Errorf(agent.CodeClosed, "%s came too late: the run of session %s was at its end; say it again, with the same id, to the next one", command.Verb(), session)
	e.Session, e.Run, e.Status = session, ack.Run, ack.Status
	return e
}

// ended waits for the end of a run that refused a verb since it is about to end:
// it stores what was said before.
func (c *Client) ended(ctx context.Context, session string, refusal error) error {
	var e *agent.Error
	if !errors.As(refusal, &e) || e.Code != agent.CodeClosed || e.Run == "" {
		return nil // the server refused: nothing lives
	}
	_, err := (&Run{client: c, Session: session, ID: e.Run}).Result(ctx)
	return err
}

// signalMessage leaves a message for the worker that comes: in one call it reaches the live
// run, or begins the next.
func (c *Client) signalMessage(ctx context.Context, session string, order agent.SendCommand, name string) (*Run, error) {
	start, err := c.nextStart(ctx, session, order, name)
	if err != nil {
		return nil, err
	}
	priority, before, err := c.priorityOf(ctx, session)
	if err != nil {
		return nil, err
	}
	start.After = before
	start = c.traced(ctx, start)
	if err := check(session, start); err != nil {
		return nil, err
	}
	o := c.startOptions(session, start)
	o.Priority = priority
	run, err := c.temporal.SignalWithStartWorkflow(ctx, session, string(agent.VerbSend), order, o, signals.WorkflowType, start)
	if err != nil {
		return nil, startFailed(session, start, err)
	}
	d, err := c.temporal.DescribeWorkflowExecution(ctx, session, run.GetRunID())
	if err != nil {
		return nil, fmt.Errorf("looking for session %s: %w", session, durable.FromRPC(err))
	}
	return &Run{client: c, Session: session, ID: d.GetWorkflowExecutionInfo().GetFirstRunId()}, nil
}

// nextStart is what the session's next run is started with, if a message begins it.
func (c *Client) nextStart(ctx context.Context, session string, order agent.SendCommand, name string) (agent.Start, error) {
	if name == "" {
		var err error
		if name, err = c.lastAgent(ctx, session); err != nil {
			return agent.Start{}, err
		}
	}
	return agent.Start{
		V: agent.Version, Agent: name, Input: agent.Input{Text: order.Text}, By: order.By, ID: order.ID, Carry: agent.CarryInherit,
	}, nil
}

// lastAgent is whose the session's last run was.
func (c *Client) lastAgent(ctx context.Context, session string) (string, error) {
	info, err := c.last(ctx, session)
	if errors.Is(err, agent.CodeNotFound) && c.log != nil { // Temporal has forgotten it
		if head, headErr := c.log.Head(ctx, session); headErr == nil {
			return head.Agent, nil
		}
	}
	if err != nil {
		return "", err
	}
	name := agentOf(info)
	if name == "" {
		return "", agent.Errorf(agent.CodeNotFound, "the last run of session %s does not say whose it was; name an agent", session)
	}
	return name, nil
}

// taken is the run of a session that has a message already; nil if the store knows of
// none. It refuses another message under the id.
func (c *Client) taken(ctx context.Context, session string, order agent.SendCommand) (*Run, error) {
	if c.log == nil {
		return nil, nil
	}
	head, err := c.log.Head(ctx, session)
	if err != nil {
		return nil, nil // the run itself looks again
	}
	for _, p := range head.Receipts {
		if p.ID == order.ID {
			said := agent.TextMessage(agent.RoleUser, order.Text)
			return &Run{client: c, Session: session, ID: p.Run}, p.Check(remembered.MessageDigest(said))
		}
	}
	return nil, nil
}

// next begins the session's next run with what was to be said.
func (c *Client) next(ctx context.Context, session string, order agent.SendCommand, name string) (*Run, error) {
	switch run, err := c.taken(ctx, session, order); {
	case err != nil:
		return nil, fmt.Errorf("send to session %s refused: %w", session, err)
	case run != nil:
		return run, nil
	}
	start, err := c.nextStart(ctx, session, order, name)
	if err != nil {
		return nil, err
	}
	run, err := c.start(ctx, session, start)
	if err != nil {
		return nil, fmt.Errorf("beginning the next run of session %s: %w", session, err)
	}
	return run, nil
}
