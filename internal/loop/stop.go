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
	// Drain is until when tools that run may go on; zero once that is over.
	Drain time.Time `json:"drain,omitzero"`
	// Until is when the run ends, whatever is missing.
	Until time.Time `json:"until"`
	// SummaryAsked means that the model had its chance to sum up; Said is what it said.
	SummaryAsked bool   `json:"summary_asked,omitempty"`
	SummaryText  string `json:"summary_text,omitempty"`
	// Requests were open when the stop came.
	Requests []agent.Request `json:"requests,omitempty"`
	// Approved are calls that a person had let be made, and that the stop came before.
	Approved []agent.WorkItem `json:"approved,omitempty"`
}

// defaultDeadline is how long a stop may take.
const defaultDeadline = agent.Duration(30 * time.Second)

// stopMargin is how much less time a child has to stop than its parent.
const stopMargin = agent.Duration(2 * time.Second)

const reasonStopped = "the run was stopped"

// over reports whether the time of the stop is over.
func (p *Stopping) over(at time.Time) bool { return !at.Before(p.Until) }

// startStop begins a stop.
func (e *End) startStop(o agent.StopCommand, at time.Time) {
	d := time.Duration(o.Deadline)
	e.Stopping = &Stopping{By: o.By, Reason: firstOf(o.Reason, agent.ReasonRequested), Drain: at.Add(d / 2), Until: at.Add(d)}
}

// endDrain ends the time that tools have.
func (e *End) endDrain() { e.Stopping.Drain = time.Time{} }

// keepSummary takes what the model said to sum up; empty if it said nothing.
func (e *End) keepSummary(said string) { e.Stopping.SummaryAsked, e.Stopping.SummaryText = true, said }

// addNotMade keeps that a call was approved and not made.
func (e *End) addNotMade(i agent.WorkItem) { e.Stopping.Approved = append(e.Stopping.Approved, i) }

// addClosedRequest keeps what was asked for the handoff.
func (e *End) addClosedRequest(r agent.Request) { e.Stopping.Requests = append(e.Stopping.Requests, r) }

// stop begins to end the run with a handoff: nothing new is begun, tools that run have half
// of the time, then the model sums up.
func (s *step) stop(o agent.StopCommand) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if o.Deadline == 0 {
		o.Deadline = defaultDeadline
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: o.By}
	}
	s.End.startStop(o, s.At)
	s.stopChildren(o)
	s.removeHold(agent.HoldOwn)
	s.removeHold(agent.HoldInherited)
	s.dropPark()
	s.Turn.cancelFromSummary()
	s.Turn.dropNote()
	s.dropRequests()
	s.recordApproved()
	s.skipPending(reasonStopped + " before the call was begun")
	switch {
	case s.Phase == RunListing: // sources may take as long as they like
		s.End.endDrain()
		s.do(CancelInFlight{})
		s.beginRun()
	case s.Turn.inFlight():
		s.cancelInFlight(min(defaultGrace, o.Deadline/4), reasonStopped)
	case s.Calls.runningCount() == 0:
		s.End.endDrain()
	case s.End.Aborting != nil: // a grace that outlasts the stop
		s.End.startAbort(s.End.Stopping.Drain, reasonStopped)
	}
	return nil
}

// stopChildren stops the sub-agents at the same time. Calls that wait for them wait no
// more: what they learned comes with their handoffs.
func (s *step) stopChildren(o agent.StopCommand) {
	s.orderChildren(wire.ParentOrder{Verb: agent.VerbStop, Deadline: max(o.Deadline-stopMargin, stopMargin), By: o.By, Reason: s.End.Stopping.Reason})
	for i, c := range s.Calls.List {
		if c.State == CallAwaitingChildren {
			s.setResult(i, agent.CallFailed, "Stopped: what the agent learned is in the handoff.")
		}
	}
}

// recordApproved keeps for the handoff which calls a person has let be made and nobody made.
func (s *step) recordApproved() {
	for _, c := range s.Calls.List {
		if c.State == CallPending && c.Approved && !c.wasStarted() {
			s.End.addNotMade(agent.WorkItem{What: fmt.Sprintf("a call that was approved and not made: %s %s", c.Tool, short(string(c.Arguments))), Ref: c.ID, By: s.Session})
		}
	}
}

// dropRequests closes what was asked: it goes into the handoff.
func (s *step) dropRequests() {
	for _, r := range slices.Clone(s.Requests.Open) {
		s.End.addClosedRequest(s.wireRequest(r))
		if i := s.Calls.find(r.CallID); i >= 0 {
			s.skip(i, reasonStopped+" before this was answered")
		}
		s.closeUnanswered(r.ID, "closed by the run's stop")
	}
}

// stopDue is when the stop in progress has to look at the clock: in the phases that its
// times end, and in no other. A model call that is asked for a turn has the grace with
// which it was given up, and calls that were given up have theirs.
func (s *step) stopDue() time.Time {
	p := s.End.Stopping
	switch {
	case p == nil:
	case s.awaitsCalls():
		return p.Drain
	case s.Phase == RunDraining, s.Turn.Phase == TurnSummarizing:
		return p.Until
	}
	return time.Time{}
}

func (s *step) advanceStop() {
	p := s.End.Stopping
	if p == nil {
		return
	}
	if reached(p.Drain, s.At) {
		s.End.endDrain()
		if s.End.Aborting == nil && s.Calls.runningCount() > 0 {
			s.cancelInFlight(min(defaultGrace, agent.Duration(p.Until.Sub(s.At)/2)), reasonStopped)
		}
	}
	if !p.over(s.At) {
		return
	}
	if s.End.Aborting == nil && s.Turn.Phase == TurnSummarizing { // a summary has all of the time, and no grace
		s.do(CancelInFlight{})
		s.chargeEstimate()
		s.takeSummary("", nil, true)
	}
	if s.End.Aborting != nil { // no grace outlasts the stop
		s.graceOver()
	}
}

// summarizeAndDrain gives the model its one chance to sum up, then lets the sub-agents drain, and folds
// when that is over.
func (s *step) summarizeAndDrain() {
	p := s.End.Stopping
	late := p.over(s.At)
	switch {
	case !p.SummaryAsked && s.Turn.N > 0 && !late:
		s.summarize(SummaryForHandoff)
	case s.Children.anyNotEnded() && !late:
		s.enterPhase(RunDraining)
	default:
		s.makeHandoff()
	}
}

// makeHandoff asks for the handoff, made of what the run knows for sure.
func (s *step) makeHandoff() {
	s.enterPhase(RunFolding)
	s.do(MakeHandoff{Known: s.knownHandoff(), SummaryText: s.End.Stopping.SummaryText, Children: s.Children.List})
}

// handoffMade ends the run with its handoff.
func (s *step) handoffMade(h agent.Handoff) {
	s.end(agent.StatusStopped, s.End.Stopping.Reason, func(o *agent.Outcome) { o.Text, o.Handoff = s.Turn.Text, &h })
}

// knownHandoff is the handoff without the model's words.
func (s *step) knownHandoff() agent.Handoff {
	h := agent.Handoff{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.StatusStopped, Task: s.Origin.Task, Reason: s.End.Stopping.Reason,
		Summary: s.Turn.Text, Requests: s.End.Stopping.Requests, UnknownEffects: s.Calls.Unknown, Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Remaining: s.remaining(),
	}
	for _, t := range s.Calls.ownCounts() {
		if strings.HasPrefix(t.Tool, agent.SubAgentPrefix) {
			continue // what the runs below did stands in their own
		}
		if t.OK > 0 {
			h.Done = append(h.Done, agent.WorkItem{What: fmt.Sprintf("%s: %d of %d calls succeeded", t.Tool, t.OK, t.Calls), By: s.Session})
		}
		if t.Failed > 0 {
			h.Failed = append(h.Failed, agent.WorkItem{What: fmt.Sprintf("%s: %d of %d calls failed", t.Tool, t.Failed, t.Calls), By: s.Session})
		}
	}
	h.NotStarted = append(h.NotStarted, s.End.Stopping.Approved...)
	for _, l := range s.Messages.Pending {
		h.NotStarted = append(h.NotStarted, agent.WorkItem{What: "a message that was not answered: " + quote(l.Message.Text()), By: s.Session})
	}
	if n := len(s.Messages.Events); n > 0 {
		h.NotStarted = append(h.NotStarted, agent.WorkItem{What: fmt.Sprintf("%d events that wait: the session's next run takes them", n), By: s.Session})
	}
	for _, r := range h.Requests {
		h.OpenQuestions = append(h.OpenQuestions, r.Text)
	}
	return h
}
