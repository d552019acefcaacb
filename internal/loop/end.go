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

// End is the part that brings the run to its end: what is being given up, a stop in
// progress, and the outcome.
type End struct {
	Aborting *Aborting `json:"aborting,omitempty"` // what is in flight is being given up
	Stopping *Stopping `json:"stopping,omitempty"`
	// Outcome is set when the run is ending.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Aborting is the grace of what was in flight when it was given up: by an interrupt, a
// message that interrupts, a stop, or for room in the history.
type Aborting struct {
	// Until is when the grace ends: what has not come back counts as lost.
	Until time.Time `json:"until"`
	// Reason is told to the model of each call that was given up or is not made.
	Reason string `json:"reason"`
}

func (e End) clone() End {
	e.Aborting, e.Stopping = copied(e.Aborting), copied(e.Stopping)
	return e
}

// startAbort begins to give up what is in flight; a grace that has begun does not become
// longer.
func (e *End) startAbort(until time.Time, why string) {
	if e.Aborting != nil && e.Aborting.Until.Before(until) {
		until = e.Aborting.Until
	}
	e.Aborting = &Aborting{Until: until, Reason: why}
}

// endAbort ends the abort, and returns what was being given up; nil if nothing was.
func (e *End) endAbort() *Aborting {
	was := e.Aborting
	e.Aborting = nil
	return was
}

// setOutcome sets the outcome.
func (e *End) setOutcome(o *agent.Outcome) { e.Outcome = o }

// setFailure makes the outcome a failure: what it says could not be stored.
func (e *End) setFailure(err *agent.Error) {
	o := *e.Outcome
	o.Status, o.Reason, o.Error = agent.StatusFailed, string(err.Code), err
	e.Outcome = &o
}

// setUsage says what the run, and all below it, have used at last.
func (e *End) setUsage(own, tree agent.Tally) {
	o := *e.Outcome
	o.Usage, o.Cost, o.Tree = own.Usage, own.Cost, tree
	e.Outcome = &o
}

// complete ends a run that has its answer, if it used the tools that it had to. A daemon
// idles.
func (s *step) complete(reason, text string, r wire.Reply) {
	if s.daemon() != nil {
		s.endTask()
		return
	}
	if missing := s.missingTools(); len(missing) > 0 {
		s.fail(agent.Errorf(agent.CodeToolsMissing, "the run ended without a successful call of %s", strings.Join(missing, ", and of ")))
		return
	}
	s.end(agent.StatusCompleted, reason, func(o *agent.Outcome) { o.Text, o.Output = text, r.Output })
}

// finish ends a run by the tool finish, whose arguments are the output.
func (s *step) finish(arguments json.RawMessage) {
	var said struct{ Summary string }
	text := s.Turn.Text
	if json.Unmarshal(arguments, &said) == nil && said.Summary != "" {
		text = said.Summary
	}
	r := wire.Reply{}
	if len(s.Spec.Output) > 0 {
		r.Output = arguments
	}
	s.complete(agent.ReasonFinished, text, r)
}

// missingTools lists what the Spec requires and no call has done.
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

// withRun says of an error which run it ended.
func (s *step) withRun(err *agent.Error) *agent.Error {
	e := *err
	e.Session, e.Run, e.Status, e.Err, e.Charges = s.Session, s.Run, agent.StatusFailed, nil, nil
	return &e
}

// cancelled ends the run at once, whatever it is at (docs/loop.md has a table of the phases).
// A run whose outcome is decided keeps it.
func (s *step) cancelled(reason string) error {
	if s.decided() {
		if s.verb == agent.VerbCancel {
			return s.already()
		}
		return s.refuse("the run is ending")
	}
	s.end(agent.StatusCancelled, reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	return nil
}

// terminated ends a run whose workflow was ended from outside. One whose outcome was
// decided keeps it.
func (s *step) terminated(in Terminated) error {
	switch {
	case s.HasNoLog():
		return s.refuse("the run has not begun")
	case s.decided():
	case in.Err != nil:
		s.end(agent.StatusFailed, in.Reason, func(o *agent.Outcome) { o.Text, o.Error = s.Turn.Text, s.withRun(in.Err) })
	default:
		s.end(agent.StatusCancelled, in.Reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	}
	return nil
}

// end decides the outcome. The run reaches its end when the log is stored; one that never
// began has no part in the log and ends at once.
func (s *step) end(status agent.Status, reason string, fill func(*agent.Outcome)) {
	s.chargeEstimate()
	s.closeOpenCalls()
	s.do(CancelInFlight{})
	s.stopWaiting()
	s.cancelChildren()
	o := &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: s.Session, Run: s.Run, Agent: s.agent(), Status: status, Reason: reason,
		Turns: s.ownTurns(), Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Tools: s.Calls.ownCounts(), Started: s.Origin.Started, Ended: s.At,
		SuspendedFor: agent.Duration(s.Suspensions.SuspendedFor), Seq: s.Log.Seq,
	}
	fill(o)
	fitOutcome(o, s.Parent.Start != nil)
	s.End.setOutcome(o)
	if s.HasNoLog() {
		s.ended()
		return
	}
	s.deliver(true) // the session's next run finds them in the log
	s.record(agent.Event{Type: endEvents[status], Outcome: o})
	s.enterPhase(RunEnding)
}

// stopWaiting forgets what the run waited for: nothing can be answered at an end.
func (s *step) stopWaiting() {
	s.dropPark()
	s.Suspensions.close(s.At)
	s.Requests.clear()
	s.Holds.clear()
	s.End.endAbort()
}

// ended moves the run to Ended and completes the workflow.
func (s *step) ended() {
	s.enterPhase(RunEnded)
	s.Suspensions.begin(s.At)
	own := s.tally()
	s.End.setUsage(own, own.Add(s.Ledger.maxUsed()))
	s.reportEndToParent()
	s.do(Publish{}, Complete{})
}

var endEvents = map[agent.Status]agent.EventType{
	agent.StatusCompleted: agent.EventRunCompleted, agent.StatusFailed: agent.EventRunFailed, agent.StatusCancelled: agent.EventRunCancelled, agent.StatusStopped: agent.EventRunStopped,
}

// Bounds of an outcome, in bytes. The server takes no result over 2 MB, and would
// refuse a longer one again and again: where the text and the output are longer
// together, as they may be if they are of two turns, less of the text is kept. All
// that a run above gets of its children comes into its one history.
const (
	maxOutcome     = 3 << 19
	maxEndText     = turnShare
	maxChildAnswer = maxResults
)

// fitOutcome cuts the text of an outcome that is too long. The transcript has all of it.
func fitOutcome(o *agent.Outcome, child bool) {
	if child {
		o.Text = excerpt.Of(o.Text, maxChildAnswer, len(o.Text))
	}
	if len(o.Output) > 0 && len(o.Text) > maxEndText && jsonLen(o.Text)+rawJSONLen(o.Output) > maxOutcome {
		o.Text = excerpt.Of(o.Text, maxEndText, len(o.Text))
	}
}
