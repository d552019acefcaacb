package main

import (
	"context"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/signals"
)

// checkAgent refuses an agent that the file lacks. A run of it would fail, and later messages to its
// session would go to that agent again. With another server or task queue than the default it only
// warns, since the workers there have files of their own. f is nil if there is no file.
func (c *cli) checkAgent(f *agentsfile.File, name string) error {
	if f == nil {
		return nil
	}
	_, err := f.Agent(name)
	if err == nil {
		return nil
	}
	elsewhere := c.Queue() != signals.TaskQueue
	if !elsewhere {
		var lost error
		if elsewhere, lost = c.Named(); lost != nil {
			return lost
		}
	}
	if !elsewhere {
		return err
	}
	c.Note("fermata: warning: %v; the workers at the task queue %s may have it", err, c.Queue())
	return nil
}

// checkAgentHere is checkAgent with the file of this directory, for a command that needs no file. A
// file that can't be read says nothing about the agent.
func (c *cli) checkAgentHere(ctx context.Context, name string) error {
	f, err := agentsFile(ctx, "")
	if err != nil {
		return nil
	}
	return c.checkAgent(f, name)
}
