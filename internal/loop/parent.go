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

// The look at the parent of a run that rests is repeated ever more seldom: what rests
// costs nothing, and looks before it does anything else. So is the look after children
// that may have gone without a word, for which this run may be waiting.
const (
	leaseFirst = time.Minute
	leaseMost  = 24 * time.Hour
	lookMost   = time.Hour
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
		spec.Rules = slices.Concat(b.Rules, spec.Rules) // of equal ones, the ancestors' count
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
	spec.ClientTools = slices.DeleteFunc(slices.Clone(spec.ClientTools), func(t agent.ToolSpec) bool {
		if !within(ceilings, t.Name) {
			s.Beyond = append(s.Beyond, t.Name)
			return true
		}
		return false
	})
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
		if h := s.ownHold(); o.Own && h != nil && h.By != o.By {
			return s.refuse("the run is held by %s, and not by the agent above it", firstOf(h.By, "somebody"))
		}
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
	if s.Early != nil && knows(o.Heard, *s.Early) {
		s.Early = nil
	}
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
		if s.heldAboveOnly() && !s.Reported {
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
	resting := s.Wait != nil && s.Wait.Resting
	if s.Birth == nil || s.Leasing || !resting && !s.onlyBelow() {
		return time.Time{}
	}
	if s.LeaseAt.IsZero() {
		return s.Since.Add(leaseFirst)
	}
	return s.LeaseAt
}

// onlyBelow tells whether the turn waits for runs below alone: no step of this run
// looks for its parent then.
func (s *step) onlyBelow() bool {
	return s.Phase == Working && s.active() == 0 && slices.ContainsFunc(s.Calls, func(c Call) bool { return c.State == Below })
}

// metBelow answers a run below that has met a hold which nobody has told it of: it
// was never laid, or this run has not heard of it either.
func (s *step) metBelow(c *Child, h agent.Heard) {
	switch {
	case s.hasHeard(h): // it is told, or was
	case h.Session == s.Session:
		s.outdated(h)
	case s.Birth != nil && s.above(h.Session):
		s.do(TellParent{Session: s.Birth.Parent.Session, Report: s.metReport(h)})
		return
	}
	s.tellChild(c, s.pass(agent.Resume, 0))
}

// metReport is the report of a hold that was met, and not told.
func (s *step) metReport(h agent.Heard) agent.ChildReport {
	return agent.ChildReport{Run: s.Birth.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq, Status: s.Status(), Met: &h}
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
	s.LookAt = s.At.Add(min(passed, lookMost))
}
