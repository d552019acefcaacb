package client

import (
	"context"
	"errors"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Transcript returns the conversation of a session as its last run knows it: what is
// stored, and what the live run has not stored yet. It needs [Options.Store], and a
// worker for the live part. If a part can't be read, it returns an error, never a shorter
// transcript.
func (c *Client) Transcript(ctx context.Context, session string) ([]agent.Message, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return nil, err
	}
	return view.Messages(), nil
}

// Reminders returns the message with which each request of the session's last run ends: the reminders
// of its agent, and those that it has from the agents above. The transcript does not have it, since no
// log does. A message without parts means that there are none. Errors are those of
// [Client.Transcript].
func (c *Client) Reminders(ctx context.Context, session string) (agent.Message, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return agent.Message{}, err
	}
	spec := view.Spec()
	if spec == nil {
		return agent.Message{}, nil
	}
	return spec.ReminderMessage(), nil
}

// view returns a session's whole log.
func (c *Client) view(ctx context.Context, session string) (*store.View, error) {
	if c.log == nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "reading a session's log: %w", ErrNoStore)
	}
	info, err := c.last(ctx, session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return nil, err
	}
	head, headErr := c.log.Head(ctx, session)
	if headErr != nil && !errors.Is(headErr, agent.CodeNotFound) {
		return nil, fmt.Errorf("reading the log of session %s: %w", session, headErr)
	}
	// The head is complete only if both the head and Temporal say that the last run has
	// ended.
	if err == nil && (head.Run != info.GetFirstRunId() || !head.Status.Ended() || !durable.Closed(info)) {
		return c.openView(ctx, session, info)
	}
	if headErr != nil {
		return nil, fmt.Errorf("reading the log of session %s: %w", session, headErr)
	}
	return c.viewOf(ctx, session, head.Digest, nil)
}

// openView returns the stored events together with those that the run has not stored. A
// run that failed before it began has no events: then the store has everything.
func (c *Client) openView(ctx context.Context, session string, info *workflowpb.WorkflowExecutionInfo) (*store.View, error) {
	open, err := signals.ReadSettled(ctx, c.temporal, session, info)
	if err != nil {
		return nil, err
	}
	// The run failed before it began: the log is what the runs before it stored.
	if len(open.Events) == 0 && open.Head == "" {
		head, err := c.log.Head(ctx, session) // the head may be newer by now
		if err != nil && !errors.Is(err, agent.CodeNotFound) {
			return nil, err
		}
		open.Head = head.Digest
	}
	return c.viewOf(ctx, session, open.Head, open.Events)
}

func (c *Client) viewOf(ctx context.Context, session, head string, tail []agent.Event) (*store.View, error) {
	view, err := c.log.View(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("reading the log of session %s: %w", session, err)
	}
	if n := len(tail); n > 0 {
		view = view.With(tail, tail[n-1].Seq)
	}
	return view, nil
}
