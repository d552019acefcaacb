package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
)

// audited records a verb that came by update, and returns its refusal. It runs in
// validators only: before the verb is in the history, and in no replay. A verb that
// cannot be recorded is refused.
func (r *run) audited(ctx workflow.Context, verb agent.Verb, data []byte, refused *agent.Error) *agent.Error {
	if r.shell.Audit == nil {
		return refused
	}
	command := r.commandRecord(verb, data)
	if info := workflow.GetCurrentUpdateInfo(ctx); info != nil {
		command.ID = info.ID
	}
	if refused != nil {
		command.Refused = refused
	}
	if err := r.shell.Audit.Command(command); err != nil && refused == nil { //workflowcheck:ignore a validator's refusal is not recorded
		return agent.Errorf(agent.CodeNotWritten, "%s refused: %w", verb, err)
	}
	return refused
}

// auditRefusal records that the handler refused a verb that its validator had accepted, as that has been
// recorded: one that waited until the run had its definition, and a late answer, which the log keeps.
func (r *run) auditRefusal(verb agent.Verb, data []byte, err error) {
	if err == nil || r.shell.Audit == nil || !r.recorded(r.ctx) {
		return
	}
	command := r.commandRecord(verb, data)
	command.Refused = durable.FromTemporal(err)
	r.failIfUnrecorded(r.shell.Audit.Command(command)) //workflowcheck:ignore the run continues only if it is recorded
}

// failIfUnrecorded fails the workflow task if an entry could not be written. The server
// repeats the task.
func (r *run) failIfUnrecorded(err error) {
	if err != nil {
		panic(err)
	}
}

// auditSignal records a verb that came by signal.
func (r *run) auditSignal(s signal, between bool) {
	if between || r.shell.Audit == nil || !r.recorded(r.ctx) {
		return
	}
	command := r.commandRecord(agent.Verb(s.name), s.data)
	command.Signal = true
	r.failIfUnrecorded(r.shell.Audit.Command(command)) //workflowcheck:ignore the run continues only if it is recorded
}

// commandRecord returns what the audit records of a verb.
func (r *run) commandRecord(verb agent.Verb, data []byte) observe.RunCommand {
	record := observe.RunCommand{Session: r.state.Session, Run: r.state.Run, Verb: verb, Data: data}
	if info := workflow.GetInfo(r.ctx); record.Session == "" {
		record.Session = info.WorkflowExecution.ID
	}
	if r.state.Spec != nil {
		record.Agent = r.state.Spec.Name
	}
	if command, bad := signals.DecodeAt(r.revision, verb, data); bad == nil {
		for _, proof := range proofs(command) {
			record.Principals = append(record.Principals, proof.Principal)
		}
	}
	return record
}

// outsideCallOf returns the call of the user's own that an event ends; nil for any other event.
// The state is that before the event.
func outsideCallOf(before loop.State, e agent.Event) *observe.OutsideCall {
	if e.Type != agent.EventCallDone && e.Type != agent.EventCallUnknown {
		return nil
	}
	t, since, gaveUp := before.OutsideCall(e.Call.Call)
	if t == nil {
		return nil
	}
	return &observe.OutsideCall{Kind: t.Kind, Began: since, GaveUp: gaveUp}
}

// observed passes an event to the audit and the observers. The audit comes first: if it can't
// record the event, the task is repeated, and the observers would receive the event twice.
func (r *run) observed(seen *observe.RunEvent) {
	if r.shell.Audit != nil {
		r.failIfUnrecorded(r.shell.Audit.Event(*seen)) //workflowcheck:ignore the run continues only if it is recorded
	}
	r.shell.Observers.Event(seen) //workflowcheck:ignore it only puts the event into queues, and the run sees nothing of that
}
