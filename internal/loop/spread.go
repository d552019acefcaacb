package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
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
//     lower number (see [Holds].Known), has its context cancelled at once. It costs no
//     write. A step that begins looks into the registry first.
//  2. A query to each other worker process that works for the tree, or a message where a
//     broker is set up. It may be late or lost: then (3) stops what is in flight there. A
//     message may be forged: of it an end is believed as an interrupt only.
//  3. The signal to the child, hop by hop ([OrderChild], [ParentOrder] with all holds above
//     and not one change). It is the truth: it is in the child's history, and a child that
//     has not begun gets it in its first input or when it has begun ([Child].PendingOrders).
//
// Early: a step that was stopped by (1) or (2) returns the hold that it met (takeMetHold). The run
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

// passHolds tells the sub-agents which holds are above them now.
func (s *step) passHolds(verb agent.Verb, grace agent.Duration) wire.ParentOrder {
	return wire.ParentOrder{Verb: verb, Holds: s.Holds.forChildren(), KnownHolds: slices.Clone(s.Holds.Known), Grace: grace}
}

// orderChildren passes an order on to every child that may still be working.
func (s *step) orderChildren(o wire.ParentOrder) {
	for i, c := range s.Children.List {
		if c.notEnded() {
			s.orderChild(i, o)
		}
	}
}

// orderChild tells a child something, at once or when it has begun.
func (s *step) orderChild(i int, o wire.ParentOrder) {
	c := s.Children.List[i]
	if !c.Started {
		s.Children.queueOrder(i, o)
		return
	}
	o.Run, o.From = c.Run, s.Run
	s.do(OrderChild{Session: c.Session, Order: o})
}

// parentOrdered obeys the parent. What comes a second time changes nothing.
func (s *step) parentOrdered(o wire.ParentOrder) error {
	switch {
	case s.decided():
		return s.refuse("the run is ending")
	case o.Run != s.Run:
		return s.refuse("an order from above is for run %s", o.Run)
	case !s.Parent.is(o.From):
		return s.refuse("an order from above is from run %s, which did not start this one", o.From)
	case o.Verb.Strength() == 0 && o.Verb != agent.VerbResume:
		return s.refuse("an order from above has an unknown verb: %.80s", o.Verb)
	}
	o = boundedOrder(o)
	s.resumed = agent.Resumed{Cause: agent.InitiatorParent, By: o.By}
	switch o.Verb {
	case agent.VerbStop:
		return s.stop(agent.StopCommand{CommandHeader: agent.CommandHeader{By: o.By}, Reason: o.Reason, Deadline: o.Deadline})
	case agent.VerbCancel:
		return s.cancelled(firstOf(o.Reason, reasonParent))
	case agent.VerbResume:
		if h := s.Holds.own(); o.Own && h != nil && h.By != o.By {
			return s.refuse("the run is held by %s, and not by the agent above it", firstOf(h.By, "somebody"))
		}
		if o.Own {
			return s.resume(agent.ResumeCommand{CommandHeader: agent.CommandHeader{By: o.By}, Message: o.Reason, FromSummary: o.FromSummary})
		}
	}
	if o.Own {
		return s.holdAs(agent.InitiatorParent, o.Verb, agent.CommandHeader{By: o.By}, o.Reason, o.Grace)
	}
	return s.takeHoldsAbove(o)
}

// boundedOrder is an order from above within the bounds of what an operator may say. A
// resume's reason is a message for the model, which has a bound of its own.
func boundedOrder(o wire.ParentOrder) wire.ParentOrder {
	const longest = agent.Duration(time.Hour)
	o.By, o.Grace, o.Deadline = fit(o.By, maxBy), min(o.Grace, longest), min(o.Deadline, longest)
	if o.Verb != agent.VerbResume {
		o.Reason = fit(o.Reason, maxReason)
	}
	return o
}

// maxHold bounds the numbers of holds in an order, which may be forged.
const maxHold = 1 << 30

// impossibleHold reports whether a hold has a number that no session comes to.
func impossibleHold(h agent.HoldRef) bool { return h.N < 0 || h.N > maxHold }

// holdsValid reports whether holds are such as runs above lay: else they would never be lifted.
func (s *step) holdsValid(held []agent.Hold) bool {
	return !slices.ContainsFunc(held, func(h agent.Hold) bool {
		return impossibleHold(holdRef(h)) || !s.isAncestor(h.Session) || h.Verb != agent.VerbPause && h.Verb != agent.VerbInterrupt
	})
}

// takeHoldsAbove takes over the holds above this run, as its parent knows them, and passes on
// what has changed.
func (s *step) takeHoldsAbove(o wire.ParentOrder) error {
	if !s.holdsValid(o.Holds) || slices.ContainsFunc(o.KnownHolds, impossibleHold) {
		return s.refuse("an order from above has a hold with a number that no session comes to, or that no run above lays")
	}
	s.Holds.confirm(o.KnownHolds)
	old, want := s.Holds.inherited(), strongest(o.Holds)
	fresh := want != nil && want.Verb == agent.VerbInterrupt && !s.Holds.knows(holdRef(*want))
	current := old == nil || knows(o.KnownHolds, holdRef(*old)) // the parent knows the hold that is on the run
	s.learnHoldsAbove(o.KnownHolds)
	switch {
	case s.End.Stopping != nil || !current:
		return nil // a stop is stronger; or a step has met a later hold, and the order for that is on its way
	case old != nil && want != nil && holdRef(*old) == holdRef(*want):
		s.Holds.explain(want.By, want.Reason)
		return nil
	case want == nil && old == nil:
	case want == nil:
		s.resumeWith("The agent above you was resumed.", "")
		s.removeHold(agent.HoldInherited)
	default:
		s.addHold(*want, holdNumber(*want), agent.InitiatorParent)
	}
	s.orderChildren(s.passHolds(o.Verb, o.Grace))
	if fresh {
		s.cancelInFlight(o.Grace, "the run was interrupted")
	}
	return nil
}

// learnHoldsAbove takes which holds a run above has heard of. Of sessions that are not above this
// one no step of this run asks.
func (s *step) learnHoldsAbove(heard []agent.HoldRef) {
	for _, h := range heard {
		if s.isAncestor(h.Session) && !impossibleHold(h) {
			s.Holds.remember(h)
		}
	}
}

// isAncestor reports whether a session is one that this run was born under.
func (s *step) isAncestor(session string) bool { return strings.HasPrefix(s.Session, session+"/") }

// isNewHold reports whether a hold that a step met is an ancestor's that this run has not heard
// of yet, and that can be.
func (s *step) isNewHold(h agent.HoldRef) bool {
	return !s.Holds.knows(h) && s.isAncestor(h.Session) && s.plausibleHold(h)
}

// plausibleHold reports whether a hold that a step or a sub-agent says to have met can be. If
// another were believed, the next hold would have no number.
func (s *step) plausibleHold(h agent.HoldRef) bool {
	known := s.Holds.lastNumber(h.Session)
	if h.Session == s.Session {
		known = max(known, s.Counters.Hold)
	}
	return wire.PlausibleHold(h, known)
}

// justified reports whether a step was right to stop for a hold: it is news, or the run is
// held or ending.
func (s *step) justified(h agent.HoldRef) bool {
	return s.isNewHold(h) || s.Holds.any() || s.End.Stopping != nil || s.End.Aborting != nil
}

// outdated takes a hold that stopped a step for nothing: it was of a run before this one.
// Now that it was heard of, it stops no other step, and its number is not used again. Holds
// of sessions that are neither this one nor above it are made up, without end.
func (s *step) outdated(h agent.HoldRef) {
	if !s.plausibleHold(h) || h.Session != s.Session && !s.isAncestor(h.Session) {
		return
	}
	s.Holds.remember(h)
	if h.Session == s.Session {
		s.Counters.Hold = max(s.Counters.Hold, h.N)
	}
}

// takeMetHold takes a hold, or an end, of an ancestor that a step met before this run heard of it.
func (s *step) takeMetHold(h *agent.HoldRef) {
	if h == nil || !s.isNewHold(*h) || s.decided() {
		return
	}
	s.Holds.remember(*h)
	s.resumed = agent.Resumed{Cause: agent.InitiatorParent}
	switch {
	case h.Verb == agent.VerbCancel:
		s.end(agent.StatusCancelled, reasonParent, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	case s.End.Stopping == nil:
		s.Holds.met(*h)
		s.addHold(agent.Hold{
			ID: holdID(h.N), From: agent.HoldInherited, Session: h.Session, Verb: agent.VerbInterrupt, At: s.now(),
		}, h.N, agent.InitiatorParent)
		s.orderChildren(s.passHolds(agent.VerbInterrupt, 0))
		s.cancelInFlight(0, "the run was interrupted")
	}
}

// answerMetHold answers a child that has met a hold which nobody has told it of: it was never
// laid, or this run has not heard of it either.
func (s *step) answerMetHold(child int, h agent.HoldRef) {
	switch {
	case s.Holds.knows(h): // it is told, or was
	case h.Session == s.Session:
		s.outdated(h)
	case s.Parent.Start != nil && s.isAncestor(h.Session):
		s.reportToParent(s.metReport(h))
		return
	}
	s.orderChild(child, s.passHolds(agent.VerbResume, 0))
}

// metReport is the report of a hold that was met, and not told.
func (s *step) metReport(h agent.HoldRef) wire.ChildReport {
	r := s.ownReport(s.Status())
	r.MetHold = &h
	return r
}

// cancelChildren ends what still works below: no child outlives its parent.
func (s *step) cancelChildren() {
	if !s.Children.anyNotEnded() {
		return
	}
	s.Children.startEndWait(s.At)
	n := s.nextHold()
	s.Holds.remember(agent.HoldRef{Session: s.Session, N: n})
	s.do(Broadcast{Session: s.Session, N: n, Verb: agent.VerbCancel})
	s.orderChildren(wire.ParentOrder{Verb: agent.VerbCancel, KnownHolds: slices.Clone(s.Holds.Known), Reason: reasonParent})
}
