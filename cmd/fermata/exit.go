package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// badFlag is what is said of a flag's value that can't be read, with the error of a library.
var badFlag = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[^"]+)" flag: .*$`)

// flagForms say what flags of a type want.
var flagForms = map[string]string{
	"int": "a whole number", "float32": "a number", "duration": "a time such as 90s, 24h or 7d", "bool": "true or false",
}

func flagKind(cmd *cobra.Command, flag string) string {
	if f := cmd.Flag(strings.TrimPrefix(flag, "--")); f != nil {
		return f.Value.Type()
	}
	return ""
}

// usage makes an error of what cobra has to say about how a command was called.
func usage(cmd *cobra.Command, err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if parts := badFlag.FindStringSubmatch(text); parts != nil {
		text = fmt.Sprintf("%s can't be %s", parts[2], parts[1])
		if kind := flagForms[flagKind(cmd, parts[2])]; kind != "" {
			text += ": use " + kind
		}
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s; see %s --help", text, cmd.CommandPath())
}

// asksJSON reports whether the flag --json stands among arguments that were not understood.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
