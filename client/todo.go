package client

import (
	"context"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Todo returns the list of steps that a session's model keeps with the tool todo, as it was
// after the last turn; empty if there is none. It needs what [Client.Transcript] needs, with
// the same errors.
func (c *Client) Todo(ctx context.Context, session string) ([]agent.TodoItem, error) {
	view, err := c.view(ctx, session)
	if err != nil {
		return nil, err
	}
	raw, ok := view.State()[agent.TodoKey]
	if !ok {
		return nil, nil
	}
	var list []agent.TodoItem
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, agent.Errorf(agent.CodeIncompatible, "the list of steps of session %s can't be read: %w", session, err)
	}
	return list, nil
}
