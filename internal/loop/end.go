package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
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
	// Why is told to the model of each call that was given up or is not made.
	Why string `json:"why"`
}

func (e End) clone() End {
	e.Aborting, e.Stopping = copied(e.Aborting), copied(e.Stopping)
	return e
}

// aborts begins to give up what is in flight; a grace that has begun does not become
// longer.
func (e *End) aborts(until time.Time, why string) {
	if e.Aborting != nil && e.Aborting.Until.Before(until) {
		until = e.Aborting.Until
	}
	e.Aborting = &Aborting{Until: until, Why: why}
}

// endAbort ends the abort, and returns what was being given up; nil if nothing was.
func (e *End) endAbort() *Aborting {
	was := e.Aborting
	e.Aborting = nil
	return was
}

// decide sets the outcome.
func (e *End) decide(o *agent.Outcome) { e.Outcome = o }

// fails makes the outcome a failure: what it says could not be stored.
func (e *End) fails(err *agent.Error) {
	o := *e.Outcome
	o.Status, o.Reason, o.Error = agent.Failed, string(err.Code), err
	e.Outcome = &o
}

// settles says what the run, and all below it, have used at last.
func (e *End) settles(own, tree agent.Tally) {
	o := *e.Outcome
	o.Usage, o.Cost, o.Tree = own.Usage, own.Cost, tree
	e.Outcome = &o
}

// complete ends a run that has its answer, if it used the tools that it had to. A daemon
// idles.
func (s *step) complete(reason, text string, r agent.Reply) {
	if s.daemon() != nil {
		s.endTask()
		return
	}
	if missing := s.missingTools(); len(missing) > 0 {
		s.fail(agent.Errorf(agent.ToolsMissing, "the run ended without a successful call of %s", strings.Join(missing, ", and of ")))
		return
	}
	s.end(agent.Completed, reason, func(o *agent.Outcome) { o.Text, o.Output = text, r.Output })
}

// finish ends a run by the tool finish, whose arguments are the output.
func (s *step) finish(arguments json.RawMessage) {
	var said struct{ Summary string }
	text := s.Turn.Text
	if json.Unmarshal(arguments, &said) == nil && said.Summary != "" {
		text = said.Summary
	}
	r := agent.Reply{}
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
	s.end(agent.Failed, string(err.Code), func(o *agent.Outcome) { o.Text, o.Error = s.Turn.Text, s.stamped(err) })
}

// stamped says of an error which run it ended.
func (s *step) stamped(err *agent.Error) *agent.Error {
	e := *err
	e.Session, e.Run, e.Status, e.Err, e.Spent = s.Session, s.Run, agent.Failed, nil, nil
	return &e
}

// cancelled ends the run at once, whatever it is at (docs/loop.md has a table of the phases).
// A run whose outcome is decided keeps it.
func (s *step) cancelled(reason string) error {
	if s.over() {
		if s.verb == agent.Cancel {
			return s.already()
		}
		return s.refuse("the run is ending")
	}
	s.end(agent.Cancelled, reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	return nil
}

// cut ends a run whose workflow was ended from outside. One whose outcome was
// decided keeps it.
func (s *step) cut(in Cut) error {
	switch {
	case s.Unwritten():
		return s.refuse("the run has not begun")
	case s.over():
	case in.Err != nil:
		s.end(agent.Failed, in.Reason, func(o *agent.Outcome) { o.Text, o.Error = s.Turn.Text, s.stamped(in.Err) })
	default:
		s.end(agent.Cancelled, in.Reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	}
	return nil
}

// end decides the outcome. The run reaches its end when the log is stored; one that never
// began has no part in the log and ends at once.
func (s *step) end(status agent.Status, reason string, fill func(*agent.Outcome)) {
	s.chargeBlind()
	s.abandonTurn()
	s.do(Abandon{})
	s.stopWaiting()
	s.leaveChildren()
	o := &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: s.Session, Run: s.Run, Agent: s.agent(), Status: status, Reason: reason,
		Turns: s.ownTurns(), Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Tools: s.Calls.own(), Started: s.Origin.Started, Ended: s.At,
		Parked: agent.Duration(s.Rest.Parked), Seq: s.Log.Seq,
	}
	fill(o)
	fitOutcome(o, s.Parent.Birth != nil)
	s.End.decide(o)
	if s.Unwritten() {
		s.ended()
		return
	}
	s.deliver(true) // the session's next run finds them in the log
	s.record(agent.Event{Type: endEvents[status], Outcome: o})
	s.enterLife(Ending)
}

// stopWaiting forgets what the run waited for: nothing can be answered at an end.
func (s *step) stopWaiting() {
	s.unparked()
	s.Rest.close(s.At)
	s.Requests.drop()
	s.Holds.clear()
	s.End.endAbort()
}

// ended moves the run to Ended and completes the workflow.
func (s *step) ended() {
	s.enterLife(Ended)
	s.Rest.begin(s.At)
	own := s.tally()
	s.End.settles(own, own.Add(s.Ledger.worst()))
	s.reportEnd()
	s.do(Publish{}, Complete{})
}

var endEvents = map[agent.Status]agent.EventType{
	agent.Completed: agent.RunCompleted, agent.Failed: agent.RunFailed, agent.Cancelled: agent.RunCancelled, agent.Stopped: agent.RunStopped,
}

// Bounds of an outcome, in bytes. The server takes no result over 2 MB, and would
// refuse a longer one again and again: where the text and the output are longer
// together, as they may be if they are of two turns, less of the text is kept. All
// that a run above gets of its children comes into its one history.
const (
	maxOutcome   = 3 << 19
	maxEndText   = turnShare
	maxChildSays = maxResults
)

// fitOutcome cuts the text of an outcome that is too long. The transcript has all of it.
func fitOutcome(o *agent.Outcome, child bool) {
	if child {
		o.Text = agent.Cut(o.Text, maxChildSays, len(o.Text))
	}
	if len(o.Output) > 0 && len(o.Text) > maxEndText && inJSON(o.Text)+rawInJSON(o.Output) > maxOutcome {
		o.Text = agent.Cut(o.Text, maxEndText, len(o.Text))
	}
}
