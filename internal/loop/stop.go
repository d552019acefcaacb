package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Stopping is a stop in progress.
type Stopping struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Drain is until when tools that run may go on; zero once that is over.
	Drain time.Time `json:"drain,omitzero"`
	// Until is when the run ends, whatever is missing.
	Until time.Time `json:"until"`
	// Summed means that the model had its chance to sum up; Said is what it said.
	Summed bool   `json:"summed,omitempty"`
	Said   string `json:"said,omitempty"`
	// Requests were open when the stop came.
	Requests []agent.Request `json:"requests,omitempty"`
	// Approved are calls that a person had let be made, and that the stop came before.
	Approved []agent.Item `json:"approved,omitempty"`
}

// defaultDeadline is how long a stop may take.
const defaultDeadline = agent.Duration(30 * time.Second)

// stopMargin is how much less time a child has to stop than its parent.
const stopMargin = agent.Duration(2 * time.Second)

const whyStopped = "the run was stopped"

// over reports whether the time of the stop is over.
func (p *Stopping) over(at time.Time) bool { return !at.Before(p.Until) }

// stops begins a stop.
func (e *End) stops(o agent.StopOrder, at time.Time) {
	d := time.Duration(o.Deadline)
	e.Stopping = &Stopping{By: o.By, Reason: firstOf(o.Reason, agent.ReasonRequested), Drain: at.Add(d / 2), Until: at.Add(d)}
}

// endDrain ends the time that tools have.
func (e *End) endDrain() { e.Stopping.Drain = time.Time{} }

// keepSummary takes what the model said to sum up; empty if it said nothing.
func (e *End) keepSummary(said string) { e.Stopping.Summed, e.Stopping.Said = true, said }

// missed keeps that a call was approved and not made.
func (e *End) missed(i agent.Item) { e.Stopping.Approved = append(e.Stopping.Approved, i) }

// closes keeps what was asked for the handoff.
func (e *End) closes(r agent.Request) { e.Stopping.Requests = append(e.Stopping.Requests, r) }

// stop begins to end the run with a handoff: nothing new is begun, tools that run have half
// of the time, then the model sums up.
func (s *step) stop(o agent.StopOrder) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if o.Deadline == 0 {
		o.Deadline = defaultDeadline
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.ByOperator, By: o.By}
	}
	s.End.stops(o, s.At)
	s.stopChildren(o)
	s.removeHold(agent.HoldOwn)
	s.removeHold(agent.HoldInherited)
	s.unparked()
	s.Turn.asIs()
	s.Turn.dropNote()
	s.dropRequests()
	s.missApproved()
	s.skipWaiting(whyStopped + " before the call was begun")
	switch {
	case s.Life == Listing: // sources may take as long as they like
		s.End.endDrain()
		s.do(Abandon{})
		s.first()
	case s.Turn.inFlight():
		s.giveUp(min(defaultGrace, o.Deadline/4), whyStopped)
	case s.Calls.active() == 0:
		s.End.endDrain()
	case s.End.Aborting != nil: // a grace that outlasts the stop
		s.End.aborts(s.End.Stopping.Drain, whyStopped)
	}
	return nil
}

// stopChildren stops the sub-agents at the same time. Calls that wait for them wait no
// more: what they learned comes with their handoffs.
func (s *step) stopChildren(o agent.StopOrder) {
	s.tellChildren(agent.HoldOrder{Verb: agent.Stop, Deadline: max(o.Deadline-stopMargin, stopMargin), By: o.By, Reason: s.End.Stopping.Reason})
	for i, c := range s.Calls.List {
		if c.State == Below {
			s.settle(i, agent.CallFailed, "Stopped: what the agent learned is in the handoff.")
		}
	}
}

// missApproved keeps for the handoff which calls a person has let be made and nobody made.
func (s *step) missApproved() {
	for _, c := range s.Calls.List {
		if c.State == Waiting && c.Approved && !c.begun() {
			s.End.missed(agent.Item{What: fmt.Sprintf("a call that was approved and not made: %s %s", c.Tool, short(string(c.Arguments))), Ref: c.ID, By: s.Session})
		}
	}
}

// dropRequests closes what was asked: it goes into the handoff.
func (s *step) dropRequests() {
	for _, r := range slices.Clone(s.Requests.Open) {
		s.End.closes(s.shown(r))
		if i := s.Calls.find(r.CallID); i >= 0 {
			s.skip(i, whyStopped+" before this was answered")
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
	case s.works():
		return p.Drain
	case s.Life == Draining, s.Turn.Phase == Summing:
		return p.Until
	}
	return time.Time{}
}

func (s *step) tickStopping() {
	p := s.End.Stopping
	if p == nil {
		return
	}
	if reached(p.Drain, s.At) {
		s.End.endDrain()
		if s.End.Aborting == nil && s.Calls.active() > 0 {
			s.giveUp(min(defaultGrace, agent.Duration(p.Until.Sub(s.At)/2)), whyStopped)
		}
	}
	if !p.over(s.At) {
		return
	}
	if s.End.Aborting == nil && s.Turn.Phase == Summing { // a summary has all of the time, and no grace
		s.do(Abandon{})
		s.chargeBlind()
		s.takeSummary("", nil, true)
	}
	if s.End.Aborting != nil { // no grace outlasts the stop
		s.givenUp()
	}
}

// sumUp gives the model its one chance to sum up, then lets the sub-agents drain, and folds
// when that is over.
func (s *step) sumUp() {
	p := s.End.Stopping
	late := p.over(s.At)
	switch {
	case !p.Summed && s.Turn.N > 0 && !late:
		s.summarise(SumHandoff)
	case s.Children.working() && !late:
		s.enterLife(Draining)
	default:
		s.fold()
	}
}

// fold asks for the handoff, made of what the run knows for sure.
func (s *step) fold() {
	s.enterLife(Folding)
	s.do(Fold{Known: s.known(), Said: s.End.Stopping.Said, Children: s.Children.List})
}

// folded ends the run with its handoff.
func (s *step) folded(h agent.Handoff) {
	s.end(agent.Stopped, s.End.Stopping.Reason, func(o *agent.Outcome) { o.Text, o.Handoff = s.Turn.Text, &h })
}

// known is the handoff without the model's words.
func (s *step) known() agent.Handoff {
	h := agent.Handoff{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.Stopped, Task: s.Origin.Task, Reason: s.End.Stopping.Reason,
		Summary: s.Turn.Text, Requests: s.End.Stopping.Requests, UnknownEffects: s.Calls.Unknown, Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Left: s.left(),
	}
	for _, t := range s.Calls.own() {
		if strings.HasPrefix(t.Tool, agent.SubAgentPrefix) {
			continue // what the runs below did stands in their own
		}
		if t.OK > 0 {
			h.Done = append(h.Done, agent.Item{What: fmt.Sprintf("%s: %d of %d calls succeeded", t.Tool, t.OK, t.Calls), By: s.Session})
		}
		if t.Failed > 0 {
			h.Failed = append(h.Failed, agent.Item{What: fmt.Sprintf("%s: %d of %d calls failed", t.Tool, t.Failed, t.Calls), By: s.Session})
		}
	}
	h.NotBegun = append(h.NotBegun, s.End.Stopping.Approved...)
	for _, l := range s.Messages.Pending {
		h.NotBegun = append(h.NotBegun, agent.Item{What: "a message that was not answered: " + quote(l.Message.TextOf()), By: s.Session})
	}
	if n := len(s.Messages.Events); n > 0 {
		h.NotBegun = append(h.NotBegun, agent.Item{What: fmt.Sprintf("%d events that wait: the session's next run takes them", n), By: s.Session})
	}
	for _, r := range h.Requests {
		h.OpenQuestions = append(h.OpenQuestions, r.Text)
	}
	return h
}
