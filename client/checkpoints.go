package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/store"
)

// Runs returns the runs of a session in order, also those that Temporal has forgotten. A
// run that failed before it began is not in the log, and so not in the list. It needs
// what [Client.Transcript] needs, with the same errors.
func (c *Client) Runs(ctx context.Context, session string) ([]agent.RunRecord, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return nil, err
	}
	return journal.Runs(view.Events()), nil
}

// CheckpointsOptions says which checkpoints are listed; nil means the session's newest
// 50.
type CheckpointsOptions struct {
	// Run lists only the checkpoints of one run, by its id or by 8 or more first
	// characters of it.
	Run string
	// Offset passes over the newest ones; Limit is the most that are listed, zero
	// means 50.
	Offset, Limit int
}

// CheckpointPage is a page of a session's checkpoints, the newest first.
type CheckpointPage struct {
	Items []agent.Checkpoint `json:"items"`
	Total int                `json:"total"`
	More  bool               `json:"has_more"`
}

// Checkpoints lists a session's checkpoints, the newest first: one before each run's
// first turn, and one after each turn. It needs what [Client.Transcript] needs, with the
// same errors, and returns [agent.CodeInvalidInput] for a negative offset or limit.
func (c *Client) Checkpoints(ctx context.Context, session string, o *CheckpointsOptions) (CheckpointPage, error) {
	if o == nil {
		o = &CheckpointsOptions{}
	}
	if o.Offset < 0 || o.Limit < 0 {
		return CheckpointPage{}, agent.Errorf(agent.CodeInvalidInput, "offset and limit must be positive").WithPath("limit")
	}
	view, err := c.view(ctx, session)
	if err != nil {
		return CheckpointPage{}, err
	}
	all := journal.Checkpoints(view, session)
	if o.Run != "" {
		run, err := journal.Run(view.Events(), o.Run)
		if err != nil {
			return CheckpointPage{}, fmt.Errorf("listing the checkpoints of session %s: %w", session, err)
		}
		all = slices.DeleteFunc(all, func(p agent.Checkpoint) bool { return p.Run != run.Run })
	}
	slices.Reverse(all)
	page := CheckpointPage{Total: len(all), Items: []agent.Checkpoint{}}
	rest := all[min(o.Offset, len(all)):]
	shown := min(cmp.Or(o.Limit, 50), len(rest))
	for _, p := range rest[:shown] {
		page.Items = append(page.Items, journal.Fill(view, p))
	}
	page.More = shown < len(rest)
	return page, nil
}

// Checkpoint returns one checkpoint, and the conversation that the model sees there. An
// empty id means the newest one. If the session does not have the checkpoint, the error
// is [agent.CodeNotFound].
func (c *Client) Checkpoint(ctx context.Context, session, id string) (agent.Checkpoint, []agent.Message, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return agent.Checkpoint{}, nil, err
	}
	p, err := find(view, session, id)
	if err != nil {
		return p, nil, err
	}
	return p, view.UpTo(p.Seq()).Messages(), nil
}

func find(view *store.View, session, id string) (agent.Checkpoint, error) {
	if id == "" {
		if all := journal.Checkpoints(view, session); len(all) > 0 {
			return journal.Fill(view, all[len(all)-1]), nil
		}
		return agent.Checkpoint{}, agent.Errorf(agent.CodeNotFound, "session %s has no checkpoint yet", session)
	}
	p, err := journal.Find(view, session, id)
	if err != nil {
		return p, fmt.Errorf("looking in session %s: %w", session, err)
	}
	return p, nil
}

// Diff returns the difference between two checkpoints of a session.
func (c *Client) Diff(ctx context.Context, session, from, to string) (agent.CheckpointDiff, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return agent.CheckpointDiff{}, err
	}
	a, err := find(view, session, from)
	if err != nil {
		return agent.CheckpointDiff{}, err
	}
	b, err := find(view, session, to)
	if err != nil {
		return agent.CheckpointDiff{}, err
	}
	return journal.Diff(view, a, b), nil
}
