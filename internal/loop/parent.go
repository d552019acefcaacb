package loop

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// ReasonParent is why a run is cancelled whose parent has ended.
const reasonParent = "parent_ended"

// The look at the parent of a run that rests is repeated ever more seldom.
const (
	leaseFirst = time.Minute
	leaseMost  = time.Hour
)

// born takes what the run above says of this one.
func (s *step) born(b *agent.Birth) {
	if b == nil {
		return
	}
	s.Birth = b
	for _, h := range b.Heard {
		s.hear(h)
	}
	if h := strongest(b.Held); h != nil {
		s.Holds = []agent.Hold{*h}
	}
}

// strongest is the hold that keeps the most from beginning; nil of none.
func strongest(holds []agent.Hold) (most *agent.Hold) {
	for i, h := range holds {
		if most == nil || h.Verb.Strength() > most.Verb.Strength() {
			most = &holds[i]
		}
	}
	return most
}

// holdNumber is the number in a hold's id.
func holdNumber(h agent.Hold) int {
	n, err := strconv.Atoi(strings.TrimPrefix(h.ID, "h-"))
	if err != nil {
		return 0
	}
	return n
}

// bounded makes a Spec one that its ancestors allow: their rules hold here too,
// and tools that they may not use are known by name and refused.
func (s *step) bounded(spec agent.Spec) agent.Spec {
	ceilings := [][]string{spec.Ceiling}
	if b := s.Birth; b != nil {
		ceilings = append(ceilings, b.Ceilings...)
		spec.Rules = append(spec.Rules[:len(spec.Rules):len(spec.Rules)], b.Rules...)
		if len(b.Output) > 0 {
			spec.Output = b.Output
		}
	}
	if len(spec.Agents) > 0 {
		s.Inherited = spec.Rules
	}
	var kept []agent.ToolSpec
	for _, t := range spec.Toolset {
		if within(ceilings, t.Name) {
			kept = append(kept, t)
			continue
		}
		s.Beyond = append(s.Beyond, t.Name)
	}
	spec.Toolset = kept
	return spec
}

func within(ceilings [][]string, name string) bool {
	for _, c := range ceilings {
		if len(c) > 0 && !agent.MatchesAny(c, name) {
			return false
		}
	}
	return true
}

// ordered obeys the run above. What comes a second time changes nothing.
func (s *step) ordered(o agent.HoldOrder) error {
	switch {
	case s.over():
		return s.refuse("the run is ending")
	case o.Run != "" && o.Run != s.Run:
		return s.refuse("an order from above is for run %s", o.Run)
	}
	s.resumed = agent.Resumed{Cause: agent.ByParent, By: o.By}
	switch o.Verb {
	case agent.Stop:
		return s.stop(agent.StopOrder{Order: agent.Order{By: o.By}, Reason: o.Reason, Deadline: o.Deadline})
	case agent.Cancel:
		return s.cancelled(firstOf(o.Reason, reasonParent))
	case agent.Resume:
		if o.Own {
			return s.resume(agent.ResumeOrder{Order: agent.Order{By: o.By}, Message: o.Reason})
		}
	}
	if o.Own {
		return s.holdAs(agent.ByParent, o.Verb, agent.Order{By: o.By}, o.Reason, o.Grace)
	}
	return s.heldAbove(o)
}

// heldAbove takes over the holds above this run, as the run above knows them, and
// passes on what has changed.
func (s *step) heldAbove(o agent.HoldOrder) error {
	old, want := s.hold(agent.HoldInherited), strongest(o.Held)
	fresh := want != nil && want.Verb == agent.Interrupt && !s.hasHeard(heardOf(*want))
	known := old == nil || knows(o.Heard, heardOf(*old))
	for _, h := range o.Heard {
		s.hear(h)
	}
	switch {
	case s.Stopping != nil || !known:
		return nil // a stop stands above it; or a step heard of a hold that is on its way
	case old != nil && want != nil && heardOf(*old) == heardOf(*want):
		old.By, old.Reason = want.By, want.Reason // a step heard of it first, and knew less
		return nil
	case want == nil && old == nil:
	case want == nil:
		s.goOnWith("The agent above you was resumed.", "")
		s.lift(agent.HoldInherited)
	default:
		s.lay(*want, holdNumber(*want), agent.ByParent)
	}
	s.tellChildren(s.pass(o.Verb, o.Grace))
	if fresh {
		s.giveUp(o.Grace, "the run was interrupted")
	}
	return nil
}

func heardOf(h agent.Hold) agent.Heard { return agent.Heard{Session: h.Session, N: holdNumber(h)} }

func knows(heard []agent.Heard, h agent.Heard) bool {
	return slices.ContainsFunc(heard, func(k agent.Heard) bool { return k.Session == h.Session && k.N >= h.N })
}

// pass tells those below which holds are above them now.
func (s *step) pass(verb agent.Verb, grace agent.Duration) agent.HoldOrder {
	return agent.HoldOrder{Verb: verb, Held: s.handedDown(), Heard: slices.Clone(s.Heard), Grace: grace}
}

// report tells the run above how this one stands. That it rests for an inherited
// hold alone is no news there.
func (s *step) report(status agent.Status) {
	if s.Birth == nil {
		return
	}
	r := agent.ChildReport{Run: s.Birth.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq, Status: status}
	if status == agent.Suspended {
		if len(s.Requests) == 0 && s.Park == nil && s.ownHold() == nil && !s.Reported {
			return
		}
		r.Suspension = s.Suspension()
	}
	if status == agent.Running && !s.Reported {
		return
	}
	s.Reported = status == agent.Suspended
	s.do(TellParent{Session: s.Birth.Parent.Session, Report: r})
}

// reportEnd tells a parent that does not wait for the result how the run ended.
func (s *step) reportEnd() {
	if s.Birth == nil || !s.Birth.Background {
		return
	}
	s.do(TellParent{Session: s.Birth.Parent.Session, Report: agent.ChildReport{
		Run: s.Birth.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq + 1, Status: s.Outcome.Status, Outcome: s.Outcome,
	}})
}

// leaseDue is when a run that rests looks whether its parent still lives.
func (s *step) leaseDue() time.Time {
	if s.Birth == nil || s.Wait == nil || !s.Wait.Resting || s.Leasing {
		return time.Time{}
	}
	if s.LeaseAt.IsZero() {
		return s.Since.Add(leaseFirst)
	}
	return s.LeaseAt
}

// leased takes what the look found.
func (s *step) leased(in Leased) error {
	s.Leasing = false
	if s.over() {
		return s.refuse("the run is ending")
	}
	if in.Gone {
		return s.cancelled(reasonParent)
	}
	passed := max(s.At.Sub(s.Since), leaseFirst)
	s.LeaseAt = s.At.Add(min(passed, leaseMost))
	return nil
}

// lookDue is when the run looks after children that may have gone without a word;
// zero where there are none.
func (s *step) lookDue() time.Time {
	if !slices.ContainsFunc(s.Children, func(c Child) bool { return c.Alone && c.live() }) {
		return time.Time{}
	}
	return s.LookAt
}

// lookAfter asks for those children, and will again, ever more seldom.
func (s *step) lookAfter() {
	for _, c := range s.Children {
		if c.Alone && c.live() {
			s.do(LookAfter{Session: c.Session, Run: c.Run})
		}
	}
	passed := max(s.At.Sub(s.Started), leaseFirst)
	s.LookAt = s.At.Add(min(passed, leaseMost))
}
