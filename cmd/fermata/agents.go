package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

// agentsFile loads the agents file that is named, or the one in the working
// directory; nil if none is named and none is there.
func agentsFile(ctx context.Context, path string) (*agentsfile.File, error) {
	if path == "" {
		path = agentsfile.DefaultName
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return agentsfile.Load(ctx, path)
}

// noAgents says what to write where there is no agents file.
func noAgents() error {
	return agent.Errorf(agent.CodeInvalidInput, "there is no agents file: write %s, such as \"agents: {reviewer: {model: anthropic/claude-sonnet-5, instructions: You review code., tools: [fs_read, fs_grep]}}\", or name one with --agents", agentsfile.DefaultName)
}
