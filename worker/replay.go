package worker

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/workflows"
)

// Compatibility says whether this build can continue a run.
type Compatibility string

// The results of a replay.
const (
	// Compatible: the replay agrees with the history, and the worker has all parts of the
	// run.
	Compatible Compatibility = "compatible"
	// Incompatible: the replay differs from the history. The run would wait until a
	// compatible build comes.
	Incompatible Compatibility = "incompatible"
	// ChangedSteps: the replay agrees, but the flow's function of this build does not ask
	// for steps that the run has made or begun, or fails. The run would continue without
	// these steps; see [StepsDifference].
	ChangedSteps Compatibility = "changed_steps"
	// MissingParts: the replay agrees, but the build lacks an agent, a tool, a model or a
	// tool source of the run, or is too old for its state.
	MissingParts Compatibility = "missing_parts"
)

// Verdict is the result of replaying one execution's history. It has no argument and no
// text of the run, but for the error that a flow's function returns.
type Verdict struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	// Execution is the run id of the execution. It differs from Run once a run has
	// continued as new.
	Execution string `json:"execution"`
	// Agent is the run's agent; empty if the history does not say.
	Agent         string        `json:"agent,omitempty"`
	Compatibility Compatibility `json:"compatibility"`
	// Event is where an incompatible run differs; nil for others.
	Event *EventRef `json:"event,omitempty"`
	// Reason says what differs or is missing; empty for a compatible run.
	Reason string `json:"reason,omitempty"`
	// Steps says which other steps a flow would ask for; nil if they are the same, or if
	// that was not tried.
	Steps *StepsDifference `json:"steps,omitempty"`
}

// StepsDifference is how the steps that a flow's function asks for in this build differ from
// those that the run has asked for. Each list has at most 32 paths.
type StepsDifference struct {
	// Anew are steps that the run would make. Added ones are harmless; a renamed step is made
	// again.
	Anew []string `json:"anew,omitempty"`
	// Left are steps that the run has made or begun, and that would be forgotten.
	Left []string `json:"left,omitempty"`
}

// EventRef names an event of a history.
type EventRef struct {
	ID   int64     `json:"id"`
	Type string    `json:"type"` // as temporal workflow show prints it, "TimerStarted"
	Time time.Time `json:"time"`
}

// Err returns nil for a compatible run. For others it returns [agent.CodeIncompatible],
// with the run, the event and the reason.
func (v Verdict) Err() error {
	switch v.Compatibility {
	case Incompatible:
		return agent.Errorf(agent.CodeIncompatible, "run %s of session %s breaks at event %d, %s: %s", v.Run, v.Session, v.Event.ID, v.Event.Type, v.Reason)
	case ChangedSteps:
		return agent.Errorf(agent.CodeIncompatible, "run %s of session %s continues otherwise with this build: %s", v.Run, v.Session, v.Reason)
	case MissingParts:
		return agent.Errorf(agent.CodeIncompatible, "run %s of session %s can't continue with this build: %s", v.Run, v.Session, v.Reason)
	}
	return nil
}

// Replay replays the history of one execution on this build. Unless the run has ended, it
// also checks that a worker with these options has all parts of the run. The options need
// no Store, but with it a flow's function is tried too: it runs on the run's log, and none
// of its steps is made. Nil options, or options without agents, try the workflow's code alone. The
// error is [agent.CodeInvalidInput], and is about the options or the history, not about
// the run.
func Replay(h *historypb.History, o *Options) (Verdict, error) {
	has, err := o.activities()
	if err != nil {
		return Verdict{}, err
	}
	return replayWith(context.Background(), h, has)
}

// activities returns what a worker with the options has; nil without agents.
func (o *Options) activities() (*activities.Activities, error) {
	if o == nil || len(o.Agents)+len(o.Flows) == 0 {
		return nil, nil
	}
	has, err := o.fit()
	if o.Store != nil && err == nil {
		has.Log = store.NewLog(o.Store)
	}
	return has, err
}

// replayWith is [Replay] with parts that many replays may share.
func replayWith(ctx context.Context, h *historypb.History, has *activities.Activities) (Verdict, error) {
	begun := h.GetEvents()[:min(1, len(h.GetEvents()))]
	if len(begun) == 0 || !slices.Contains(judged, begun[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()) {
		return Verdict{}, agent.Errorf(agent.CodeInvalidInput, "replaying: this is not the history of a run; a run's begins with WorkflowExecutionStarted of the type %s", signals.WorkflowType)
	}
	start := begun[0].GetWorkflowExecutionStartedEventAttributes()
	v := Verdict{V: agent.Version, Session: start.GetWorkflowId(), Run: start.GetFirstExecutionRunId(), Execution: executionOf(h.GetEvents()), Compatibility: Compatible}
	asked := &stateReader{}
	if has != nil {
		asked.converter = has.Converter
	}
	if start.GetWorkflowType().GetName() != signals.WorkflowType { // the others have no parts that a worker could lack
		v.tries(settled(h.GetEvents()), asked)
		return v, nil
	}
	// Before the replay, which would fail on such a state with a reason that says less.
	if reason := tooNew(start); reason != "" {
		v.Compatibility, v.Reason = MissingParts, reason
		return v, nil
	}
	events := settled(h.GetEvents())
	is := unbegun(start)
	v.Agent = is.agent()
	if slices.ContainsFunc(events, completes) {
		if !v.tries(events, asked) {
			return v, nil
		}
		if v.Agent != "" && closes(events[len(events)-1]) { // nothing else of its state is looked at
			return v, nil
		}
		if err := asked.ask(&is); err != nil {
			return v, err
		}
	}
	v.Agent = is.agent()
	if closes(events[len(events)-1]) { // it needs no parts any more
		return v, nil
	}
	if lacks := is.lacks(has); lacks != "" {
		v.Compatibility, v.Reason = MissingParts, "it needs what this worker lacks: "+lacks
		return v, nil
	}
	return v, v.triesFlow(ctx, &is, has)
}

// judged are the workflow types that are replayed: runs, the accounts of daily limits, on
// which all runs of a task queue depend, and calls of Nexus operations.
var judged = []string{signals.WorkflowType, signals.DailyType, signals.NexusType, signals.OperationType}

// tries replays events and reports whether they agree. If not, it sets the verdict.
func (v *Verdict) tries(events []*historypb.HistoryEvent, w *stateReader) bool {
	if !slices.ContainsFunc(events, completes) {
		return true
	}
	err := replay(events, w)
	if err != nil {
		b := replaying(func(part []*historypb.HistoryEvent) error { return replay(part, &stateReader{converter: w.converter}) }).find(events, err)
		v.Compatibility, v.Event, v.Reason = Incompatible, b.ref(), b.reason
	}
	return err == nil
}

// replay replays events as a worker with an empty cache would.
func replay(events []*historypb.HistoryEvent, w *stateReader) error {
	shell := &workflows.Shell{LogCache: activities.NewLogCache(), InFlight: activities.NewInFlight(), Converter: w.converter}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: append(interceptors(shell), w),
		// Many replays may keep the machine busy, which is no fault of the run.
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return err
	}
	shell.Register(r)
	start := events[0].GetWorkflowExecutionStartedEventAttributes()
	return r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), &historypb.History{Events: events}, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: start.GetWorkflowId(), RunID: executionOf(events)},
	})
}

// executionOf returns the run id of the execution that has a history. After a reset the
// history begins with the first execution's id; the failed task names the new one.
func executionOf(events []*historypb.HistoryEvent) string {
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, e := range events {
		if reset := e.GetWorkflowTaskFailedEventAttributes().GetNewRunId(); reset != "" {
			id = reset
		}
	}
	return id
}

// interceptors returns the interceptors of every worker and every replay.
func interceptors(s *workflows.Shell) []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{s.Interceptor()}
}

// settled removes an open workflow task from the end. With it, the SDK would not compare
// the commands of the task before it. It also removes a cancellation at the end, which no
// task has seen: the SDK would compare the commands that it causes with those of that task.
func settled(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	for n := len(events); n > 0; n-- {
		switch events[n-1].GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		default:
			return events[:n]
		}
	}
	return nil
}

// completes reports whether an event ends a workflow task. The events up to the next
// task's start are the commands of that task.
func completes(e *historypb.HistoryEvent) bool {
	return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
}

// closes reports whether an event ends its execution.
func closes(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}
