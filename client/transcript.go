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

// Transcript is all that was said in a session and that its last run knows: what
// its runs have stored, and what the live one has not stored yet. It needs the
// store, and for the live part a worker; what can't be had is an error and never
// a shorter transcript.
func (c *Client) Transcript(ctx context.Context, session string) ([]agent.Message, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return nil, err
	}
	return view.Messages(), nil
}

// view is a session's whole log.
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
	// The head tells all if it says that the last run has ended, and Temporal says so too.
	if err == nil && (head.Run != info.GetFirstRunId() || !head.Status.Ended() || !durable.Closed(info)) {
		return c.openView(ctx, session, info)
	}
	if headErr != nil {
		return nil, fmt.Errorf("reading the log of session %s: %w", session, headErr)
	}
	return c.viewOf(ctx, session, head.Digest, nil)
}

// openView puts what is stored and what the run has not stored together. A run
// that failed before it began has no part in the log: then the head's is all.
func (c *Client) openView(ctx context.Context, session string, info *workflowpb.WorkflowExecutionInfo) (*store.View, error) {
	open, err := signals.ReadSettled(ctx, c.temporal, session, info)
	if err != nil {
		return nil, err
	}
	if len(open.Events) == 0 && open.Head == "" {
		head, err := c.log.Head(ctx, session) // as it is now
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
