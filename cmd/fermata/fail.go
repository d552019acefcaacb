package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
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
		c.note("fermata: interrupted")
		return int(exitInterrupted)
	}
	faults := faultsOf(err)
	for _, f := range faults {
		c.fail(f)
	}
	if c.json {
		c.line(errorLine{V: agent.Version, Type: "error", Error: joined(faults)})
	}
	return faults[0].Code.ExitStatus()
}

// fail tells one error to people.
func (c *cli) fail(e *agent.Error) {
	text := untrusted.Fold(e.Message)
	if e.Code == agent.CodeNotFound && strings.Contains(text, noWorkflow) {
		text += "; see " + c.commandLine("ls")
	}
	c.note("fermata: error [%s] %s", e.Code, text)
}

// noWorkflow is what Temporal says of a session that it does not know.
const noWorkflow = "workflow not found for ID"

// errorLine is an error as the last line of a command's output.
type errorLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	*agent.Error
}

// line writes a value as one line of JSON to standard output. What could steer a terminal
// stands there as JSON escapes it, which is the same to a program.
func (c *cli) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.note("fermata: error [internal] writing JSON: %v", err)
		return
	}
	if c.out.ascii {
		b = untrusted.ASCII(string(b))
	}
	fmt.Fprintf(c.out, "%s\n", bytes.ToValidUTF8(b, []byte("\ufffd")))
}

// faultsOf lists the errors that an error is made of, each with its code. An
// error that stands around several says less than they do, and is left out. Several
// without a code are of a library: the error around them says what they mean.
func faultsOf(err error) []*agent.Error {
	for at := err; at != nil; at = errors.Unwrap(at) {
		many, ok := at.(interface{ Unwrap() []error })
		if !ok || !slices.ContainsFunc(many.Unwrap(), coded) {
			continue
		}
		var list []*agent.Error
		for _, e := range many.Unwrap() {
			list = append(list, faultsOf(e)...)
		}
		return list
	}
	var e *agent.Error
	if !errors.As(err, &e) {
		e = &agent.Error{Code: agent.CodeOf(err)}
	}
	whole := *e
	whole.Message = err.Error() // with what was being done around it
	return []*agent.Error{&whole}
}

// coded reports whether an error has a code.
func coded(err error) bool {
	var e *agent.Error
	return errors.As(err, &e)
}

// joined is one error for several.
func joined(list []*agent.Error) *agent.Error {
	whole := *list[0]
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Message)
	}
	whole.Message = strings.Join(texts, "\n")
	return &whole
}
