package flow

import (
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
)

// Context is what a function asks for steps with. It is no context.Context: a step that waits can
// wait for months, in another process than the one in which it began to. Each branch has its
// own: a function that Map or Parallel calls uses the one that it gets.
type Context struct{ c *play.Context }

// ErrDropped is the error of a step whose result nobody waits for any more, because the branches
// beside it have decided: one of them has failed, or enough of them have succeeded.
var ErrDropped = play.ErrDropped

// StepError is a step that did not succeed.
type StepError struct {
	// Path is the step's path.
	Path string
	// Tool is the tool, or the agent's tool, that did the step.
	Tool string
	// Status says how it failed. With [agent.CallUnknown] it may or may not have had its effect.
	Status agent.CallStatus
	// Code is the reason of an agent's run that did not complete, such as "limit_tokens", or the code of
	// the [agent.Error] that a tool or code of [Do] has returned, or a call of a model. It is
	// [agent.CodeUnknownTool], [agent.CodeUnknownAgent] or [agent.CodeUnknownModel] if the flow may not use
	// what it names. It is empty for other steps.
	Code agent.Code
	// Text is what the tool or the runtime says.
	Text string
}

// Error says which step failed, how and why.
func (e *StepError) Error() string { return e.failure().Message }

// Unwrap returns the code, so that errors.Is finds it.
func (e *StepError) Unwrap() error {
	if e.Code == "" {
		return nil
	}
	return e.Code
}

// Now returns the time of the last result that the function got; at first, of the run's start.
// It is the same whenever the function runs again, and time.Now is not.
func Now(c Context) time.Time { return c.c.Now() }

// Messages returns the messages that were sent to the run so far. A message wakes no flow that
// waits; it is there when the function looks next.
func Messages(c Context) []agent.Message { return c.c.Messages() }

// Scope calls a part of the function with a context of its own, so that its steps have the name
// before their paths.
func Scope(c Context, name string, do func(Context) error) error {
	if c.c == nil {
		return errOutside
	}
	return do(Context{c.c.Scope(name)})
}

// errOutside refuses a step outside of a run.
var errOutside = agent.Errorf(agent.CodeInvalidInput, "this flow.Context belongs to no run: use the one that the flow's function gets")

// step asks for a step and returns its successful result.
func (c Context) step(name string, s play.Step) (play.Result, error) {
	if c.c == nil {
		return play.Result{}, errOutside
	}
	r, err := c.c.Do(name, s)
	if err != nil {
		return r, err
	}
	if r.Status != agent.CallOK {
		return r, &StepError{Path: r.Path, Tool: s.Tool, Status: r.Status, Code: r.Code, Text: r.Text}
	}
	if r.Size > 0 {
		return r, &StepError{Path: r.Path, Tool: s.Tool, Status: agent.CallFailed, Code: agent.CodeTooLarge, Text: fmt.Sprintf("its result has %d bytes, and %d of them are kept: keep large results elsewhere, and return where", r.Size, len(r.Text))}
	}
	return r, nil
}

// Path returns the path of the branch or scope; empty for the function itself.
func Path(c Context) string { return c.c.Path() }
