package worker

import (
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
	"github.com/fermata-agents/fermata/workflows"
)

// Compatibility says whether this build could go on with a run.
type Compatibility string

// What a replay can come to.
const (
	// Compatible: the build makes of the history what was made of it, and has what the run
	// is made of.
	Compatible Compatibility = "compatible"
	// Incompatible: the build makes something else of the history. The run would stand
	// still until a compatible build comes.
	Incompatible Compatibility = "incompatible"
	// MissingParts: the history replays, and the build lacks an agent, a tool, a model or a
	// source of tools that the run was begun with; or it is too old for the run's state.
	MissingParts Compatibility = "missing_parts"
)

// Verdict is what came of the replay of one execution's history. No argument and
// no text of a run is in it.
type Verdict struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	// Execution is the run id of Temporal's execution whose history it is; it differs
	// from Run once a run has gone on in a new execution.
	Execution string `json:"execution"`
	// Agent is the run's, or empty where the history does not tell.
	Agent         string        `json:"agent,omitempty"`
	Compatibility Compatibility `json:"compatibility"`
	// Event is where a broken run breaks; nil for others.
	Event *EventRef `json:"event,omitempty"`
	// Reason says what differs or is missing; empty for one that fits.
	Reason string `json:"reason,omitempty"`
}

// EventRef names an event of a history.
type EventRef struct {
	ID   int64     `json:"id"`
	Type string    `json:"type"` // as temporal workflow show prints it, "TimerStarted"
	Time time.Time `json:"time"`
}

// Err is nil for a run that fits, and else says with [agent.CodeIncompatible] which run
// does not, and where and why.
func (v Verdict) Err() error {
	switch v.Compatibility {
	case Incompatible:
		return agent.Errorf(agent.CodeIncompatible, "run %s of session %s breaks at event %d, %s: %s", v.Run, v.Session, v.Event.ID, v.Event.Type, v.Reason)
	case MissingParts:
		return agent.Errorf(agent.CodeIncompatible, "run %s of session %s can't go on with this build: %s", v.Run, v.Session, v.Reason)
	}
	return nil
}

// Replay replays the history of one execution of a run on the workflow of this
// build, and looks whether a worker with these options has what the run is made of,
// unless it has ended. The options need no Store; nil ones, and those without agents, try the workflow's
// code alone. The error is about the options or the history, [agent.CodeInvalidInput],
// and not about the run.
func Replay(h *historypb.History, o *Options) (Verdict, error) {
	has, err := o.activities()
	if err != nil {
		return Verdict{}, err
	}
	return replayWith(h, has)
}

// activities is what a worker with the options has; nil if it has no agents.
func (o *Options) activities() (*activities.Activities, error) {
	if o == nil || len(o.Agents) == 0 {
		return nil, nil
	}
	return o.fit()
}

// replayWith is [Replay] on an inventory, which many replays at once may share.
func replayWith(h *historypb.History, has *activities.Activities) (Verdict, error) {
	begun := h.GetEvents()[:min(1, len(h.GetEvents()))]
	if len(begun) == 0 || !slices.Contains(judged, begun[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()) {
		return Verdict{}, agent.Errorf(agent.CodeInvalidInput, "replaying: this is not the history of a run; a run's begins with WorkflowExecutionStarted of the type %s", signals.WorkflowType)
	}
	start := begun[0].GetWorkflowExecutionStartedEventAttributes()
	v := Verdict{V: agent.Version, Session: start.GetWorkflowId(), Run: start.GetFirstExecutionRunId(), Execution: executionOf(h.GetEvents()), Compatibility: Compatible}
	if start.GetWorkflowType().GetName() == signals.DailyType { // it is made of nothing that a worker could lack
		v.tries(settled(h.GetEvents()), &stateReader{})
		return v, nil
	}
	if reason := tooNew(start); reason != "" {
		v.Compatibility, v.Reason = MissingParts, reason
		return v, nil
	}
	events := settled(h.GetEvents())
	is := unbegun(start)
	v.Agent = is.agent()
	if slices.ContainsFunc(events, completes) {
		asked := &stateReader{}
		if !v.tries(events, asked) {
			return v, nil
		}
		if err := asked.ask(&is); err != nil {
			return v, err
		}
	}
	v.Agent = is.agent()
	if lacks := is.lacks(has); lacks != "" && !closes(events[len(events)-1]) {
		v.Compatibility, v.Reason = MissingParts, "it needs what this worker lacks: "+lacks
	}
	return v, nil
}

// judged are the types of the workflows that are replayed: runs, and the accounts of daily
// limits, which all runs of a task queue depend on.
var judged = []string{signals.WorkflowType, signals.DailyType}

// tries replays events, and reports whether they fit.
func (v *Verdict) tries(events []*historypb.HistoryEvent, w *stateReader) bool {
	if !slices.ContainsFunc(events, completes) {
		return true
	}
	err := replay(events, w)
	if err != nil {
		b := replaying(func(part []*historypb.HistoryEvent) error { return replay(part, &stateReader{}) }).find(events, err)
		v.Compatibility, v.Event, v.Reason = Incompatible, b.ref(), b.reason
	}
	return err == nil
}

// replay replays events as a worker would that has nothing in its cache.
func replay(events []*historypb.HistoryEvent, w *stateReader) error {
	shell := &workflows.Shell{LogCache: activities.NewLogCache(), InFlight: activities.NewInFlight()}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: append(interceptors(shell), w),
		// A machine that is busy with many replays is no fault of the run's.
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

// executionOf is the run id of the execution that has a history. A reset leaves in it the
// id with which the first execution began, and tells the new one in the task that it failed.
func executionOf(events []*historypb.HistoryEvent) string {
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, e := range events {
		if reset := e.GetWorkflowTaskFailedEventAttributes().GetNewRunId(); reset != "" {
			id = reset
		}
	}
	return id
}

// interceptors are those of every worker and every replay.
func interceptors(s *workflows.Shell) []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{s.Interceptor()}
}

// settled leaves out the workflow task at the end that is still to be done: with it,
// the SDK would not compare what the task before has done.
func settled(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	for n := len(events); n > 0; n-- {
		switch events[n-1].GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		default:
			return events[:n]
		}
	}
	return nil
}

// completes reports whether an event is the end of a workflow task: what follows up
// to the next one's start is what the task has done.
func completes(e *historypb.HistoryEvent) bool {
	return e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
}

// closes reports whether an event is the end of its execution.
func closes(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}
