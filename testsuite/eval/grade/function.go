package grade

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Func is a grader in Go. It returns why the trial does not pass; empty if it passes. An
// error means that it could not decide. It may be called again for the same trial.
type Func func(ctx context.Context, f *Facts, arguments json.RawMessage) (reason string, err error)

// Function names a [Func] of the worker that evaluates.
type Function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (f *Function) check() error {
	if f.Name == "" {
		return agent.Errorf(agent.CodeInvalidInput, "needs the name of a function")
	}
	return nil
}

// Known returns an [agent.CodeInvalidInput] error if there is no such function.
func (f *Function) Known(funcs map[string]Func) error {
	if funcs[f.Name] != nil {
		return nil
	}
	names := "it has none"
	if len(funcs) > 0 {
		names = "it has " + strings.Join(slices.Sorted(maps.Keys(funcs)), ", ")
	}
	return agent.Errorf(agent.CodeInvalidInput, "the worker that evaluates has no function %q: %s; register it in a Go program and name its task queue with --evaluator", f.Name, names)
}

// Call calls the function.
func (f *Function) Call(ctx context.Context, funcs map[string]Func, facts *Facts) (v Verdict, err error) {
	if err := f.Known(funcs); err != nil {
		return v, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = agent.Errorf(agent.CodeInternal, "the function %s panicked: %v: %s", f.Name, p, cut(string(debug.Stack())))
		}
	}()
	reason, err := funcs[f.Name](ctx, facts, f.Arguments)
	if err != nil {
		return v, fmt.Errorf("the function %s: %w", f.Name, err)
	}
	return Verdict{Pass: reason == "", Reason: cut(reason)}, nil
}
