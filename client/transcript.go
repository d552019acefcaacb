package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// Transcript is all that was said in a session: what its runs have stored, and
// what the live one has not stored yet. It needs the store, and for the live
// part a worker; what can't be had is an error and never a shorter transcript.
func (c *Client) Transcript(ctx context.Context, session string) ([]agent.Message, error) {
	if c.log == nil {
		return nil, agent.Errorf(agent.NotSetUp, "reading a transcript needs the store that the workers use: set client.Options.Store")
	}
	run, err := c.Get(ctx, session)
	if err != nil && !errors.Is(err, agent.NotFound) {
		return nil, err
	}
	head, headErr := c.log.Store().Head(ctx, session)
	if err == nil && (headErr != nil || head.Run != run.ID) {
		return c.liveTranscript(ctx, session)
	}
	if headErr != nil {
		return nil, fmt.Errorf("reading the transcript of session %s: %w", session, headErr)
	}
	view, err := c.log.View(ctx, head.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading the transcript of session %s: %w", session, err)
	}
	return view.Messages(), nil
}

// liveTranscript puts what is stored and what the run has not stored together.
func (c *Client) liveTranscript(ctx context.Context, session string) ([]agent.Message, error) {
	open, err := signals.ReadOpen(ctx, c.temporal, session, "")
	if err != nil {
		return nil, err
	}
	view, err := c.log.View(ctx, open.Head)
	if err != nil {
		return nil, fmt.Errorf("reading the transcript of session %s: %w", session, err)
	}
	if n := len(open.Events); n > 0 {
		view = view.With(open.Events, open.Events[n-1].Seq)
	}
	return view.Messages(), nil
}
