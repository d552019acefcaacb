package signals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Verbs are the verbs of a live run.
var Verbs = []agent.Verb{
	agent.VerbPause, agent.VerbInterrupt, agent.VerbResume, agent.VerbStop, agent.VerbCancel, agent.VerbSend,
	agent.VerbAnswer, agent.VerbApprove, agent.VerbReject, agent.VerbAnswers, agent.VerbEmit,
}

// Names of signals between runs. They have a dot, so that nobody types them.
const (
	ChildReport = "fermata.child" // a child to its parent: [wire.ChildReport]
	ParentOrder = "fermata.order" // a parent to its child: [wire.ParentOrder]
	GrantOrder  = "fermata.grant" // a parent to its child: [wire.GrantOrder]
)

// ProcessType is the type of the workflow by which other processes reach one worker
// process. It is on a task queue that only this process polls, and answers [Held].
const ProcessType = "fermata.process"

// ProcessID returns the id of a process's workflow. No session can have such an id.
func ProcessID(process string) string { return "fermata/process/" + process }

// ProcessQueue returns the task queue that only one process of a task queue polls.
func ProcessQueue(taskQueue, process string) string {
	return "fermata/process/" + taskQueue + "/" + process
}

// Decode decodes the payload of a verb strictly (docs/wire.md §1, §4). Its errors are
// [agent.CodeInvalidInput], with the path of the field, and [agent.CodeTooLarge].
func Decode(verb agent.Verb, data []byte) (agent.Command, *agent.Error) {
	return DecodeAt(math.MaxInt, verb, data)
}

// DecodeAt decodes as a build of a revision did (internal/loop has the revisions). Runs
// use it: a replay has to refuse what the run refused.
func DecodeAt(revision int, verb agent.Verb, data []byte) (agent.Command, *agent.Error) {
	command, err := reader{revision}.decode(verb, data)
	return command, durable.Within(string(verb)+" refused", err)
}

// since has the verbs that a later revision added, with that revision.
var since = map[agent.Verb]int{}

// reader decodes as a build of a revision did.
type reader struct{ revision int }

func (r reader) decode(verb agent.Verb, data []byte) (agent.Command, error) {
	if r.revision < since[verb] {
		return nil, r.unknown()
	}
	switch verb {
	case agent.VerbPause:
		return read(r, data, 0, func(agent.PauseCommand) error { return nil })
	case agent.VerbInterrupt:
		return read(r, data, 0, func(o agent.InterruptCommand) error { return between("grace", o.Grace, 0, maxGrace) })
	case agent.VerbResume:
		return read(r, data, agent.MaxPayload, func(o agent.ResumeCommand) error { return checkParts("parts", o.Parts) })
	case agent.VerbStop:
		return read(r, data, 0, func(o agent.StopCommand) error { return between("deadline", o.Deadline, minDeadline, maxDeadline) })
	case agent.VerbCancel:
		return read(r, data, 0, func(agent.CancelCommand) error { return nil })
	case agent.VerbSend:
		return read(r, data, agent.MaxPayload, checkSend)
	case agent.VerbAnswer:
		return read(r, data, agent.MaxPayload, checkAnswer)
	case agent.VerbApprove:
		return read(r, data, 0, checkApprove)
	case agent.VerbReject:
		return read(r, data, 0, checkReject)
	case agent.VerbAnswers:
		return read(r, data, agent.MaxPayload, checkAnswers)
	case agent.VerbEmit:
		return read(r, data, 0, checkEmit)
	}
	return nil, r.unknown()
}

// unknown returns the refusal of an unknown verb. The log records it, so it lists the
// verbs of the revision and not those of this build.
func (r reader) unknown() error {
	var known []string
	for _, v := range Verbs {
		if r.revision >= since[v] {
			known = append(known, string(v))
		}
	}
	return agent.Errorf(agent.CodeInvalidInput, "no verb of that name is known; the verbs are %s", strings.Join(known, ", "))
}

func read[C agent.Command](r reader, data []byte, most int, check func(C) error) (agent.Command, error) {
	var c C
	if err := durable.DecodeAt(r.revision, data, &c, most); err != nil {
		return nil, err
	}
	if id := c.Header().ID; len(id) > agent.MaxIDLength {
		return nil, agent.Errorf(agent.CodeInvalidInput, "id has %d bytes; at most %d are taken", len(id), agent.MaxIDLength).WithPath("id")
	}
	if by := c.Header().By; len(by) > maxBy {
		return nil, agent.Errorf(agent.CodeInvalidInput, "by has %d bytes; at most %d are taken", len(by), maxBy).WithPath("by")
	}
	return c, check(c)
}

// Update sends a command by update and returns the run's answer. It goes to whatever run
// of the session is live: an execution's id changes over a run's life, so the payload has
// the guard.
//
// If the server cannot be sure that the command arrived, the code is [agent.CodeTimeout]:
// send the same command again, with the same id. A refused command may also be sent
// again: the run decides again.
func Update(ctx context.Context, c client.Client, session string, command agent.Command) (ack agent.Ack, err error) {
	if err := sized(command); err != nil {
		return ack, err
	}
	say := func(update string) error {
		h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: session, UpdateID: update, UpdateName: string(command.Verb()), Args: []any{command},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(ctx, &ack)
		}
		return err
	}
	id := command.Header().ID
	// A resume may ask hooks, and a second update after their refusal would ask them again. So it has
	// one update, and only the run knows whether it took the resume before, or still asks about it.
	if id == "" || command.Verb() == agent.VerbResume {
		return ack, unsaid(session, command, say(freshUpdate()))
	}
	// For a repeated update id the server returns the first outcome, whatever the verb
	// and payload are. The digest gives a different command another update id, so that
	// the run sees it.
	err = say(id + "-" + remembered.CommandDigest(command))
	if errors.As(err, new(*temporal.ApplicationError)) && !durable.Rejected(err) {
		// The server keeps an update's first outcome under its id, so this may be an old
		// refusal. A fresh id makes the run decide again; it recognizes a command that it
		// took by the id in the payload. A rejection is not kept, so it is new: sent
		// again, the command would be refused and audited twice.
		err = say(freshUpdate())
	}
	return ack, unsaid(session, command, err)
}

// freshUpdate returns an update id under which the server has no outcome.
func freshUpdate() string { return uuid.Must(uuid.NewV7()).String() }

// UpdateWithStart sends a command by update to the session's live run. If none is live,
// it starts the next one in the same call. Each call has a fresh update id: for the id of
// a closed run's update the server would return that outcome, and start nothing. Errors
// are those of [Update].
func UpdateWithStart(ctx context.Context, c client.Client, o client.StartWorkflowOptions, start agent.Start, command agent.Command) (ack agent.Ack, err error) {
	if err := sized(command); err != nil {
		return ack, err
	}
	o.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	h, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(o, WorkflowType, start),
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: freshUpdate(), UpdateName: string(command.Verb()), Args: []any{command}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = h.Get(ctx, &ack)
	}
	return ack, unsaid(o.ID, command, err)
}

// Signal sends a command by signal, which needs no worker at the time. If the run refuses
// it, the run's status shows that.
func Signal(ctx context.Context, c client.Client, session string, command agent.Command) error {
	if err := sized(command); err != nil {
		return err
	}
	return unsaid(session, command, c.SignalWorkflow(ctx, session, "", string(command.Verb()), command))
}

// sized refuses a command that is too large for any run. The server's errors differ by
// size, and some say to try again.
func sized(command agent.Command) error {
	raw, err := json.Marshal(command)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s refused: it can't be written as JSON: %w", command.Verb(), err)
	}
	if len(raw) > agent.MaxPayload {
		return agent.Errorf(agent.CodeTooLarge, "%s refused: the payload has %d bytes; at most %d are taken", command.Verb(), len(raw), agent.MaxPayload)
	}
	return nil
}

// closing reports whether the server did not find the workflow because it is completed,
// or was completing when the update came.
func closing(message string) bool {
	return strings.Contains(message, "already completed") || strings.Contains(message, "aborted by closing workflow")
}

// unsaid translates an error of sending. The server knows only that the workflow is
// completed; the caller gets [agent.CodeClosed].
func unsaid(session string, command agent.Command, err error) error {
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing) && closing(missing.Message):
		next := "send begins the next one"
		switch {
		case strings.Contains(session, "/"): // only the parent begins a sub-agent's next run
			next = "go on with the agent that delegated to it, or fork this session into a new one"
		case command.Verb() == agent.VerbEmit:
			next = "start the next one and emit again, with the same id: a daemon takes it then"
		}
		e := agent.Errorf(agent.CodeClosed, "%s refused: the run of session %s is at an end; %s", command.Verb(), session, next)
		e.Session = session
		return e
	}
	return fmt.Errorf("sending %s to session %s: %w", command.Verb(), session, durable.FromRPC(err))
}
