package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// How a hold spreads over a tree.
//
// A hold has a number that counts over its session's life, so (session, number) names it
// and a higher number is a later hold. (3) carries every hold to the sub-agents; an
// interrupt, and the end of a run, take (1) and (2) as well, since what is in flight is to
// stop. A run may hear of a hold in any order, twice, or from one of them alone.
//
//  1. The process registry. The run that is held performs [Broadcast]: every step in
//     this process that works for its session, or for one below it, and that carries a
//     lower number (see [Holds].Heard), has its context cancelled at once. It costs no
//     write. A step that begins looks into the registry first.
//  2. A query to each other worker process that works for the tree, or a message where a
//     broker is set up. It may be late or lost: then (3) stops what is in flight there. A
//     message may be forged: of it an end is believed as an interrupt only.
//  3. The signal to the child, hop by hop ([TellChild], [HoldOrder] with all holds above
//     and not one change). It is the truth: it is in the child's history, and a child that
//     has not begun gets it in its first input or when it has begun ([Child].Owed).
//
// Early: a step that was stopped by (1) or (2) returns the hold that it met (heed). The run
// takes it for an inherited interrupt, although nobody has told it yet, remembers it as
// Early, and tells its own children. When (3) comes, it says who holds the run and why
// (heldAbove), and Early is forgotten. If (3) never comes, since the hold was never
// recorded (its workflow task was lost), the run asks its parent when it next looks for it
// (metReport), and the parent answers with the holds that there are (metBelow).
//
// Late: a resume overtakes nothing, since signals to one child are sent one after the
// other. A hold that the run has heard of, lifted or not, is not news: a step that stopped
// for it is made again (justified, outdated), and an order whose knowledge is older than
// what a step has met changes nothing (heldAbove).
//
// Nothing is lost: (3) is repeated by the server until the child has it, a child that ends
// tells so itself, and an end of the parent is a hold too (leaveChildren): verb cancel.

// pass tells the sub-agents which holds are above them now.
func (s *step) pass(verb agent.Verb, grace agent.Duration) agent.HoldOrder {
	return agent.HoldOrder{Verb: verb, Held: s.Holds.down(), Heard: slices.Clone(s.Holds.Heard), Grace: grace}
}

// tellChildren passes an order on to every child that may still be working.
func (s *step) tellChildren(o agent.HoldOrder) {
	for i, c := range s.Children.List {
		if c.live() {
			s.tellChild(i, o)
		}
	}
}

// tellChild tells a child something, at once or when it has begun.
func (s *step) tellChild(i int, o agent.HoldOrder) {
	c := s.Children.List[i]
	if !c.Started {
		s.Children.owe(i, o)
		return
	}
	o.Run, o.From = c.Run, s.Run
	s.do(TellChild{Session: c.Session, Order: o})
}

// ordered obeys the parent. What comes a second time changes nothing.
func (s *step) ordered(o agent.HoldOrder) error {
	switch {
	case s.over():
		return s.refuse("the run is ending")
	case o.Run != s.Run:
		return s.refuse("an order from above is for run %s", o.Run)
	case !s.Parent.is(o.From):
		return s.refuse("an order from above is from run %s, which did not start this one", o.From)
	case o.Verb.Strength() == 0 && o.Verb != agent.Resume:
		return s.refuse("an order from above has an unknown verb: %.80s", o.Verb)
	}
	o = boundedOrder(o)
	s.resumed = agent.Resumed{Cause: agent.ByParent, By: o.By}
	switch o.Verb {
	case agent.Stop:
		return s.stop(agent.StopOrder{Order: agent.Order{By: o.By}, Reason: o.Reason, Deadline: o.Deadline})
	case agent.Cancel:
		return s.cancelled(firstOf(o.Reason, reasonParent))
	case agent.Resume:
		if h := s.Holds.own(); o.Own && h != nil && h.By != o.By {
			return s.refuse("the run is held by %s, and not by the agent above it", firstOf(h.By, "somebody"))
		}
		if o.Own {
			return s.resume(agent.ResumeOrder{Order: agent.Order{By: o.By}, Message: o.Reason, Fresh: o.Fresh})
		}
	}
	if o.Own {
		return s.holdAs(agent.ByParent, o.Verb, agent.Order{By: o.By}, o.Reason, o.Grace)
	}
	return s.heldAbove(o)
}

// boundedOrder is an order from above within the bounds of what an operator may say. A
// resume's reason is a message for the model, which has a bound of its own.
func boundedOrder(o agent.HoldOrder) agent.HoldOrder {
	const longest = agent.Duration(time.Hour)
	o.By, o.Grace, o.Deadline = fit(o.By, maxBy), min(o.Grace, longest), min(o.Deadline, longest)
	if o.Verb != agent.Resume {
		o.Reason = fit(o.Reason, maxReason)
	}
	return o
}

// maxHold bounds the numbers of holds in an order, which may be forged.
const maxHold = 1 << 30

// invented reports whether a hold has a number that no session comes to.
func invented(h agent.Heard) bool { return h.N < 0 || h.N > maxHold }

// layable reports whether holds are such as runs above lay: else they would never be lifted.
func (s *step) layable(held []agent.Hold) bool {
	return !slices.ContainsFunc(held, func(h agent.Hold) bool {
		return invented(heardOf(h)) || !s.above(h.Session) || h.Verb != agent.Pause && h.Verb != agent.Interrupt
	})
}

// heldAbove takes over the holds above this run, as its parent knows them, and passes on
// what has changed.
func (s *step) heldAbove(o agent.HoldOrder) error {
	if !s.layable(o.Held) || slices.ContainsFunc(o.Heard, invented) {
		return s.refuse("an order from above has a hold with a number that no session comes to, or that no run above lays")
	}
	s.Holds.told(o.Heard)
	old, want := s.Holds.inherited(), strongest(o.Held)
	fresh := want != nil && want.Verb == agent.Interrupt && !s.Holds.knows(heardOf(*want))
	current := old == nil || knows(o.Heard, heardOf(*old)) // the parent knows the hold that is on the run
	s.hearAbove(o.Heard)
	switch {
	case s.End.Stopping != nil || !current:
		return nil // a stop is stronger; or a step has met a later hold, and the order for that is on its way
	case old != nil && want != nil && heardOf(*old) == heardOf(*want):
		s.Holds.explain(want.By, want.Reason)
		return nil
	case want == nil && old == nil:
	case want == nil:
		s.goOnWith("The agent above you was resumed.", "")
		s.removeHold(agent.HoldInherited)
	default:
		s.addHold(*want, holdNumber(*want), agent.ByParent)
	}
	s.tellChildren(s.pass(o.Verb, o.Grace))
	if fresh {
		s.giveUp(o.Grace, "the run was interrupted")
	}
	return nil
}

// hearAbove takes which holds a run above has heard of. Of sessions that are not above this
// one no step of this run asks.
func (s *step) hearAbove(heard []agent.Heard) {
	for _, h := range heard {
		if s.above(h.Session) && !invented(h) {
			s.Holds.hear(h)
		}
	}
}

// above reports whether a session is one that this run was born under.
func (s *step) above(session string) bool { return strings.HasPrefix(s.Session, session+"/") }

// news reports whether a hold that a step met is an ancestor's that this run has not heard
// of yet, and that can be.
func (s *step) news(h agent.Heard) bool {
	return !s.Holds.knows(h) && s.above(h.Session) && s.believes(h)
}

// believes reports whether a hold that a step or a sub-agent says to have met can be. If
// another were believed, the next hold would have no number.
func (s *step) believes(h agent.Heard) bool {
	known := s.Holds.last(h.Session)
	if h.Session == s.Session {
		known = max(known, s.Numbers.Hold)
	}
	return h.Follows(known)
}

// justified reports whether a step was right to stop for a hold: it is news, or the run is
// held or ending.
func (s *step) justified(h agent.Heard) bool {
	return s.news(h) || s.Holds.any() || s.End.Stopping != nil || s.End.Aborting != nil
}

// outdated takes a hold that stopped a step for nothing: it was of a run before this one.
// Now that it was heard of, it stops no other step, and its number is not used again. Holds
// of sessions that are neither this one nor above it are made up, without end.
func (s *step) outdated(h agent.Heard) {
	if !s.believes(h) || h.Session != s.Session && !s.above(h.Session) {
		return
	}
	s.Holds.hear(h)
	if h.Session == s.Session {
		s.Numbers.Hold = max(s.Numbers.Hold, h.N)
	}
}

// heed takes a hold, or an end, of an ancestor that a step met before this run heard of it.
func (s *step) heed(h *agent.Heard) {
	if h == nil || !s.news(*h) || s.over() {
		return
	}
	s.Holds.hear(*h)
	s.resumed = agent.Resumed{Cause: agent.ByParent}
	switch {
	case h.Verb == agent.Cancel:
		s.end(agent.Cancelled, reasonParent, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	case s.End.Stopping == nil:
		s.Holds.met(*h)
		s.addHold(agent.Hold{
			ID: agent.HoldID(h.N), From: agent.HoldInherited, Session: h.Session, Verb: agent.Interrupt, At: s.now(),
		}, h.N, agent.ByParent)
		s.tellChildren(s.pass(agent.Interrupt, 0))
		s.giveUp(0, "the run was interrupted")
	}
}

// metBelow answers a child that has met a hold which nobody has told it of: it was never
// laid, or this run has not heard of it either.
func (s *step) metBelow(child int, h agent.Heard) {
	switch {
	case s.Holds.knows(h): // it is told, or was
	case h.Session == s.Session:
		s.outdated(h)
	case s.Parent.Birth != nil && s.above(h.Session):
		s.tellParent(s.metReport(h))
		return
	}
	s.tellChild(child, s.pass(agent.Resume, 0))
}

// metReport is the report of a hold that was met, and not told.
func (s *step) metReport(h agent.Heard) agent.ChildReport {
	r := s.ownReport(s.Status())
	r.Met = &h
	return r
}

// leaveChildren ends what still works below: no child outlives its parent.
func (s *step) leaveChildren() {
	if !s.Children.working() {
		return
	}
	s.Children.leave(s.At)
	n := s.nextHold()
	s.Holds.hear(agent.Heard{Session: s.Session, N: n})
	s.do(Broadcast{Session: s.Session, N: n, Verb: agent.Cancel})
	s.tellChildren(agent.HoldOrder{Verb: agent.Cancel, Heard: slices.Clone(s.Holds.Heard), Reason: reasonParent})
}
