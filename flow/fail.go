package flow

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/model"
)

// failure returns a function's error as the run fails with it. An agent.Error is the function's own
// or one of this package's, and has its code already. A [StepError] wraps none.
func failure(err error) error {
	var own *agent.Error
	var step *StepError
	switch {
	case errors.As(err, &own):
		return fmt.Errorf("%w", err)
	case errors.As(err, &step):
		e := step.failure()
		e.Message, e.Err = err.Error(), err // with what the function has put around it
		return e
	}
	return agent.Errorf(agent.CodeFlowFailed, "%w", err)
}

// failure returns the error of a run that fails because this step did.
func (e *StepError) failure() *agent.Error {
	f := agent.Errorf(agent.CodeStepFailed, "step %s (%s): %s: %s", e.Path, e.Tool, e.Status, e.Text).WithPath(e.Path)
	switch {
	case e.leadsNowhere():
		f.Code = e.Code
	case e.Code.Known(): // the reason of a run that was stopped is no code
		f.Cause = e.Code
	}
	return f
}

// leadsNowhere reports whether the flow may not use the tool, the agent or the model that the step
// names. What a tool returns itself is no rejection, whatever its code.
func (e *StepError) leadsNowhere() bool {
	switch e.Code {
	case agent.CodeUnknownTool, agent.CodeUnknownAgent, agent.CodeUnknownModel:
		return e.Status == agent.CallRejected
	}
	return false
}

// causeOf returns the code with which a run would fail by an error, or the code of its step; empty if it
// is nobody's code.
func causeOf(err error) agent.Code {
	var e *agent.Error
	if !errors.As(failure(err), &e) {
		return ""
	}
	if e.Code == agent.CodeStepFailed && e.Cause != "" {
		return e.Cause
	}
	return e.Code
}

// misfit returns the error of a value that does not fit the type or the schema that the flow gives it.
// path is the step's.
func misfit(path string, why error) error {
	return agent.Errorf(agent.CodeBadOutput, "step %s: %w", path, why).WithPath(path)
}

// at gives an error of this package the path of its step.
func at(path string, err error) error {
	var e *agent.Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = path
	}
	return err
}

// resultFits returns why a flow's result does not fit the schema of its author; nil if it does. A type
// is what its own schema says.
func resultFits(schema json.RawMessage, d play.Done) error {
	if len(schema) == 0 {
		return nil
	}
	why := ""
	if len(d.Output) > 0 {
		why = plain(model.Fits(schema, d.Output))
	} else {
		why = fits(schema, d.Text)
	}
	if why == "" {
		return nil
	}
	return agent.Errorf(agent.CodeBadOutput, "the result does not fit the flow's output: %s", why)
}
