package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Stopping is a stop in progress.
type Stopping struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// ToolsUntil is until when running tools may continue; zero once that time is over.
	ToolsUntil time.Time `json:"tools_until,omitzero"`
	// Until is when the run ends, whatever is missing.
	Until time.Time `json:"until"`
	// SummaryAsked means that the model was asked for a summary. SummaryText is what it
	// answered.
	SummaryAsked bool   `json:"summary_asked,omitempty"`
	SummaryText  string `json:"summary_text,omitempty"`
	// Failure is why the run hands off; nil if somebody stops it.
	Failure *Failure `json:"failure,omitempty"`
	// Requests are the requests that the stop closed, for the handoff.
	Requests []agent.Request `json:"requests,omitempty"`
	// Approved are the calls that a person approved and that the stop prevented.
	Approved []agent.WorkItem `json:"approved,omitempty"`
	// Cancels means that this is a cancel, which ends the run without a summary and a handoff
	// (cancel.go).
	Cancels bool `json:"cancels,omitempty"`
}

// defaultDeadline is how long a stop may take if it names no deadline.
const defaultDeadline = agent.Duration(30 * time.Second)

// stopMargin is how much less time a child has to stop than its parent, so that its handoff
// comes in time.
const stopMargin = agent.Duration(2 * time.Second)

const reasonStopped = "the run was stopped"

// over reports whether the time of the stop is over.
func (p *Stopping) over(at time.Time) bool { return !at.Before(p.Until) }

// startStop begins a stop.
func (e *End) startStop(o agent.StopCommand, at time.Time) {
	d := time.Duration(o.Deadline)
	e.Stopping = &Stopping{By: o.By, Reason: firstOf(strings.TrimSpace(o.Reason), agent.ReasonRequested), ToolsUntil: at.Add(d / 2), Until: at.Add(d)}
}

// startCancel begins a cancel, also during a stop: whatever that has gathered for its handoff is
// dropped. The grace of the calls in flight has begun, and with it the cancel ends.
func (e *End) startCancel(by, reason string) {
	e.Stopping = &Stopping{By: by, Reason: reason, Until: e.Grace.Until, Cancels: true}
}

// explain adds who cancelled the parent: a call that met its cancel may not have known.
func (e *End) explain(by string) {
	if p := e.Stopping; p != nil && p.Cancels && p.Reason == reasonParent {
		p.By = firstOf(p.By, fit(by, maxBy))
	}
}

// doing returns what a stop or a cancel in progress does to the run, for a refusal.
func (e End) doing() string {
	if e.Stopping.Cancels {
		return "the run is being cancelled"
	}
	return "the run is being stopped"
}

// endToolTime ends the time that running tools have.
func (e *End) endToolTime() { e.Stopping.ToolsUntil = time.Time{} }

// keepSummary keeps the model's summary; empty if it gave none.
func (e *End) keepSummary(said string) { e.Stopping.SummaryAsked, e.Stopping.SummaryText = true, said }

// failed makes the stop the handoff of a run that fails.
func (e *End) failed(f Failure) {
	e.Stopping.Failure = &f
	e.Stopping.SummaryAsked = slices.Contains(silentHandoffs, f.Kind)
}

// dropStop ends a stop that only made a handoff.
func (e *End) dropStop() { e.Stopping = nil }

// addNotMade keeps a call that was approved and not made.
func (e *End) addNotMade(i agent.WorkItem) { e.Stopping.Approved = append(e.Stopping.Approved, i) }

// addClosedRequest keeps a request that the stop closed.
func (e *End) addClosedRequest(r agent.Request) { e.Stopping.Requests = append(e.Stopping.Requests, r) }

// stop begins to end the run with a handoff. Nothing new begins. Tools that run have half of
// the deadline, and then the model is asked for a summary.
func (s *step) stop(o agent.StopCommand) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if o.Deadline == 0 {
		o.Deadline = defaultDeadline
	}
	// An order of the parent has set it already.
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: o.By}
	}
	s.End.startStop(o, s.At)
	// Before removeHold, which orders nothing below: the children's own stop removes their
	// holds.
	s.stopChildren(o)
	s.removeHold(agent.HoldOwn)
	s.removeHold(agent.HoldInherited)
	s.dropPark()
	s.Turn.cancelSummarizeFirst()
	s.Turn.dropNote()
	// In this order: dropRequests skips the calls that wait for an answer. recordApproved
	// reads the approved pending calls, which skipPending then ends.
	s.dropRequests()
	s.dropWaits()
	s.recordApproved()
	s.skipPending(reasonStopped + " before the call began")
	switch {
	// A handoff needs a log. So the run begins without the sources' tools: a source may take
	// longer than the stop. CancelInFlight cancels the activity that asks them.
	case s.Phase == RunListing:
		s.End.endToolTime()
		s.do(CancelInFlight{})
		s.beginRun()
	case s.Turn.inFlight():
		s.cancelInFlight(min(defaultGrace, o.Deadline/4), reasonStopped)
	case s.Turn.Phase == TurnAdvancing: // the function may hang: nobody waits for it
		s.leaveAdvancing()
		s.recordTurnEnd()
		s.endToolTimeIfIdle()
	case s.Calls.runningCount() == 0:
		s.End.endToolTime()
	case s.End.Grace != nil: // a grace that would outlast the tools' time
		s.End.startGrace(s.End.Stopping.ToolsUntil, reasonStopped)
	}
	return nil
}

// stopChildren stops the children at the same time. Calls do not wait for them any longer:
// what they learned is in their handoffs.
func (s *step) stopChildren(o agent.StopCommand) {
	s.orderChildren(wire.ParentOrder{Verb: agent.VerbStop, Deadline: max(o.Deadline-stopMargin, stopMargin), By: o.By, Reason: s.End.Stopping.Reason})
	for i, c := range s.Calls.List {
		if c.State == CallAwaitingChildren {
			s.setResult(i, agent.CallFailed, "Stopped: what the agent learned is in the handoff.")
		}
	}
}

// recordApproved keeps for the handoff which approved calls were not made.
func (s *step) recordApproved() {
	for _, c := range s.Calls.List {
		if c.State == CallPending && c.Approved && !c.wasStarted() {
			s.End.addNotMade(agent.WorkItem{What: fmt.Sprintf("a call that was approved and not made: %s %s", c.Tool, short(string(c.Arguments))), Ref: c.ID, By: s.Session})
		}
	}
}

// dropRequests closes all requests, and keeps them for the handoff.
func (s *step) dropRequests() {
	// A clone: closeUnanswered deletes from the list.
	for _, r := range slices.Clone(s.Requests.Open) {
		s.End.addClosedRequest(s.wireRequest(r))
		if i := s.Calls.find(r.CallID); i >= 0 {
			s.skip(i, reasonStopped+" before this was answered")
		}
		s.closeUnanswered(r.ID, "closed by the run's stop")
	}
}

// stopDue returns when the stop has to look at the clock. It returns a time only in phases
// that a deadline of the stop ends. A call that was cancelled has a grace of its own
// instead.
func (s *step) stopDue() time.Time {
	p := s.End.Stopping
	switch {
	case p == nil:
	case s.awaitsCalls():
		return p.ToolsUntil
	case s.Phase == RunDraining, s.Turn.Phase == TurnSummarizing:
		return p.Until
	}
	return time.Time{}
}

// advanceStop does what the stop's times ask for.
func (s *step) advanceStop() {
	p := s.End.Stopping
	if p == nil {
		return
	}
	if reached(p.ToolsUntil, s.At) {
		s.End.endToolTime()
		// The grace is at most half of what is left, so that there is time for a summary.
		if s.End.Grace == nil && s.Calls.runningCount() > 0 {
			s.cancelInFlight(min(defaultGrace, agent.Duration(p.Until.Sub(s.At)/2)), reasonStopped)
		}
	}
	if !p.over(s.At) {
		return
	}
	// A summary has all of the stop's time, so it has no grace after that.
	if s.End.Grace == nil && s.Turn.Phase == TurnSummarizing {
		s.do(CancelInFlight{})
		s.chargeEstimate()
		s.takeSummary("", nil, nil, true)
	}
	if s.End.Grace != nil { // no grace outlasts the stop
		s.graceOver()
	}
}

// summarizeAndDrain asks the model once for a summary, then waits for the children, and then
// makes the handoff.
func (s *step) summarizeAndDrain() {
	s.useProposal()
	p := s.End.Stopping
	late := p.over(s.At)
	// Own turns: a fork's numbers go on, and it may end before a turn of its own, while
	// hooks.before_run looks at its task.
	asks := !p.SummaryAsked && s.ownTurns() > 0 && !late && !s.isFlow()
	switch {
	case asks && p.Failure != nil && p.Failure.Final:
		s.summarize(SummaryFinal)
	case asks:
		s.summarize(SummaryForHandoff)
	case s.Children.anyNotEnded() && !late:
		s.enterPhase(RunDraining)
	default:
		s.makeHandoff()
	}
}

// makeHandoff asks for the handoff, which package workflows makes.
func (s *step) makeHandoff() {
	s.enterPhase(RunHandingOff)
	s.do(MakeHandoff{Known: s.knownHandoff(), SummaryText: s.End.Stopping.SummaryText, Children: s.Children.List, Artifacts: s.Artifacts.Children})
}

// handoffMade ends the run with its handoff.
func (s *step) handoffMade(h agent.Handoff) {
	if f := s.End.Stopping.Failure; f != nil {
		if f.AtOnce { // the run was not stopped: it ends as one that fails
			s.End.dropStop()
		}
		s.end(agent.StatusFailed, string(f.Error.Code), func(o *agent.Outcome) { o.Text, o.Error, o.Handoff = s.Turn.Text, s.withRun(f.Error), &h })
		return
	}
	s.endedBy = fit(s.End.Stopping.By, maxBy)
	s.end(agent.StatusStopped, s.End.Stopping.Reason, func(o *agent.Outcome) { o.Text, o.Handoff = s.Turn.Text, &h })
}

// knownHandoff returns what the run knows for sure, without the model's words.
func (s *step) knownHandoff() agent.Handoff {
	h := agent.Handoff{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.StatusStopped, Task: s.Origin.Task, Reason: s.End.Stopping.Reason,
		Summary: s.Turn.Text, Requests: s.End.Stopping.Requests, UnknownEffects: s.Calls.Unknown, Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Remaining: s.remaining(),
		Artifacts: slices.Clone(s.Artifacts.List),
	}
	if f := s.End.Stopping.Failure; f != nil {
		h = f.of(h)
	}
	for _, t := range s.Calls.ownCounts() {
		if strings.HasPrefix(t.Tool, agent.SubAgentPrefix) {
			continue // the children's handoffs say what they did
		}
		if t.OK > 0 {
			h.Done = append(h.Done, agent.WorkItem{What: fmt.Sprintf("%s: %d of %d calls succeeded", t.Tool, t.OK, t.Calls), By: s.Session})
		}
		if t.Failed > 0 {
			h.Failed = append(h.Failed, agent.WorkItem{What: fmt.Sprintf("%s: %d of %d calls failed", t.Tool, t.Failed, t.Calls), By: s.Session})
		}
	}
	if s.isFlow() {
		h = s.withAgents(h)
	}
	h.NotStarted = append(h.NotStarted, s.End.Stopping.Approved...)
	for _, l := range s.Messages.Pending {
		h.NotStarted = append(h.NotStarted, agent.WorkItem{What: "a message that was not answered: " + quote(saidIn(l.Message)), By: s.Session})
	}
	if n := len(s.Messages.Emitted); n > 0 {
		h.NotStarted = append(h.NotStarted, agent.WorkItem{What: fmt.Sprintf("%d events that wait: the session's next run takes them", n), By: s.Session})
	}
	for _, r := range h.Requests {
		h.OpenQuestions = append(h.OpenQuestions, r.Text)
	}
	return h
}

// withAgents adds what the agents of a flow's steps did. A model would name that when it sums up, and a
// flow has none. Agents that were cancelled are left out: nobody waited for them.
func (s *step) withAgents(h agent.Handoff) agent.Handoff {
	for _, c := range s.Children.List {
		item := agent.WorkItem{Ref: "session:" + c.Session, By: s.Session}
		o := c.Outcome
		switch {
		case o == nil || o.Status == agent.StatusStopped:
			item.What = c.Agent + " was not finished: " + short(c.Task)
			h.InFlight = append(h.InFlight, item)
		case o.Status == agent.StatusCompleted:
			item.What = c.Agent + " completed: " + short(firstOf(o.Text, c.Task))
			h.Done = append(h.Done, item)
		case o.Status == agent.StatusFailed:
			why := o.Reason
			if o.Error != nil {
				why = firstOf(o.Error.Message, why)
			}
			item.What = c.Agent + " failed: " + short(why)
			h.Failed = append(h.Failed, item)
		}
	}
	return h
}
