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

// ended is a command's exit status if everything is shown already.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit statuses beside those of codes (docs/wire.md §7).
const (
	exitSuspended   ended = 3
	exitStopped     ended = 4
	exitInterrupted ended = 130 // as shells report an interrupted program
)

// exitOfOutcome returns the exit status of run and wait. A start that the worker has refused is
// wrong input, as one that the command itself refuses.
func exitOfOutcome(o *agent.Outcome) error {
	if o.Status == agent.StatusFailed && o.Turns == 0 && o.Error != nil && o.Error.Code.ExitStatus() == agent.CodeInvalidInput.ExitStatus() {
		return ended(agent.CodeInvalidInput.ExitStatus())
	}
	return exitOf(o.Status)
}

// exitOf returns the exit status for a run's status.
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

// end shows an error and returns the exit status. It prints one line on standard error
// for each fault, and, for programs, one last line on standard output.
func (c *cli) end(ctx context.Context, err error) int {
	var status ended
	switch {
	case err == nil:
		return 0
	// Everything was shown already; an interrupted run has its own status.
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
	// Programs read standard output, so the error is its last line too.
	if c.JSON {
		c.Line(errorLine{V: agent.Version, Type: "error", Error: render.JoinFaults(faults)})
	}
	return faults[0].Code.ExitStatus()
}

// fail shows one error to people.
func (c *cli) fail(e *agent.Error) {
	text := untrusted.Fold(e.Message)
	// Temporal's text does not say what to do.
	if e.Code == agent.CodeNotFound && strings.Contains(text, noWorkflow) {
		text += "; see " + c.CommandLine("ls")
	}
	c.Note("fermata: error [%s] %s", e.Code, text)
}

// noWorkflow is Temporal's text for a session that it does not know.
const noWorkflow = "workflow not found for ID"

// errorLine is an error as the last line of a command's output.
type errorLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	*agent.Error
}

// badFlag matches pflag's message about an invalid value.
var badFlag = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[^"]+)" flag: .*$`)

// flagForms say what values flags of a type take.
var flagForms = map[string]string{
	"int": "a whole number", "float32": "a number", "duration": "a time such as 90s, 24h or 7d", "bool": "true or false",
}

func flagKind(cmd *cobra.Command, flag string) string {
	if f := cmd.Flag(strings.TrimPrefix(flag, "--")); f != nil {
		return f.Value.Type()
	}
	return ""
}

// usage rewrites an error of cobra about how a command was called.
func usage(cmd *cobra.Command, err error) error {
	// cobra's message may have several lines.
	text := strings.Join(strings.Fields(err.Error()), " ")
	if parts := badFlag.FindStringSubmatch(text); parts != nil {
		tooLarge := strings.HasSuffix(text, "value out of range")
		text = fmt.Sprintf("%s can't be %s", parts[2], parts[1])
		if tooLarge {
			text += ": it is too large"
		} else if kind := flagForms[flagKind(cmd, parts[2])]; kind != "" {
			text += ": use " + kind
		}
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s; see %s --help", text, cmd.CommandPath())
}

// asksJSON reports whether --json is among arguments that could not be parsed.
func asksJSON(args []string) bool {
	// After "--" all arguments are plain texts, even "--json".
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
