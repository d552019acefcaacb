package durable

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// OutcomeOf returns the Outcome in a workflow's error (docs/wire.md §6). If the run could
// not return one, it makes one from the kind of error.
func OutcomeOf(err error) agent.Outcome {
	o := agent.Outcome{V: agent.Version, Type: "outcome", Status: agent.StatusFailed, Reason: string(agent.CodeChildFailed)}
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &app) && app.Details(&o) == nil:
	case errors.As(err, &cancelled):
		if cancelled.Details(&o) != nil {
			o.Status, o.Reason = agent.StatusCancelled, agent.ReasonRequested
		}
	case errors.As(err, &terminated):
		o.Status, o.Reason = agent.StatusCancelled, agent.ReasonTerminated
	case errors.As(err, &timeout):
		o.Reason = agent.ReasonTimedOut
	default:
		o.Error = agent.Errorf(agent.CodeChildFailed, "%w", err)
	}
	return o
}
