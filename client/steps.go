package client

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
)

// Steps returns the steps that the last run of a session has asked for, in that order. There are
// none if the run is no flow's. It needs what [Client.Transcript] needs, with the same errors.
func (c *Client) Steps(ctx context.Context, session string) ([]agent.StepRecord, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return nil, err
	}
	return journal.Steps(view), nil
}
