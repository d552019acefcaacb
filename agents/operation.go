package agents

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/value"
	"github.com/fermata-agents/fermata/signals"
)

// Operation makes an agent or a flow a Nexus operation. Its input is the task, and its result is
// what [Execute] returns, so callers in other namespaces need not know of Fermata. Add it to a
// service on any Temporal worker of this namespace; worker.Options.Register adds one to Fermata's.
// It panics if the name can't be an operation's.
//
// The function options returns the options of one call; nil means the defaults. Without a session
// there, the session is new and has the id of the call's request.
//
// If the caller cancels the operation, the run and all runs below it are cancelled. If the run is
// not completed, the operation fails. Its cause is an application error whose type is the code;
// [agent.CodeOf] finds it.
func Operation[In, Out any](name, agentName string, options func(In) Options) nexus.Operation[In, Out] {
	return temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[In, Out]{
		Name: name,
		Handler: func(ctx context.Context, in In, so nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[Out], error) {
			call := operationCall{Agent: agentName, Text: value.IsText[Out]()}
			if options != nil {
				call.Options = options(in)
			}
			var err error
			if call.Task, err = value.Text(in); err != nil {
				return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "the input: %v", err)
			}
			if call.Options.By == "" {
				call.Options.By = "nexus:" + name
			}
			if call.Options.Session == "" && agent.CheckSession(so.RequestID) == nil {
				call.Options.Session = so.RequestID
			}
			if call.Options.TaskQueue == "" {
				call.Options.TaskQueue = signals.TaskQueue
			}
			return temporalnexus.ExecuteUntypedWorkflow[Out](ctx, so, client.StartWorkflowOptions{
				// No session has a slash first, so this is no session's workflow.
				ID: "fermata/operation/" + so.RequestID, TaskQueue: call.Options.TaskQueue, StaticSummary: agentName, Priority: call.Options.Priority,
			}, signals.OperationType, call)
		},
	})
}

// operationCall is the input of the workflow that carries out an operation.
type operationCall struct {
	Agent string `json:"agent"`
	Task  string `json:"task"`
	// Text means that the caller wants the agent's last text, and not JSON.
	Text    bool    `json:"text,omitempty"`
	Options Options `json:"options,omitzero"`
}

// Register registers the workflow that carries out operations. Fermata's workers have it already.
func Register(r interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}) {
	r.RegisterWorkflowWithOptions(operation, workflow.RegisterOptions{Name: signals.OperationType})
}

// operation is a workflow between a Nexus operation and a run. The server gives the caller the
// workflow's own result, and a run's is an outcome.
func operation(ctx workflow.Context, raw converter.RawValue) (any, error) {
	var call operationCall
	data, bad := durable.Bytes(raw)
	if bad == nil && json.Unmarshal(data, &call) != nil {
		bad = agent.Errorf(agent.CodeInvalidInput, "%s: the input can't be read", signals.OperationType)
	}
	if bad != nil {
		return nil, durable.Failure(bad, nil)
	}
	if call.Text {
		text, err := Execute[string](ctx, call.Agent, call.Task, &call.Options)
		return text, operationError(err)
	}
	out, err := Execute[json.RawMessage](ctx, call.Agent, call.Task, &call.Options)
	if err == nil && !json.Valid(out) {
		err = agent.Errorf(agent.CodeIncompatible, "the agent %s has no output schema, and its answer is no JSON: %.200q", call.Agent, out)
	}
	return out, operationError(err)
}

// operationError returns an error as an operation fails with it.
func operationError(err error) error {
	var e *agent.Error
	if err == nil || temporal.IsCanceledError(err) || !errors.As(err, &e) {
		return err
	}
	whole := *e
	whole.Message, whole.Retryable = err.Error(), false // the workflow has no retry policy, and the run has its own retries
	return durable.Failure(&whole, nil)
}
