package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/signals"
)

// SendOptions are optional; nil means all defaults.
type SendOptions struct {
	// Mode says when the message reaches the model; empty means at the next turn. If the
	// message begins a run, it is the run's input.
	Mode agent.SendMode
	// By says who sends the message. It is logged, and not authenticated.
	By string
	// Agent is the agent of the session's next run, if one has to begin; empty means the
	// last run's agent.
	Agent string
	// ID identifies the message, so that a repeated one counts once; empty means a new
	// id.
	ID string
	// Token proves who sends the message, if a policy binds the verb. With a token, the
	// message never becomes a signal: signals can't prove who sent them.
	Token string
	// Files are stored with the session, and sent after the text; see [Client.PutFiles].
	Files []FileInput
	// Skills are names of the agent's skills that are active from the next turn on.
	Skills []string
}

// sendTries limits the race between a run that ends and other senders who begin the next
// run.
const sendTries = 5

// Send sends a message to a session, and returns the run that has it. That is the live
// run or, if the last run has ended, a new one. If no worker answers within 3 s, the
// message waits as a signal for the next worker. A message with an id counts once,
// however often it is sent and whichever run gets it: a session remembers its last 50
// messages.
//
// Errors are [agent.CodeInvalidInput], [agent.CodeNotFound] if there is neither a session
// nor an agent's name, [agent.CodeStale] while the run is being stopped,
// [agent.CodeTooLarge] if too much is waiting, and [agent.CodeClosed] for an ended run
// that has a parent.
func (c *Client) Send(ctx context.Context, session, text string, o *SendOptions) (*Run, error) {
	if o == nil {
		o = &SendOptions{}
	}
	files, err := c.PutFiles(ctx, session, o.Files...)
	if err != nil {
		return nil, fmt.Errorf("send refused: %w", err)
	}
	order := agent.SendCommand{CommandHeader: agent.CommandHeader{ID: idOr(o.ID), By: o.By, Token: o.Token}, Text: text, Parts: files, Mode: o.Mode, Skills: o.Skills}
	for try := 1; ; try++ {
		soon, cancel := context.WithTimeout(ctx, patience)
		ack, err := c.update(soon, session, order)
		cancel()
		switch {
		// Not after the caller's own deadline: the caller then takes the message for unsent.
		case ctx.Err() == nil && o.Token == "" && (errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker)):
			return c.signalMessage(ctx, session, order, o.Agent)
		case err == nil && ack.Effect != agent.EffectRunEnded:
			run := &Run{client: c, Session: session, ID: ack.Run}
			run.noteSeq(ack.Seq)
			return run, nil
		case err == nil:
			err = tooLate(session, order, ack)
		}
		// Only the parent starts a child's next run.
		if child := strings.Contains(session, "/"); child || !errors.Is(err, agent.CodeClosed) && !errors.Is(err, agent.CodeNotFound) {
			return nil, err
		}
		if err := c.ended(ctx, session, err); err != nil {
			return nil, err
		}
		run, err := c.next(ctx, session, order, o.Agent)
		// Busy: another sender began the next run meanwhile, and that run gets the
		// message.
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

// ended waits for the end of a run that refused a message because it is about to end.
// Only then is its log stored, and the next run can begin.
func (c *Client) ended(ctx context.Context, session string, refusal error) error {
	var e *agent.Error
	if !errors.As(refusal, &e) || e.Code != agent.CodeClosed || e.Run == "" {
		return nil // the server itself refused: no run is live
	}
	_, err := (&Run{client: c, Session: session, ID: e.Run}).Result(ctx)
	return err
}

// signalMessage sends a message as a signal. The call also starts the next run if none is
// live, so the message can't fall between two runs.
func (c *Client) signalMessage(ctx context.Context, session string, order agent.SendCommand, name string) (*Run, error) {
	start, err := c.nextStart(ctx, session, order, name)
	if err != nil {
		return nil, err
	}
	before, err := c.predecessor(ctx, session)
	if err != nil {
		return nil, err
	}
	start.After = before.run
	start = c.traced(ctx, start)
	if err := check(session, start); err != nil {
		return nil, err
	}
	o := startOptions(session, before, start)
	run, err := c.temporal.SignalWithStartWorkflow(ctx, session, string(agent.VerbSend), order, o, signals.WorkflowType, start)
	if err != nil {
		return nil, startFailed(session, start, err)
	}
	info, err := durable.Thrice(ctx, func() (*workflowpb.WorkflowExecutionInfo, error) {
		return c.describe(ctx, session, run.GetRunID())
	})
	if err != nil {
		return nil, fmt.Errorf("looking for session %s: %w", session, err)
	}
	return &Run{client: c, Session: session, ID: info.GetFirstRunId()}, nil
}

// nextStart returns the start of the session's next run, which a message begins.
func (c *Client) nextStart(ctx context.Context, session string, order agent.SendCommand, name string) (agent.Start, error) {
	if name == "" {
		var err error
		if name, err = c.lastAgent(ctx, session); err != nil {
			return agent.Start{}, err
		}
	}
	return agent.Start{
		V: agent.Version, Agent: name, Input: agent.Input{Text: order.Text, Parts: order.Parts}, By: order.By, ID: order.ID, Carry: agent.CarryInherit, Skills: order.Skills,
	}, nil
}

// lastAgent returns the agent of the session's last run.
func (c *Client) lastAgent(ctx context.Context, session string) (string, error) {
	info, err := c.last(ctx, session)
	forgotten := errors.Is(err, agent.CodeNotFound)
	refused := info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_FAILED
	if c.log != nil && (forgotten || refused) {
		// A start that was refused, as one that names no agent of the worker, is in no log.
		if head, headErr := c.log.Head(ctx, session); headErr == nil && (forgotten || head.Run != info.GetFirstRunId()) {
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

// taken returns the run of the session that has the message already; nil if the store
// knows none. It refuses another message with the same id.
func (c *Client) taken(ctx context.Context, session string, order agent.SendCommand) (*Run, error) {
	if c.log == nil {
		return nil, nil
	}
	head, err := c.log.Head(ctx, session)
	if err != nil {
		return nil, nil // the run itself checks again
	}
	for _, p := range head.Receipts {
		if p.ID == order.ID {
			said := agent.Message{Role: agent.RoleUser, Parts: order.AllParts()}
			return &Run{client: c, Session: session, ID: p.Run}, p.Check(remembered.MessageDigest(said))
		}
	}
	return nil, nil
}

// next begins the session's next run with a message.
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
	run, err := c.start(ctx, session, start, nil)
	if err != nil {
		return nil, fmt.Errorf("beginning the next run of session %s: %w", session, err)
	}
	return run, nil
}
