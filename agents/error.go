package agents

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// RunError is a run that was not completed. A workflow that returns it fails with the run's
// failure as its cause, so that [agent.CodeOf] finds the code for whoever waits for the workflow.
type RunError struct {
	// Agent and Session name the run.
	Agent, Session string
	// Outcome says how the run ended. After a stop it has the handoff.
	Outcome agent.Outcome

	why   *agent.Error
	cause error // Temporal's error; nil if the workflow of the run succeeded
}

// failed returns the error of a run that was not completed.
func (r *Run[Out]) failed(o agent.Outcome, cause error) error {
	o.Session = r.Session
	e := &RunError{Agent: r.name, Session: r.Session, Outcome: o, cause: cause}
	code := agent.CodeOf(cause)
	switch {
	case code.Known() && code != agent.CodeInternal && o.Error != nil && o.Error.Code == agent.CodeChildFailed:
		e.why = agent.Errorf(code, "%s", o.Error.Message) // the failure has no outcome, as in a test of the workflow
	case o.Error != nil:
		e.why = o.Error
	case o.Status == agent.StatusFailed: // the workflow's own timeout
		e.why = agent.Errorf(agent.CodeLimitTime, "the run ended without a result (%s)", o.Reason)
	default:
		e.why = agent.Errorf(agent.CodeClosed, "the run was %s (%s)", o.Status, o.Reason)
	}
	if cause == nil { // it was stopped: its workflow succeeded
		e.cause = durable.Failure(e.why, nil)
	}
	return e
}

// Error says which run failed and why.
func (e *RunError) Error() string {
	return fmt.Sprintf("agent %s, session %s: %s", e.Agent, e.Session, e.why.Message)
}

// Is reports whether target is the run's code.
func (e *RunError) Is(target error) bool { return e.why.Is(target) }

// As finds the run's [agent.Error].
func (e *RunError) As(target any) bool {
	if p, ok := target.(**agent.Error); ok {
		*p = e.why
		return true
	}
	return false
}

// Unwrap returns Temporal's error. The SDK encodes it as the cause.
func (e *RunError) Unwrap() error { return e.cause }
