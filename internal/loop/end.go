package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/wire"
)

// End is the part that brings the run to its end: the grace of cancelled calls, a stop in
// progress, and the outcome.
type End struct {
	Grace    *Grace    `json:"grace,omitempty"` // the grace of cancelled calls; nil if none is in progress
	Stopping *Stopping `json:"stopping,omitempty"`
	// Outcome is set when the run is ending.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Grace is the grace of cancelled model and tool calls: what returns within it is kept. An
// interrupt, an interrupting message, a stop, a cancel or a nearly full history begins one.
type Grace struct {
	// Until is when the grace ends: what has not returned by then counts as lost.
	Until time.Time `json:"until"`
	// Reason goes into the result of each call that was cancelled or is not made.
	Reason string `json:"reason"`
}

func (e End) clone() End {
	e.Grace, e.Stopping = copied(e.Grace), copied(e.Stopping)
	return e
}

// startGrace begins a grace. If one is in progress, the earlier end counts.
func (e *End) startGrace(until time.Time, why string) {
	if e.Grace != nil && e.Grace.Until.Before(until) {
		until = e.Grace.Until
	}
	e.Grace = &Grace{Until: until, Reason: why}
}

// endGrace ends the grace and returns it; nil if there was none.
func (e *End) endGrace() *Grace {
	was := e.Grace
	e.Grace = nil
	return was
}

// setOutcome sets the outcome.
func (e *End) setOutcome(o *agent.Outcome) { e.Outcome = o }

// setUnsaved keeps why the end could not be stored. The end stays what it is.
func (e *End) setUnsaved(err *agent.Error) {
	o := *e.Outcome // a copy: the event in the tail points to the same Outcome
	fault := *err
	fault.Session, fault.Run, fault.Status = o.Session, o.Run, o.Status
	fault.Message, fault.Path, fault.Err, fault.Charges = fit(err.Message, maxReason), fit(err.Path, maxName), nil, nil
	o.Unsaved, o.Checkpoint = &fault, "" // a fork would not find the checkpoint
	e.Outcome = &o
}

// setUsage sets what the run, and the run with all runs below it, have used.
func (e *End) setUsage(own, tree agent.Tally) {
	o := *e.Outcome // a copy, as in setUnsaved
	o.Usage, o.Cost, o.Tree = own.Usage, own.Cost, tree
	e.Outcome = &o
}

// setArtifacts sets the artifacts that the run knows.
func (e *End) setArtifacts(list []agent.Artifact, left int) {
	o := *e.Outcome // a copy, as in setUnsaved
	o.Artifacts, o.ArtifactsLeft = list, left
	e.Outcome = &o
}

// setUnread sets which messages the model has not read.
func (e *End) setUnread(list []agent.UnreadMessage) { e.Outcome.Unread = list }

// setWorkspace sets what became of the run's own workspace.
func (e *End) setWorkspace(w agent.WorkspaceOutcome, seq int64) {
	o := *e.Outcome // a copy, as in setUnsaved
	o.Workspace, o.Seq = &w, seq
	e.Outcome = &o
}

// complete ends a run that has its answer. It fails if a required tool was not called. A daemon
// becomes idle instead. call is the id of the call that is the answer; empty for a reply's text.
func (s *step) complete(reason, text string, r wire.Reply, call string) {
	if s.daemon() != nil {
		if s.verifies() {
			s.propose(reason, text, r, call)
			return
		}
		s.endTask()
		return
	}
	if missing := s.missingTools(); len(missing) > 0 {
		s.fail(agent.Errorf(agent.CodeToolsMissing, "the run ended without a successful call of %s", strings.Join(missing, ", and of ")))
		return
	}
	if s.verifies() {
		s.propose(reason, text, r, call)
		return
	}
	s.end(agent.StatusCompleted, reason, func(o *agent.Outcome) {
		o.Text, o.Citations, o.Output, o.Files = text, agent.Message{Parts: r.Parts}.Citations(), r.Output, s.returned(r.Returned)
	})
}

// completeWith ends a run, or a task of a daemon, with an answer that was checked.
func (s *step) completeWith(p Proposal) {
	if s.daemon() != nil {
		s.Checks.newTask()
		s.endTask()
		return
	}
	s.end(agent.StatusCompleted, p.Reason, p.fill)
}

// failWith is [step.fail] with an answer that was not accepted, also one that is a call of finish.
func (s *step) failWith(p Proposal, err *agent.Error) {
	s.end(agent.StatusFailed, string(err.Code), func(o *agent.Outcome) {
		p.fill(o)
		o.Error = s.withRun(err)
	})
}

// finish completes a run whose model called the tool finish. With a schema, the call's arguments are
// the output.
func (s *step) finish(c Call) {
	arguments := c.Arguments
	var said struct{ Summary string } // a schema of the agent's own may have no summary: then the last text counts
	text := s.Turn.Text
	if json.Unmarshal(arguments, &said) == nil && said.Summary != "" {
		text = said.Summary
	}
	r := wire.Reply{Returned: c.Files}
	if len(s.Spec.Output) > 0 {
		r.Output = arguments
	}
	s.complete(agent.ReasonFinished, text, r, c.ID)
}

// missingTools returns the tools that the Spec requires and no call has used with success.
func (s *step) missingTools() (missing []string) {
	for _, names := range s.Spec.Require {
		done := slices.ContainsFunc(s.Calls.Counts, func(t agent.ToolCount) bool { return t.OK > 0 && slices.Contains(names, t.Tool) })
		if !done {
			missing = append(missing, names.String())
		}
	}
	return missing
}

// fail ends the run with an error; its reason is the error's code.
func (s *step) fail(err *agent.Error) {
	s.end(agent.StatusFailed, string(err.Code), func(o *agent.Outcome) { o.Text, o.Error = s.Turn.Text, s.withRun(err) })
}

// withRun returns a copy of an error that names the run. Err and Charges are not part of an outcome.
func (s *step) withRun(err *agent.Error) *agent.Error {
	e := *err
	e.Session, e.Run, e.Status, e.Err, e.Charges = s.Session, s.Run, agent.StatusFailed, nil, nil
	return &e
}

// terminated ends a run whose workflow was ended from outside, when its state is recovered. A run
// whose outcome was decided keeps it.
func (s *step) terminated(in Terminated) error {
	switch {
	case s.HasNoLog():
		return s.refuse("the run has not started")
	case s.outcomeDecided():
	case in.Err != nil:
		s.end(agent.StatusFailed, in.Reason, func(o *agent.Outcome) { o.Text, o.Error = s.Turn.Text, s.withRun(in.Err) })
	default:
		s.end(agent.StatusCancelled, in.Reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	}
	if s.Workspace.open() { // nobody is left who could end it
		s.leaveWorkspace(agent.WorkspaceOutcome{Result: agent.WorkspaceFailed, Error: "the run was terminated before its workspace was ended"})
	}
	return nil
}

// end decides the outcome. The run reaches its end when the log is stored. A run that has no log yet
// ends at once.
func (s *step) end(status agent.Status, reason string, fill func(*agent.Outcome)) {
	s.chargeEstimate() // before the turn ends: it charges only a call in flight
	s.closeOpenCalls()
	s.giveUpHook() // before the end event
	s.do(CancelInFlight{})
	s.Checks.dropProposal()
	s.stopWaiting()      // before deliver: dropPark turns the met event into a message
	if !s.cancelling() { // else the cancel has cancelled them
		s.cancelChildren(false)
	}
	o := &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: s.Session, Run: s.Run, Agent: s.agent(), Status: status, Reason: reason, By: s.endedBy,
		Turns: s.ownTurns(), Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Tools: s.Calls.ownCounts(), ToolsMode: s.toolsMode(), Started: s.Origin.Started, Ended: s.At,
		SuspendedFor: agent.Duration(s.Suspensions.SuspendedFor), Seq: s.Log.Seq, Artifacts: s.Artifacts.all(), ArtifactsLeft: s.Artifacts.Left, Report: s.report(), Verify: s.checkCount(),
	}
	o.AdaptiveBudget = s.adaptiveBudget()
	fill(o)
	fitOutcome(o, s.Parent.Start != nil)
	s.End.setOutcome(o)
	switch {
	case s.HasNoLog() && s.Workspace.open():
		s.Workspace.unlogged()
	case s.HasNoLog():
		s.ended()
		return
	default:
		s.deliverUnread()
	}
	if !s.Workspace.open() { // else the event says what became of the workspace
		s.recordEnd()
	}
	s.enterPhase(RunEnding)
}

// toolsMode returns how the run's model may call tools; empty without a model or a Spec.
func (s *State) toolsMode() agent.ToolsMode {
	switch {
	case s.Spec == nil || s.isFlow():
		return ""
	case s.Spec.TextCalls == agent.TextCallsAllow || s.Spec.TextCalls == agent.TextCallsAllowOnce:
		return agent.ToolsNativeAndText
	}
	return agent.ToolsNative
}

// recordEnd records the run's last event.
func (s *step) recordEnd() {
	s.record(agent.Event{Type: endEvents[s.End.Outcome.Status], Outcome: s.End.Outcome})
}

// stopWaiting drops all that the run waits for: at an end nothing can be answered.
func (s *step) stopWaiting() {
	s.dropReasons()
	s.End.endGrace()
}

// dropReasons drops the suspension, and all reasons for it.
func (s *step) dropReasons() {
	s.dropPark()
	s.Suspensions.close(s.At)
	s.Requests.clear()
	s.Holds.clear()
}

// ended moves the run to Ended and completes the workflow.
func (s *step) ended() {
	s.enterPhase(RunEnded)
	s.Suspensions.begin(s.At)
	own := s.tally()
	// Once more: children may have ended since the outcome was decided. One that has not is
	// charged all that it was granted.
	s.End.setUsage(own, own.Add(s.Ledger.maxUsed()))
	s.End.setArtifacts(s.Artifacts.all(), s.Artifacts.Left)
	s.reportEndToParent()
	s.do(Publish{}, Complete{})
}

var endEvents = map[agent.Status]agent.EventType{
	agent.StatusCompleted: agent.EventRunCompleted, agent.StatusFailed: agent.EventRunFailed, agent.StatusCancelled: agent.EventRunCancelled, agent.StatusStopped: agent.EventRunStopped,
}

// Limits of an outcome, in bytes. The server refuses a workflow's result over 2 MB, again with each
// retry of the task. Text and output can be longer together if they come from two turns: then the
// text is cut. The outcomes of all children go into one history, the parent's.
const (
	maxOutcome     = 3 << 19
	maxEndText     = turnShare
	maxChildAnswer = maxResults
)

// fitOutcome cuts the text of an outcome that is too long. The log has all of it.
func fitOutcome(o *agent.Outcome, child bool) {
	if child {
		o.AdaptiveBudget = nil
		o.Citations = nil // the parent's model gets the text alone
		o.Text = excerpt.Of(o.Text, maxChildAnswer, len(o.Text))
	}
	if len(o.Output) > 0 && len(o.Text) > maxEndText && jsonLen(o.Text)+rawJSONLen(o.Output) > maxOutcome {
		o.Citations = nil // they may be about what is cut
		o.Text = excerpt.Of(o.Text, maxEndText, len(o.Text))
	}
}
