package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// nexusInput is the input of the workflow that calls a Nexus operation.
type nexusInput struct {
	Temporal  agent.TemporalCall `json:"temporal"`
	Timeout   agent.Duration     `json:"timeout"`
	Arguments json.RawMessage    `json:"arguments"`
}

// callNexus is the workflow that calls a Nexus operation for a run. The server fails each
// workflow task that calls an endpoint which does not exist. The run would answer no stop
// and no status then, so this workflow waits for the endpoint instead.
func (s *Shell) callNexus(ctx workflow.Context, raw converter.RawValue) (any, error) {
	data, bad := durable.Bytes(raw)
	var in nexusInput
	if bad == nil {
		bad = durable.Within(signals.NexusType, json.Unmarshal(data, &in))
	}
	if bad != nil {
		return nil, durable.Failure(bad, nil)
	}
	var out converter.RawValue
	c := workflow.NewNexusClient(in.Temporal.Endpoint, in.Temporal.Service)
	ctx = s.outside(ctx)
	err := c.ExecuteOperation(ctx, in.Temporal.Type, in.Arguments, workflow.NexusOperationOptions{ScheduleToCloseTimeout: time.Duration(in.Timeout)}).Get(ctx, &out)
	if err != nil || out.Payload() == nil {
		return nil, err
	}
	return out, nil
}

// outside returns a context with the converter of what the user has in the namespace.
func (s *Shell) outside(ctx workflow.Context) workflow.Context {
	if s.Converter == nil {
		return ctx
	}
	return workflow.WithDataConverter(ctx, s.Converter)
}
