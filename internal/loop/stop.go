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
	// Summed tells that the model had its chance to sum up; Said is what it said.
	Summed bool   `json:"summed,omitempty"`
	Said   string `json:"said,omitempty"`
	// Requests were open when the stop came.
	Requests []agent.Request `json:"requests,omitempty"`
}

// defaultDeadline is how long a stop may take.
const defaultDeadline = agent.Duration(30 * time.Second)

const whyStopped = "the run was stopped"

// stopDue is when the stop in progress has to look at the clock: in the phases
// that its times end, and in no other.
func (s *step) stopDue() time.Time {
	switch s.Phase {
	case Working:
		return s.Stopping.Drain
	case Summing, Draining:
		return s.Stopping.Until
	}
	return time.Time{}
}

// stop begins to end the run with a handoff: nothing new is begun, tools that run
// have half of the time, then the model sums up.
func (s *step) stop(o agent.StopOrder) error {
	if s.Stopping != nil {
		return s.already()
	}
	if o.Deadline == 0 {
		o.Deadline = defaultDeadline
	}
	d := time.Duration(o.Deadline)
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.ByOperator, By: o.By}
	}
	s.Stopping = &Stopping{By: o.By, Reason: firstOf(o.Reason, agent.ReasonRequested), Drain: s.At.Add(d / 2), Until: s.At.Add(d)}
	s.stopChildren(o)
	s.lift(agent.HoldOwn)
	s.lift(agent.HoldInherited)
	s.unparked()
	s.Fresh, s.Note = "", ""
	s.dropRequests()
	s.skipWaiting(whyStopped + " before the call was begun")
	switch {
	case s.Phase == Asking || s.Phase == Summing:
		s.giveUp(min(defaultGrace, o.Deadline/4), whyStopped)
	case s.active() == 0:
		s.Stopping.Drain = time.Time{}
	}
	return nil
}

// A run below has so much less time to stop than the one above it.
const stopMargin = agent.Duration(2 * time.Second)

// stopChildren stops the runs below at the same time. Calls that wait for them
// wait no more: what they learned comes with their handoffs.
func (s *step) stopChildren(o agent.StopOrder) {
	s.tellChildren(agent.HoldOrder{Verb: agent.Stop, Deadline: max(o.Deadline-stopMargin, stopMargin), By: o.By, Reason: s.Stopping.Reason})
	for i := range s.Calls {
		if s.Calls[i].State == Below {
			s.overseen(i, agent.CallFailed, "Stopped: what the agent learned is in the handoff.")
		}
	}
}

// dropRequests closes what was asked: it goes into the handoff.
func (s *step) dropRequests() {
	for _, r := range s.Requests {
		s.Stopping.Requests = append(s.Stopping.Requests, r.Request)
		if i := s.callIndex(r.CallID); i >= 0 {
			s.Calls[i].Request = ""
			s.skip(i, whyStopped+" before this was answered")
		}
		s.decided(r.ID, "closed by the run's stop")
	}
	s.Requests = nil
}

func (s *step) tickStopping(due func(time.Time) bool) {
	if due(s.Stopping.Drain) {
		s.Stopping.Drain = time.Time{}
		if s.Giving == nil && s.active() > 0 {
			s.giveUp(min(defaultGrace, agent.Duration(s.Stopping.Until.Sub(s.At)/2)), whyStopped)
		}
	}
	if !due(s.Stopping.Until) {
		return
	}
	if s.Giving == nil && s.Phase == Summing {
		s.do(Abandon{})
		s.summed("", nil, true)
	}
	if s.Giving != nil {
		s.givenUp()
	}
}

// sumUp gives the model its one chance to sum up, and folds when that is over.
func (s *step) sumUp() {
	p := s.Stopping
	late := !s.At.Before(p.Until)
	switch {
	case !p.Summed && s.Turn > 0 && !late:
		s.summarise(SumHandoff)
	case s.liveChildren() && !late:
		p.Summed = true
		s.Phase = Draining
	default:
		s.fold()
	}
}

// fold asks for the handoff, made of what the run knows for sure.
func (s *step) fold() {
	s.Phase = Folding
	s.do(Fold{Known: s.known(), Said: s.Stopping.Said, Children: s.Children})
}

// folded ends the run with its handoff.
func (s *step) folded(h agent.Handoff) {
	s.end(agent.Stopped, s.Stopping.Reason, func(o *agent.Outcome) { o.Text, o.Handoff = s.Text, &h })
}

// known is the handoff without the model's words.
func (s *step) known() agent.Handoff {
	h := agent.Handoff{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: agent.Stopped, Task: s.Task, Reason: s.Stopping.Reason,
		Summary: s.Text, Requests: s.Stopping.Requests, UnknownEffects: s.Unknown, Usage: s.Usage, Cost: s.Cost, Left: s.left(),
	}
	for _, t := range s.Tools {
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
	for _, l := range s.Letters {
		h.NotBegun = append(h.NotBegun, agent.Item{What: "a message that was not answered: " + quote(l.Message.TextOf()), By: s.Session})
	}
	if n := len(s.Events); n > 0 {
		h.NotBegun = append(h.NotBegun, agent.Item{What: fmt.Sprintf("%d events that wait: the session's next run takes them", n), By: s.Session})
	}
	for _, r := range h.Requests {
		h.OpenQuestions = append(h.OpenQuestions, r.Text)
	}
	return h
}

// maxUnknown bounds how many calls of unknown outcome a handoff names: the last ones.
const maxUnknown = 64

// unknown remembers a call of which nobody knows whether it had its effect.
func (s *step) unknown(c Call) {
	s.Unknown = append(slices.Clip(s.Unknown), agent.UnknownEffect{
		Call: c.ID, Tool: c.Tool, Key: agent.IdempotencyKey(firstOf(c.Of, s.Run), c.ID), Since: c.Since.UTC().Format(time.RFC3339),
	})
	if n := len(s.Unknown) - maxUnknown; n > 0 {
		s.Unknown = slices.Clone(s.Unknown[n:])
	}
}

// left is what the limits still allow (catalogue HL-60).
func (s *step) left() (l agent.Left) {
	if most := s.Limits.Turns; most > 0 {
		l.Turns = max(0, most-(s.Turn-s.Base.Turns))
	}
	if most := s.Limits.Tokens; most > 0 {
		l.Tokens = max(0, most-(s.Usage.Total()-s.Base.Tokens))
	}
	if most := s.Limits.CostUSD; most > 0 {
		l.Cost = max(0, most-(s.Cost-s.Base.CostUSD))
	}
	return l
}
