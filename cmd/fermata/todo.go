package main

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// todoLine is a step of a model's list for programs.
type todoLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	agent.TodoItem
}

// showTodo shows the list of steps that a session's model keeps.
func (c *cli) showTodo(ctx context.Context, runs *fermata.Client, session string) error {
	list, err := runs.Todo(ctx, session)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return agent.Errorf(agent.CodeNotFound, "session %s has no list of steps: its model keeps one if the agent's tools name %s", session, agent.TodoTool)
	}
	t := c.Table("STATE", "STEP")
	for _, one := range list {
		if c.JSON {
			c.Line(todoLine{agent.Version, "todo", one})
			continue
		}
		t.Row(one.State, untrusted.Line(one.Text, 500))
	}
	if !c.JSON {
		t.Flush()
	}
	return nil
}
