package workflows

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
)

// Shell is the workflow fermata.run, with what it needs from its process. LogCache and
// InFlight are required.
type Shell struct {
	// LogCache is where activities in this process find the events that are not stored
	// yet.
	LogCache *activities.LogCache
	// Plays keeps the functions of flows that run in this process; nil if it has none.
	Plays *activities.Plays
	// InFlight cancels the activities of this process without waiting for the server.
	InFlight *activities.InFlight
	// Keys verify approvers' tokens. Without keys every token is refused.
	Keys signals.Keys
	// Policy binds verbs to principals, also for runs that began before it was set. Nil
	// leaves each run to the policy that it began with.
	Policy agent.Policy
	// Build is the version that the query status shows.
	Build string
	// Observers receive the runs' events; nil means none. A replay passes them nothing.
	Observers *observers.Set
	// Converter encodes and decodes what the user's own activities, workflows and Nexus
	// operations take and return; nil means that of the worker's client.
	Converter converter.DataConverter
	// Audit records commands and events; it may be nil. A verb that it cannot record is
	// refused.
	Audit observe.Auditor
}

// run is one execution. state is what the previous execution carried over, and origin names that
// execution (see carried). In a first execution, origin is what the parent passes to this run.
//
// The arguments are raw, and are decoded here. The SDK would fail the run for a payload
// that this worker cannot read; here such a run can end with a code, or its task waits
// for another worker.
func (s *Shell) run(outer workflow.Context, start, state, origin converter.RawValue) (*agent.Outcome, error) {
	// A cancellation is an input: the machine decides what it cancels, and still stores the
	// transcript. So nothing ends the run's own context.
	ctx, _ := workflow.NewDisconnectedContext(outer)
	r := &run{shell: s, ctx: ctx, outer: outer, queue: queueOf(ctx), wakeup: workflow.NewBufferedChannel(ctx, 1), outbox: map[string][]func(){}, copiesOf: map[string]func(){}, orderCopies: map[string]*orderCopies{}, matchBudget: match.NewBudget(0), historyLengthAtStart: workflow.GetInfo(outer).GetCurrentHistoryLength()}
	r.revision = int(workflow.GetVersion(ctx, revisionChange, loop.OldestRevision, loop.Revision))
	r.work, r.cancelWork = workflow.WithCancel(ctx)
	if err := r.answerQueries(ctx); err != nil {
		return nil, err
	}
	r.queue.wake = r.wake
	r.wake() // signals may have arrived before the run had a queue to wake it
	info := workflow.GetInfo(ctx)
	r.execution = executionOf(info, "")
	if info.ContinuedExecutionRunID != "" && state.Payload() != nil {
		if by, bad := carriedBy(origin, info); bad != nil {
			r.stepInput(loop.Begin{Session: info.WorkflowExecution.ID, Run: cmp.Or(info.FirstRunID, info.WorkflowExecution.RunID), Err: durable.Within("start refused", bad)})
		} else {
			before, err := readState(state)
			if err != nil {
				panic(err) // the task fails, not the run: the build that wrote the state will take it
			}
			r.state, r.execution = before, executionOf(info, by.Execution)
			r.stepInput(loop.Continued{})
		}
	} else {
		in, err := r.readStart(start)
		childStart := (*wire.ChildStart)(nil)
		// Only a child workflow may bring a ChildStart, or any start could claim a parent.
		if info.ParentWorkflowExecution != nil && err == nil {
			childStart, err = decoded[wire.ChildStart](origin)
		}
		if bad := agent.CheckSession(info.WorkflowExecution.ID); bad != nil && childStart == nil { // only a child's id has slashes
			err = durable.Within("start refused", bad)
		}
		r.stepInput(loop.Begin{Session: info.WorkflowExecution.ID, Run: cmp.Or(info.FirstRunID, info.WorkflowExecution.RunID), Start: in, BriefingText: briefing(in), ChildStart: childStart, ParentSession: parentSession(info), Err: err})
	}
	// Only now: the SDK runs an update of the first task as soon as it has a handler.
	if err := r.takeUpdates(ctx); err != nil {
		return nil, err
	}
	for !r.tryFinish() {
		r.setTimer(ctx) // one timer a task at most, however many steps asked for one
		r.selector().Select(ctx)
		r.takeReady()
		r.stepClock()
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil { // the caller of an update would get no answer
		return nil, err
	}
	// The server drops a signal that it has not delivered when its sender closes.
	if r.finalReport != nil {
		_, err := workflow.AwaitWithTimeout(ctx, finalReportTime, r.finalReport.IsReady)
		if err != nil {
			return nil, err
		}
	}
	r.takeSignals() // refuses signals that came with the end, or waited for a log that never began
	return r.result()
}

// carried names the execution that carried its state over.
type carried struct {
	// From is the execution that wrote the state, by what Temporal calls its run id.
	From string `json:"from"`
	// Execution is what tokens are bound to; empty unless the workflow was reset.
	Execution string `json:"execution,omitempty"`
}

// carriedBy checks that the previous execution wrote the state. The error is
// [agent.CodeBadSignature] if it did not.
//
// The server also passes a start's input on when a cron schedule or a retry policy begins
// a new execution. An attacker could start a run with a state of their own, or with an
// old one. They cannot know the id that an execution will get, so they cannot forge From.
func carriedBy(raw converter.RawValue, info *workflow.Info) (carried, *agent.Error) {
	if durable.Foreign(raw.Payload()) {
		panic(agent.Errorf(agent.CodeNotSetUp, "the client of this worker lacks the codec of the worker that had the run before")) // the task fails, not the run: a worker that has it takes the run
	}
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return carried{}, bad
	}
	var h carried
	if json.Unmarshal(data, &h) != nil || h.From != info.ContinuedExecutionRunID {
		return carried{}, agent.Errorf(agent.CodeBadSignature, "its state was not carried over by the execution before it: start a run without a cron schedule, a retry policy and a second argument")
	}
	return h, nil
}

// readState reads the state that the previous execution carried over. A payload that does
// not decrypt is not ours, and is an error.
func readState(raw converter.RawValue) (loop.State, error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return loop.State{}, bad
	}
	return loop.ReadState(data)
}

// readStart returns the start, and queues the answers that come with it.
func (r *run) readStart(raw converter.RawValue) (agent.Start, *agent.Error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return agent.Start{}, durable.Within("start refused", bad)
	}
	s, bad := signals.DecodeStartAt(r.revision, data)
	if bad == nil {
		r.queueAnswers(s)
	}
	return s, bad
}

// decoded returns a value that our own code encoded; nil if there is none. A refused
// payload is an error. A member that this build does not know fails the task and not the run, as in a
// carried state: a newer build will take it.
func decoded[T any](raw converter.RawValue) (*T, *agent.Error) {
	data, bad := durable.Bytes(raw)
	if data == nil {
		return nil, bad
	}
	v, d := new(T), json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		panic(agent.Errorf(agent.CodeIncompatible, "the run's input can't be read by this build: %w", err))
	}
	return v, nil
}

// finalReportTime is how long a run waits until the server has delivered its last report
// to the parent.
const finalReportTime = 30 * time.Second

func briefing(start agent.Start) string {
	if start.Input.Briefing == nil {
		return ""
	}
	return handoff.Briefing(*start.Input.Briefing)
}

// run is the workflow's state: the machine's State, and the futures that it awaits.
type run struct {
	shell *Shell
	ctx   workflow.Context // the run's own context: everything is started on it, and nothing cancels it
	state loop.State
	// revision is the one that the first task recorded. Machine and decoders decide by
	// it, whichever build continues the history.
	revision int
	// historyLengthAtStart is the length of the history in the execution's first task. It
	// tells that task from later ones.
	historyLengthAtStart int
	// execution is what tokens are bound to; see executionOf.
	execution string
	// awaited are the futures that are not taken yet, in the order in which they began.
	awaited []awaited
	// wakeup wakes the run for what is no future: a signal, or an update that was carried
	// out. It has one slot: several wakes before the next look are one.
	wakeup workflow.Channel
	queue  *queue
	// cancelSeen means that the machine has been told of the workflow's cancellation.
	cancelSeen bool
	// outer is the workflow's own context. Only a cancellation from outside ends it.
	outer workflow.Context
	// work is the context of model and tool calls. cancelWork cancels it; see
	// cancelInFlight.
	work       workflow.Context
	cancelWork workflow.CancelFunc
	// nextTimer is the timer that the machine asked for last, until setTimer sets it.
	// cancelTimer cancels the timer that is set. timerFired means that a timer has fired and
	// the machine has not been told yet.
	nextTimer   *loop.SetTimer
	cancelTimer workflow.CancelFunc
	timerFired  bool
	// signalsAsked means that the machine waits for the signals that are there.
	signalsAsked bool
	cancelCalls  map[string]workflow.CancelFunc // of a flow's steps in flight
	searches     int                            // for workers that have what an activity needs
	localSeals   int                            // in flight
	// finalReport is the last report to the parent. The run waits for it: once closed it
	// sends nothing.
	finalReport workflow.Future
	// outbox has the signals to other runs that are not known to be delivered, by
	// session. The first of each is being sent.
	outbox map[string][]func()
	// copiesOf has the children that have ended and whose files are being copied, by session: what
	// takes the end without them.
	copiesOf map[string]func()
	// orderCopies are the copies for orders to children, by session, while the outbox has some.
	orderCopies map[string]*orderCopies
	ack         agent.Ack    // the answer to the verb that was stepped last
	refusal     *agent.Error // its refusal, if the step that it made is kept; nil for an answer
	// lateAcks are the answers for which senders wait, by id: see lateAck.
	lateAcks         map[string]*loop.Acknowledge
	immediate        []loop.Input // inputs that an effect brought at once
	continueAsNew    bool         // the machine asked for a new execution
	over             bool
	continueAsNewErr error // the continue-as-new error, once the state is carried over
	// replayed is the length that the history had in the last task that was replayed; see recorded.
	replayed int
	// task is the workflow task for which the two budgets were renewed (see
	// [loop.Moment]). tryBudget is for validators. No replay runs those, so they must not
	// use up matchBudget: a replay would have more of it left, and could decide
	// otherwise.
	task                   int
	matchBudget, tryBudget *match.Budget
}

// recorded reports whether the server records what the run does now, so that others may be shown it.
// A replay records nothing. Nor does a query: if events have come since the last task, Temporal's SDK
// runs the workflow on with them and says that it is no replay. It has no task for them, so the history
// is as long as in the last task that was replayed. If another worker has begun that task meanwhile, the
// two can't be distinguished, and others hear of the events twice.
func (r *run) recorded(ctx workflow.Context) bool {
	n := workflow.GetInfo(ctx).GetCurrentHistoryLength()
	if workflow.IsReplaying(ctx) {
		r.replayed = n
		return false
	}
	return n > r.replayed || n == 0 // tests count no tasks
}

func (r *run) moment(ctx workflow.Context) loop.Moment {
	info := workflow.GetInfo(ctx)
	r.recorded(ctx) // a query needs to know the last task, whether or not anything asks in it
	// The history length at the task's start tells tasks apart, and a replay sees the same
	// number.
	if task := info.GetCurrentHistoryLength(); task != r.task || task == 0 { // tests count no tasks
		r.task, r.matchBudget, r.tryBudget = task, r.matchBudget.Renew(match.Looks), r.matchBudget.Renew(match.Looks)
	}
	return loop.Moment{
		MatchBudget: r.matchBudget,
		At:          workflow.Now(ctx).UTC(), Revision: r.revision, ContinueAsNewSuggested: info.GetContinueAsNewSuggested(),
		SignalsWaiting: len(r.queue.signals) > 0,
		Task:           info.GetCurrentHistoryLength(), FirstTask: info.GetCurrentHistoryLength() == r.historyLengthAtStart,
		HistoryHalfFull: historyOver(info, nearEvents/2, nearBytes/2), NearHistoryLimit: historyOver(info, nearEvents, nearBytes),
	}
}

// historyOver reports whether a new execution is suggested, and the history is longer than a bound.
func historyOver(info *workflow.Info, events, bytes int) bool {
	return info.GetContinueAsNewSuggested() && (info.GetCurrentHistoryLength() > events || info.GetCurrentHistorySize() > bytes)
}

// revisionChange is the GetVersion change by which an execution pins its revision.
// Listings find runs by it, as TemporalChangeVersion = "fermata.revision-1".
const revisionChange = "fermata.revision"

// Past these a history is nearly full. The server ends a run at 51,200 events or 50 MB,
// and cancelling a turn needs part of what is left.
const (
	nearEvents = 40_000
	nearBytes  = 30 << 20
)

// step steps the machine and performs the effects. An error is a refusal: nothing has
// changed.
func (r *run) step(in loop.Input) error {
	before := r.state
	state, effects, err := loop.Step(before, r.moment(r.ctx), in)
	if err != nil {
		return err
	}
	r.state = state
	r.observe(before)
	// The effects of this step come first. An input stepped between two of them would
	// perform its own before the rest.
	for _, e := range effects {
		r.perform(r.ctx, e)
	}
	if !r.state.TakesFilesOfChildren() {
		r.giveUpCopies()
	}
	for len(r.immediate) > 0 {
		in := r.immediate[0]
		r.immediate = r.immediate[1:]
		r.stepInput(in)
	}
	return nil
}

// observe passes the events that a step has added to the observers and the audit. A replay
// passes none: they were passed on when they happened.
func (r *run) observe(before loop.State) {
	if r.shell.Observers == nil && r.shell.Audit == nil || !r.recorded(r.ctx) {
		return
	}
	seen := observe.RunEvent{Session: r.state.Session, Run: r.state.Run, TraceSegment: before.TraceSegment}
	if r.state.Spec != nil {
		seen.Agent, seen.Model = r.state.Spec.Name, r.state.Spec.Model
	}
	tail := r.state.Log.Tail
	// The new events are the last of the tail. Seq also grows when a run takes over a
	// stored log, which adds nothing to the tail.
	for _, e := range tail[max(0, len(tail)-int(r.state.Log.Seq-before.Log.Seq)):] {
		seen.Event, seen.Outside = e, outsideCallOf(before, e)
		r.observed(&seen)
		seen.TraceSegment = seen.TraceSegment.Next(r.state.Run, e)
	}
}

// stepInput steps an input that is no update. If the machine refuses it, it came too
// late: the run has gone on without it.
func (r *run) stepInput(in loop.Input) {
	if err := r.step(in); err != nil {
		workflow.GetLogger(r.ctx).Debug("input not taken", "session", r.state.Session, "reason", err.Error())
	}
}

// takesVerbs reports whether the run knows where its log begins, or waits only for tools. It
// takes holds and stops from then on.
func (r *run) takesVerbs() bool { return !r.state.HasNoLog() || r.state.Phase == loop.RunListing }

// mayTake reports whether a signal or update of this name can be taken now, or has to
// wait. A cancel never waits. A verb that ends up in the log waits until there is a log:
// if the run failed before, its message would be lost.
func (r *run) mayTake(name string) bool {
	switch agent.Verb(name) {
	case agent.VerbCancel:
		return true
	case agent.VerbEmit, agent.VerbSend, agent.VerbAnswer, agent.VerbApprove, agent.VerbReject, agent.VerbAnswers:
		return !r.state.HasNoLog()
	}
	return r.takesVerbs()
}

// stepClock tells the machine that its timer fired. It comes last, so that an answer in
// the same task as its deadline wins.
func (r *run) stepClock() {
	if r.timerFired && !r.over {
		r.timerFired = false
		r.stepInput(loop.TimerFired{})
	}
}
