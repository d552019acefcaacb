package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// makeCall makes a tool call, a check, or a flow's call of a model, or checks the arguments of a
// call that the workflow makes.
func (d *Activities) makeCall(ctx context.Context, in ToolInput) (ToolOutput, error) {
	if _, isFlow := d.Flows[in.Agent]; isFlow && in.Tool == agent.GenerateTool {
		return d.generateStep(ctx, in)
	}
	switch {
	case in.Check != nil && in.Tool == agent.GenerateTool: // a judge
		return d.generateStep(ctx, in)
	case in.Check != nil:
		return d.makeCheck(ctx, in)
	}
	if in.CheckOnly {
		return d.checkEdited(ctx, in)
	}
	return d.callTool(ctx, in)
}

// generateStep makes a flow's call of a model. It is a tool call like others, so that holds and
// limits apply as to others; but what its attempts use is charged.
func (d *Activities) generateStep(ctx context.Context, in ToolInput) (ToolOutput, error) {
	attempt := in.attempt(activity.GetInfo(ctx))
	t := newCharges(ctx, in.Carryover)
	defer heartbeatWith(ctx, t.heartbeat)()
	ctx, leave := d.begin(ctx, in.Session, in.KnownHolds, in.Parent)
	defer leave()
	out := ToolOutput{ToolResult: agent.ToolResult{Call: in.Call, Tool: in.Tool}, Hold: heldBy(ctx)}
	if out.Hold != nil {
		out.Status, out.Text = agent.CallSkipped, "Not executed: the run was interrupted before the call began."
		return out, nil
	}
	var p wire.Prompt
	reply, err := d.promptReply(ctx, &in, &p, t)
	reply, err = t.settle(ctx, reply, err)
	out.Status, out.Text, out.Hold = agent.CallOK, cmp.Or(string(reply.Output), agent.Message{Parts: reply.Parts}.Text()), heldBy(ctx)
	var fault *agent.Error
	var veto vetoError
	switch {
	case errors.As(err, &veto):
		out.Text = veto.verdict()
	case err == nil:
	case errors.As(err, new(durable.NoSlot)): // another build may have the model
		return ToolOutput{}, err
	case errors.As(err, &fault) && fault.Retryable && attempt < in.Attempts && !stopped(ctx):
		return ToolOutput{}, fault // the next attempt reads the charges from the heartbeat
	default:
		out.ToolResult = failedWith(ctx, err, in, out.ToolResult)
		if errors.As(err, new(unlistedModel)) { // nothing was asked
			out.Status = agent.CallRejected
		}
	}
	out.Charges = t.Charges
	if reply.Usage != (agent.Usage{}) {
		out.Charges = append(slices.Clip(out.Charges), agent.Charge{Usage: reply.Usage})
	}
	for i := range out.Charges { // a flow has no model of its own
		c := &out.Charges[i]
		c.Model, c.Cost = p.Model, t.price.Of(c.Usage)
	}
	out.Text, out.Size = bound(out.Text)
	return out, nil
}

// unlistedModel is the error of a prompt for a model that the flow may not call. A model could return an
// error with the same code.
type unlistedModel struct{ err *agent.Error }

func (e unlistedModel) Error() string { return e.err.Error() }
func (e unlistedModel) Unwrap() error { return e.err }

// promptReply asks the model for a reply to the step's prompt.
func (d *Activities) promptReply(ctx context.Context, in *ToolInput, p *wire.Prompt, t *charges) (wire.Reply, error) {
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil {
		return wire.Reply{}, notBegun(ctx, durable.NoSlot{Missing: asError(err)})
	}
	if err := d.complete(ctx, in); err != nil {
		return wire.Reply{}, err
	}
	if err := json.Unmarshal(in.Arguments, p); err != nil {
		return wire.Reply{}, agent.Errorf(agent.CodeInvalidInput, "the prompt is no prompt: %w", err)
	}
	spec := *log.Spec()
	if p.Model == "" && len(spec.Fallbacks) > 0 {
		p.Model = spec.Fallbacks[0]
	}
	if !slices.Contains(spec.Fallbacks, p.Model) && in.Check == nil {
		return wire.Reply{}, unlistedModel{agent.Errorf(agent.CodeUnknownModel, "the model %q is not among the flow's Options.Models: %s", p.Model, strings.Join(spec.Fallbacks, ", "))}
	}
	if _, err := d.Model(p.Model); err != nil {
		return wire.Reply{}, notBegun(ctx, durable.NoSlot{Missing: asError(err)})
	}
	if in.Check != nil {
		spec.Reasoning = cmp.Or(in.Check.Reasoning, spec.Reasoning)
	}
	spec.Model, spec.Fallbacks, spec.Toolset, spec.Completion = p.Model, nil, nil, agent.CompletionNatural
	spec.Instructions, spec.Output, spec.MaxOutputTokens, spec.ModelAttempts = p.Instructions, p.Output, p.MaxOutputTokens, in.Attempts
	// Before anything is sent, and by the prompt alone: the model does not get the flow's log.
	t.measures(estimatorOf(&store.View{}, &spec))
	ask := ModelInput{Tried: in.Tried, ModelArgs: loop.ModelArgs{Caller: in.Caller, Timeout: in.Timeout}, quiet: true}
	reply, _, err := d.askModels(ctx, &spec, []agent.Message{agent.TextMessage(agent.RoleUser, p.Text)}, ask, t)
	if err != nil {
		return wire.Reply{}, err
	}
	if reply.Finish != agent.FinishStop {
		return reply, agent.Errorf(agent.CodeBadOutput, "%s did not end its reply: %s", p.Model, reply.Finish)
	}
	var wrong string
	if reply.Output, wrong = checkOutput(&spec, reply.Parts); wrong != "" {
		bad := agent.Errorf(agent.CodeBadOutput, "the reply of %s does not fit the schema: %s", p.Model, wrong)
		bad.Retryable = true
		return reply, bad
	}
	return reply, nil
}
