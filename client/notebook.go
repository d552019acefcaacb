package client

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
)

// Notebook returns the notebook that a session's model has written, as its last run knows it. Its
// Version is zero if none was written since the conversation began. It needs what [Client.Transcript]
// needs, with the same errors.
func (c *Client) Notebook(ctx context.Context, session string) (agent.Notebook, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return agent.Notebook{}, err
	}
	return view.Notebook(), nil
}
