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

// Verbs lists what may be said to a live run.
var Verbs = []agent.Verb{
	agent.VerbPause, agent.VerbInterrupt, agent.VerbResume, agent.VerbStop, agent.VerbCancel, agent.VerbSend,
	agent.VerbAnswer, agent.VerbApprove, agent.VerbReject, agent.VerbAnswers, agent.VerbEmit,
}

// Names of what runs say to each other. A dot is in them, so that nobody types them.
const (
	ChildReport = "fermata.child" // a child to its parent: [wire.ChildReport]
	ParentOrder = "fermata.order" // a parent to its child: [wire.ParentOrder]
	GrantOrder  = "fermata.grant" // a parent to its child: [wire.GrantOrder]
)

// ProcessType is the type of the workflow by which others speak to one worker process. It is
// on a task queue that only this process polls, and answers [Held].
const ProcessType = "fermata.process"

// ProcessID is the id of a process's workflow. No session has such a name.
func ProcessID(process string) string { return "fermata/process/" + process }

// ProcessQueue is the task queue that one of the processes on a task queue polls alone.
func ProcessQueue(taskQueue, process string) string {
	return "fermata/process/" + taskQueue + "/" + process
}

// Decode reads what is said under a verb's name, strictly (docs/wire.md §1, §4). Its
// errors are [agent.CodeInvalidInput], with the path of the field, and [agent.CodeTooLarge].
func Decode(verb agent.Verb, data []byte) (agent.Command, *agent.Error) {
	return DecodeAt(math.MaxInt, verb, data)
}

// DecodeAt reads as a build of a revision did (internal/loop has the revisions). Runs read
// so: what a run refused once it refuses again when its history is replayed.
func DecodeAt(revision int, verb agent.Verb, data []byte) (agent.Command, *agent.Error) {
	command, err := reader{revision}.decode(verb, data)
	return command, durable.Within(string(verb)+" refused", err)
}

// since are the verbs that are not known from the first revision on.
var since = map[agent.Verb]int{}

// reader reads as a build of a revision did.
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
		return read(r, data, agent.MaxPayload, func(agent.ResumeCommand) error { return nil })
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

// unknown is the refusal of a name that is no verb. It stands in the log, and so it lists the
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
		return nil, agent.Errorf(agent.CodeInvalidInput, "id has %d characters; at most %d are taken", len(id), agent.MaxIDLength).WithPath("id")
	}
	if by := c.Header().By; len(by) > maxBy {
		return nil, agent.Errorf(agent.CodeInvalidInput, "by has %d characters; at most %d are taken", len(by), maxBy).WithPath("by")
	}
	return c, check(c)
}

// Update says something by update and returns the answer. An empty run is whatever
// run is live; the guard is in the payload, since an execution's id changes over
// a run's life. Where the server can't be sure that the verb arrived, the code is
// [agent.CodeTimeout]: say the same, with the same id, again. So it is with what was
// refused: it is weighed anew.
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
	if id == "" {
		return ack, unsaid(session, command, say(freshUpdate()))
	}
	// The server answers a second update of one update id with the first one's outcome,
	// whatever its verb and payload are. The run has to see those that differ.
	err = say(id + "-" + remembered.CommandDigest(command))
	if errors.As(err, new(*temporal.ApplicationError)) && !durable.Rejected(err) {
		// The server keeps an update's first outcome under its id, and this may be an
		// older refusal. What it has taken the run knows by the id in the payload. A
		// rejection is not kept, so it is new: said again, it would be refused and audited twice.
		err = say(freshUpdate())
	}
	return ack, unsaid(session, command, err)
}

// freshUpdate is an update's id under which the server has no outcome.
func freshUpdate() string { return uuid.Must(uuid.NewV7()).String() }

// UpdateWithStart says something by update to the session's live run or, where none is,
// to the next, which it begins in the same call. Each call is an update of its own:
// under the id of one that a closed run has answered the server would answer the same
// and begin nothing. Errors are those of [Update].
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

// Signal says something by signal, which nobody has to be there to hear. What
// has to be refused then is shown in the run's status.
func Signal(ctx context.Context, c client.Client, session string, command agent.Command) error {
	if err := sized(command); err != nil {
		return err
	}
	return unsaid(session, command, c.SignalWorkflow(ctx, session, "", string(command.Verb()), command))
}

// sized refuses what no run would take, before it is sent: of what is too large the
// server says different things at different sizes, or asks to try again.
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

// closing reports whether the server did not find the workflow since it is completed,
// or was about to be when the update came.
func closing(message string) bool {
	return strings.Contains(message, "already completed") || strings.Contains(message, "aborted by closing workflow")
}

// unsaid tells of a run that has ended that it is closed: the server knows only
// that the workflow is completed.
func unsaid(session string, command agent.Command, err error) error {
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing) && closing(missing.Message):
		next := "send begins the next one"
		if command.Verb() == agent.VerbEmit {
			next = "start the next one and emit again, with the same id: a daemon takes it then"
		}
		e := agent.Errorf(agent.CodeClosed, "%s refused: the run of session %s is at an end; %s", command.Verb(), session, next)
		e.Session = session
		return e
	}
	return fmt.Errorf("saying %s to session %s: %w", command.Verb(), session, durable.FromRPC(err))
}
