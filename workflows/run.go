package workflows

import (
	"cmp"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
)

// Shell is the workflow fermata.run with what it needs of its process.
type Shell struct {
	// LogCache is where steps in this process find the open part of a run's log.
	LogCache *activities.LogCache
	// InFlight gives up at once what this process has in flight.
	InFlight *activities.InFlight
	// Keys prove approvers; without any no token is good.
	Keys signals.Keys
	// Policy binds what is said to runs, also those that began before it; nil means that
	// each run's own counts.
	Policy agent.Policy
	// Build is the version that the query status shows.
	Build string
	// Observer hears of what runs do; it may be nil.
	Observer observe.Observer
	// Audit records what runs are told and what comes of it; it may be nil.
	Audit observe.Auditor
}

// Registry is where the workflow is registered: a worker, a replayer, or a test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

// Register registers the workflow of every agent.
func (s *Shell) Register(r Registry) {
	r.RegisterWorkflowWithOptions(s.run, workflow.RegisterOptions{Name: signals.WorkflowType})
	r.RegisterWorkflowWithOptions(daily, workflow.RegisterOptions{Name: signals.DailyType})
	r.RegisterWorkflowWithOptions(tick, workflow.RegisterOptions{Name: signals.TickType})
}

// run is one execution of a run. state is what the execution before it handed on, and more
// says who handed it on (see handed) or, in the first one, what the parent says of it.
// All is read here and not by the SDK, which would fail the run for what this worker can't
// read.
func (s *Shell) run(outer workflow.Context, start, state, more converter.RawValue) (*agent.Outcome, error) {
	// A cancellation of the workflow is an input like others: it is the machine
	// that gives up what is in flight, and storing the transcript goes on.
	ctx, _ := workflow.NewDisconnectedContext(outer)
	r := &run{shell: s, ctx: ctx, outer: outer, queue: queueOf(ctx), wakeup: workflow.NewBufferedChannel(ctx, 1), outbox: map[string][]func(){}, matchBudget: match.NewBudget(0), historyLengthAtStart: workflow.GetInfo(outer).GetCurrentHistoryLength()}
	r.revision = int(workflow.GetVersion(ctx, revisionChange, loop.OldestRevision, loop.Revision))
	r.work, r.cancelWork = workflow.WithCancel(ctx)
	if err := r.answerQueries(ctx); err != nil {
		return nil, err
	}
	r.queue.wake = r.wake
	r.wake() // signals may have come before
	info := workflow.GetInfo(ctx)
	r.execution = executionOf(info, "")
	if info.ContinuedExecutionRunID != "" && state.Payload() != nil {
		if by, bad := handedBy(more, info); bad != nil {
			r.stepInput(loop.Begin{Session: info.WorkflowExecution.ID, Run: cmp.Or(info.FirstRunID, info.WorkflowExecution.RunID), Err: durable.Within("start refused", bad)})
		} else {
			carried, err := readState(state)
			if err != nil {
				panic(err) // the task fails, not the run: the build that wrote it will take it back
			}
			r.state, r.execution = carried, executionOf(info, by.Execution)
			r.stepInput(loop.Continued{})
		}
	} else {
		in, err := r.readStart(start)
		birth := (*wire.ChildStart)(nil)
		if info.ParentWorkflowExecution != nil && err == nil {
			birth, err = decoded[wire.ChildStart](more)
		}
		if bad := agent.CheckSession(info.WorkflowExecution.ID); bad != nil && birth == nil {
			err = durable.Within("start refused", bad)
		}
		r.stepInput(loop.Begin{Session: info.WorkflowExecution.ID, Run: cmp.Or(info.FirstRunID, info.WorkflowExecution.RunID), Start: in, BriefingText: briefing(in), ChildStart: birth, Err: err})
	}
	// An update that came with the first task runs as soon as it has a handler: not
	// before the run is what it is.
	if err := r.takeUpdates(ctx); err != nil {
		return nil, err
	}
	for !r.finished() {
		r.setTimer(ctx)
		r.selector().Select(ctx)
		r.takeReady()
		r.stepClock()
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return nil, err
	}
	if r.finalReport != nil {
		_, err := workflow.AwaitWithTimeout(ctx, finalReportTime, r.finalReport.IsReady)
		if err != nil {
			return nil, err
		}
	}
	r.takeSignals() // what came with the end, or waited for a beginning that there was not
	return r.result()
}

// handed says who handed on a state.
type handed struct {
	// From is the execution that wrote the state.
	From string `json:"from"`
	// Execution is what tokens are bound to, where the workflow was reset.
	Execution string `json:"execution,omitempty"`
}

// handedBy reads who handed on what an execution begins with. The error is
// [agent.CodeBadSignature] if it was not the execution right before: the server gives a start's
// input also to what a cron schedule or a retry policy makes of it, and whoever may start a
// run, or move what is encrypted, would put their own state, or an older one, in its place.
// Nobody who starts a run knows the id that its execution gets.
func handedBy(raw converter.RawValue, info *workflow.Info) (handed, *agent.Error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return handed{}, bad
	}
	var h handed
	if json.Unmarshal(data, &h) != nil || h.From != info.ContinuedExecutionRunID {
		return handed{}, agent.Errorf(agent.CodeBadSignature, "its state was not handed on by the execution before it: start a run without a cron schedule, a retry policy and a second argument")
	}
	return h, nil
}

// readState reads what the execution before this one handed on. What was refused was not
// handed on by it.
func readState(raw converter.RawValue) (loop.State, error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return loop.State{}, bad
	}
	return loop.ReadState(data)
}

func (r *run) readStart(raw converter.RawValue) (agent.Start, *agent.Error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return agent.Start{}, durable.Within("start refused", bad)
	}
	return signals.DecodeStartAt(r.revision, data)
}

// decoded reads a value of our own, or nil. The error is that of a payload that was refused.
func decoded[T any](raw converter.RawValue) (*T, *agent.Error) {
	data, bad := durable.Bytes(raw)
	if data == nil {
		return nil, bad
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		panic(agent.Errorf(agent.CodeIncompatible, "the run's input can't be read by this build: %w", err)) // the task fails, not the run
	}
	return v, nil
}

// finalReportTime is how long a run waits for its parent to take its last report.
const finalReportTime = 30 * time.Second

func briefing(start agent.Start) string {
	if start.Input.Briefing == nil {
		return ""
	}
	return handoff.Briefing(*start.Input.Briefing)
}

// run is a run in the making: a state, and what is under way for it.
type run struct {
	shell *Shell
	ctx   workflow.Context // the run's own, on which everything is started
	state loop.State
	// revision is what the execution's first task has pinned: machine and decoders decide
	// by it, whatever build goes on with the history.
	revision int
	// historyLengthAtStart is the length of the history in the execution's first task.
	historyLengthAtStart int
	// execution is what tokens are bound to.
	execution string
	// awaited is what is under way and not taken yet, in the order in which it was begun.
	awaited []awaited
	// wakeup rings when there is something to look at beside what is awaited.
	wakeup workflow.Channel
	queue  *queue
	// cancelSeen tells that the machine knows of the workflow's cancellation.
	cancelSeen bool
	// outer is the workflow's own context: the only one that a cancellation from
	// outside ends.
	outer workflow.Context
	// work is the context of model and tool calls; abandon gives them up.
	work       workflow.Context
	cancelWork workflow.CancelFunc
	// nextTimer is when the machine wants to look at the clock, if no timer is set for that yet;
	// disarm takes the last timer back, and rung tells that it has come.
	nextTimer   *loop.SetTimer
	cancelTimer workflow.CancelFunc
	woken       bool
	local       int // steps that are done within the task
	// finalReport is the last report to the parent: a run that has closed sends nothing.
	finalReport workflow.Future
	// outbox is what is sent to other runs and not known to have arrived, by session: the
	// first is on its way.
	outbox        map[string][]func()
	ack           agent.Ack    // of the verb that was said last
	immediate     []loop.Input // what an effect brought at once
	continueAsNew bool         // the machine wants a new execution
	over          bool
	next          error // continue-as-new
	// task is the workflow task of looks and trying (see [loop.Moment]). Trying is for
	// validators: no replay runs those, so that they must not take from what the run has.
	task                   int
	matchBudget, tryBudget *match.Budget
}

func (r *run) moment(ctx workflow.Context) loop.Moment {
	info := workflow.GetInfo(ctx)
	if task := info.GetCurrentHistoryLength(); task != r.task || task == 0 { // tests count no tasks
		r.task, r.matchBudget, r.tryBudget = task, r.matchBudget.Renew(match.Looks), r.matchBudget.Renew(match.Looks)
	}
	return loop.Moment{
		MatchBudget: r.matchBudget,
		At:          workflow.Now(ctx).UTC(), Revision: r.revision, ContinueAsNewSuggested: info.GetContinueAsNewSuggested(),
		Task: info.GetCurrentHistoryLength(), FirstTask: info.GetCurrentHistoryLength() == r.historyLengthAtStart, NearHistoryLimit: info.GetContinueAsNewSuggested() && (info.GetCurrentHistoryLength() > nearEvents || info.GetCurrentHistorySize() > nearBytes),
	}
}

// revisionChange is the change by which an execution pins its revision: listings find runs
// by it, as TemporalChangeVersion = "fermata.revision-1".
const revisionChange = "fermata.revision"

// Past these a history is near its limit: the server ends a run at 51,200 events or
// 50 MB, and a turn that is given up needs some of the rest.
const (
	nearEvents = 40_000
	nearBytes  = 30 << 20
)

// step hands an input to the machine and performs what it asks for. The error is
// a refusal: nothing has changed.
func (r *run) step(in loop.Input) error {
	before := r.state
	state, effects, err := loop.Step(before, r.moment(r.ctx), in)
	if err != nil {
		return err
	}
	r.state = state
	r.observe(before)
	for _, e := range effects {
		r.perform(r.ctx, e)
	}
	for len(r.immediate) > 0 {
		in := r.immediate[0]
		r.immediate = r.immediate[1:]
		r.stepInput(in)
	}
	return nil
}

// observe tells of the events that a step has brought.
func (r *run) observe(before loop.State) {
	if r.shell.Observer == nil && r.shell.Audit == nil || workflow.IsReplaying(r.ctx) {
		return
	}
	seen := observe.RunEvent{Session: r.state.Session, Run: r.state.Run, TraceSegment: before.TraceSegment}
	if r.state.Spec != nil {
		seen.Agent, seen.Model = r.state.Spec.Name, r.state.Spec.Model
	}
	tail := r.state.Log.Tail
	for _, e := range tail[max(0, len(tail)-int(r.state.Log.Seq-before.Log.Seq)):] {
		seen.Event = e
		r.observed(seen)
		seen.TraceSegment = seen.TraceSegment.Next(r.state.Run, e)
	}
}

// stepInput steps an input that is no verb. One that the machine refuses came too
// late: the run went on without it.
func (r *run) stepInput(in loop.Input) {
	if err := r.step(in); err != nil {
		workflow.GetLogger(r.ctx).Debug("input not taken", "reason", err.Error())
	}
}

// opened reports whether the run knows what it is made of.
func (r *run) opened() bool { return !r.state.HasNoLog() || r.state.Phase == loop.RunListing }

// mayTake reports whether what is said under a name can be taken now, and does not have
// to wait. A cancel needs to know nothing. What a run would keep in its log waits until
// it has one: a run that comes to nothing before would lose it.
func (r *run) mayTake(name string) bool {
	switch agent.Verb(name) {
	case agent.VerbCancel:
		return true
	case agent.VerbEmit, agent.VerbSend, agent.VerbAnswer, agent.VerbApprove, agent.VerbReject, agent.VerbAnswers:
		return !r.state.HasNoLog()
	}
	return r.opened()
}

// stepClock tells the machine the time, if it asked for that: last, so that an answer
// wins against the deadline that comes with it.
func (r *run) stepClock() {
	if r.woken && !r.over {
		r.woken = false
		r.stepInput(loop.TimerFired{})
	}
}

// finished reports whether this execution has done its part. One that hands on its
// state does so when nothing is left to be heard and nothing to be sent: the next
// would not hear it, and what has closed sends nothing.
func (r *run) finished() bool {
	if !r.continueAsNew || r.over {
		return r.over
	}
	switch {
	case r.state.Phase != loop.RunContinuing || r.state.Log.Sealing > 0:
		r.continueAsNew = false // something was said meanwhile that has to be stored
	case len(r.outbox) > 0:
	case r.outer.Err() != nil: // a cancellation would be lost with this execution
		r.continueAsNew = false
		r.stepInput(loop.Cancel{})
	default:
		by := handed{From: workflow.GetInfo(r.ctx).WorkflowExecution.RunID}
		if r.execution != r.state.Run { // the workflow was reset
			by.Execution = r.execution
		}
		r.over, r.next = true, workflow.NewContinueAsNewError(r.ctx, signals.WorkflowType, nil, &r.state, by)
	}
	return r.over
}

// result is what the workflow returns: an Outcome, as a result or as the first
// detail of a failure (docs/wire.md §6).
func (r *run) result() (*agent.Outcome, error) {
	if r.next != nil {
		return nil, r.next
	}
	o := r.state.End.Outcome
	switch o.Status {
	case agent.StatusFailed:
		e := *o.Error
		e.Retryable = false
		return nil, durable.Failure(&e, *o)
	case agent.StatusCancelled:
		return nil, temporal.NewCanceledError(*o)
	}
	return o, nil
}
