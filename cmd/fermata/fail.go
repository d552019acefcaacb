package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// ended is a command's exit status where all is told already.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit statuses beside those of codes (docs/wire.md §7).
const (
	exitSuspended   ended = 3
	exitStopped     ended = 4
	exitInterrupted ended = 130 // as a shell says of a program that was interrupted
)

// exitOf is what `run` and `wait` end with.
func exitOf(s agent.Status) error {
	switch s {
	case agent.StatusCompleted:
		return nil
	case agent.StatusFailed:
		return ended(1)
	case agent.StatusSuspended:
		return exitSuspended
	}
	return exitStopped
}

// end tells an error, as one line on standard error for each thing that is wrong
// and as the last line of standard output for programs, and returns the exit status.
func (c *cli) end(ctx context.Context, err error) int {
	var status ended
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() != nil:
		c.Note("fermata: interrupted")
		return int(exitInterrupted)
	}
	faults := render.Faults(err)
	for _, f := range faults {
		c.fail(f)
	}
	if c.JSON {
		c.Line(errorLine{V: agent.Version, Type: "error", Error: render.JoinFaults(faults)})
	}
	return faults[0].Code.ExitStatus()
}

// fail tells one error to people.
func (c *cli) fail(e *agent.Error) {
	text := untrusted.Fold(e.Message)
	if e.Code == agent.CodeNotFound && strings.Contains(text, noWorkflow) {
		text += "; see " + c.CommandLine("ls")
	}
	c.Note("fermata: error [%s] %s", e.Code, text)
}

// noWorkflow is what Temporal says of a session that it does not know.
const noWorkflow = "workflow not found for ID"

// errorLine is an error as the last line of a command's output.
type errorLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	*agent.Error
}
