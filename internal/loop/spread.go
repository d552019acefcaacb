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
// A hold has a number that counts over its session's life. So session and number name it,
// and a higher number is a later hold. A hold reaches a run in three ways. Every hold uses
// (3). An interrupt, and the end of a run, also use (1) and (2), to stop what is in flight. A run
// may learn of a hold by any of them, in any order, and more than once.
//
//  1. Within the process. The held run performs [Broadcast]. It cancels at once the contexts
//     of activities in this process that work for its session, or for one below it. An
//     activity that knows the hold continues ([Caller].KnownHolds). One that begins looks for
//     such a hold first; an end that it finds counts as an interrupt, since it may be of an
//     earlier session with the same id. This way costs no write.
//  2. Between workers, by query, or by a message where a broker is set up. It may be late or
//     lost: then (3) stops what is in flight there. A message may be forged, so an end that
//     comes this way counts as an interrupt only.
//  3. From parent to child, by signal ([OrderChild] with a [wire.ParentOrder]). It lists all
//     holds of the child's ancestors, not only the changed one. Only this way is durable: it is in the
//     child's history. A child that has not started gets it in its first input, or when it
//     has started ([Child].PendingOrders).
//
// A hold comes early if an activity that (1) or (2) stopped returns the hold before (3)
// comes (takeMetHold). The run takes it for an inherited interrupt, keeps it as
// [Holds].Unconfirmed, and orders its own children. When (3) comes, it says who holds the
// run and why (takeHoldsAbove), and Unconfirmed is forgotten. (3) may never come: the
// workflow task that recorded the hold was lost. So the run asks about the hold when it next
// checks its parent (metReport). The parent answers with its holds (answerMetHold).
//
// A hold comes late if the run knows it already, removed or not. An activity that stopped
// for it is made again (justified, recordOutdated). An order that was sent before the sender knew
// the run's hold does not remove that hold (takeHoldsAbove). A resume overtakes no hold,
// since signals to one child are sent one after the other.
//
// Nothing is lost. The server repeats (3) until the child has it. A child that ends reports
// that itself. And the end of the parent is a hold too (cancelChildren), with the verb
// cancel.

// passHolds returns the order that tells the children which holds they are under now.
func (s *step) passHolds(verb agent.Verb, grace agent.Duration) wire.ParentOrder {
	return wire.ParentOrder{Verb: verb, By: s.resumed.By, Holds: s.Holds.forChildren(), KnownHolds: slices.Clone(s.Holds.Known), Grace: grace}
}

// orderChildren sends an order to every child that has not ended.
func (s *step) orderChildren(o wire.ParentOrder) {
	for i, c := range s.Children.List {
		if c.notEnded() {
			s.orderChild(i, o)
		}
	}
}

// orderChild sends an order to a child, at once or when it has started.
func (s *step) orderChild(i int, o wire.ParentOrder) {
	c := s.Children.List[i]
	if !c.Started {
		s.Children.queueOrder(i, o)
		return
	}
	o.Run, o.From = c.Run, s.Run
	s.do(OrderChild{Session: c.Session, Order: o})
}

// parentOrdered carries out an order of the parent. One that comes again changes nothing.
func (s *step) parentOrdered(o wire.ParentOrder) error {
	switch {
	case s.outcomeDecided() && !(o.Verb == agent.VerbCancel && o.Again): // a cancel that comes again is for the runs below, too
		return s.refuse("the run is ending")
	case o.Run != s.Run:
		return s.refuse("an order from above is for run %s", o.Run)
	// Anybody who may signal this workflow could send an order (decision 0035).
	case !s.Parent.is(o.From):
		return s.refuse("an order from above is from run %s, which did not start this one", o.From)
	case o.Verb.Strength() == 0 && o.Verb != agent.VerbResume:
		return s.refuse("an order from above has an unknown verb: %.80s", o.Verb)
	}
	if o.ReportEnd {
		s.Parent.mustReportEnd()
	}
	o = boundedOrder(o)
	s.resumed = agent.Resumed{Cause: agent.InitiatorParent, By: o.By}
	switch o.Verb {
	case agent.VerbStop:
		return s.stop(agent.StopCommand{CommandHeader: agent.CommandHeader{By: o.By}, Reason: o.Reason, Deadline: o.Deadline})
	case agent.VerbCancel:
		from := byParent
		if o.Again {
			from = byCaller
		}
		return s.cancelled(firstOf(o.Reason, reasonParent), o.By, from)
	case agent.VerbResume:
		if o.Own {
			return s.reportAgainIf(o, s.resumedByModel(o))
		}
	}
	if o.Own {
		return s.holdAs(agent.InitiatorParent, o.Verb, agent.CommandHeader{By: o.By}, o.Reason, o.Grace)
	}
	return s.takeHoldsAbove(o)
}

// resumedByModel carries out the resume of the parent's model.
func (s *step) resumedByModel(o wire.ParentOrder) error {
	// The parent's model must not remove an operator's hold.
	if h := s.Holds.own(); h != nil && h.By != o.By {
		return s.refuse("the run is held by %s, and not by the agent above it", firstOf(h.By, "somebody"))
	}
	return s.resume(agent.ResumeCommand{CommandHeader: agent.CommandHeader{By: o.By}, Message: o.Reason, Parts: s.shownWith(o.Files), FromSummary: o.FromSummary})
}

// reportAgainIf lets the parent know how the run stands if it is suspended still after the resume of the
// parent's model: a call of subagent_wait waits for that (Child.Ordered). A refusal is recorded, so the
// report has a higher number than the last.
func (s *step) reportAgainIf(o wire.ParentOrder, err error) error {
	if s.Parent.LastReport == nil || !s.waitsForNews() { // the next report is to come
		return err
	}
	s.Parent.reportAgain()
	s.changed = true
	if err != nil {
		s.showRefused(string(agent.VerbResume), o.By, *asError(err))
	}
	return nil
}

// maxGrace bounds the grace of a hold that comes from above.
const maxGrace = agent.Duration(time.Minute)

// boundedOrder returns an order within the bounds of an operator's verbs (signals/check.go): it may be
// forged. A resume's reason is a message for the model, which has a bound of its own.
func boundedOrder(o wire.ParentOrder) wire.ParentOrder {
	const maxDeadline = agent.Duration(time.Hour)
	o.By, o.Grace, o.Deadline = fit(o.By, maxBy), min(o.Grace, maxGrace), min(o.Deadline, maxDeadline)
	if o.Verb != agent.VerbResume {
		o.Reason = fit(o.Reason, maxReason)
	}
	return o
}

// maxHold bounds the numbers of holds in an order, which may be forged.
const maxHold = 1 << 30

// impossibleHold reports whether a hold has a number that no session reaches.
func impossibleHold(h agent.HoldRef) bool { return h.N < 0 || h.N > maxHold }

// holdsValid reports whether a list has only pauses and interrupts of ancestors. No resume
// would remove any other hold.
func (s *step) holdsValid(held []agent.Hold) bool {
	return !slices.ContainsFunc(held, func(h agent.Hold) bool {
		return impossibleHold(holdRef(h)) || !s.isAncestor(h.Session) || h.Verb != agent.VerbPause && h.Verb != agent.VerbInterrupt
	})
}

// takeHoldsAbove takes over the holds above this run, as its parent knows them, and passes a
// change on.
func (s *step) takeHoldsAbove(o wire.ParentOrder) error {
	if !s.holdsValid(o.Holds) || slices.ContainsFunc(o.KnownHolds, impossibleHold) {
		return s.refuse("an order from above has a hold with a number that no session comes to, or that no run above lays")
	}
	// A parent that knows the hold which an activity met needs no question any more.
	s.Holds.confirm(o.KnownHolds)
	old, want := s.Holds.inherited(), strongest(o.Holds)
	// Before learnHoldsAbove: it makes every hold known, and then no interrupt would be
	// fresh. One that is known was carried out already.
	fresh := want != nil && want.Verb == agent.VerbInterrupt && !s.Holds.knows(holdRef(*want))
	current := old == nil || knows(o.KnownHolds, holdRef(*old)) // the parent knows the hold that is on the run
	s.learnHoldsAbove(o.KnownHolds)
	switch {
	case s.End.Stopping != nil || !current:
		// A stop is stronger. Or an activity has met a later hold, and the order for it is
		// on its way.
		return nil
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
	// Also if nothing changed here: a child may still have a hold that it met, which was
	// never recorded.
	s.orderChildren(s.passHolds(o.Verb, o.Grace))
	if fresh {
		s.interruptInFlight(o.Grace)
	}
	return nil
}

// learnHoldsAbove learns which holds a run above knows. Holds of other sessions are ignored:
// no activity of this run meets them.
func (s *step) learnHoldsAbove(heard []agent.HoldRef) {
	for _, h := range heard {
		if s.isAncestor(h.Session) && !impossibleHold(h) {
			s.Holds.remember(h)
		}
	}
}

// isAncestor reports whether a session is one above this run.
func (s *step) isAncestor(session string) bool { return strings.HasPrefix(s.Session, session+"/") }

// isNewHold reports whether a hold that an activity met is an ancestor's, possible, and not
// known here.
func (s *step) isNewHold(h agent.HoldRef) bool {
	return !s.Holds.knows(h) && s.isAncestor(h.Session) && s.plausibleHold(h)
}

// plausibleHold reports whether a hold that an activity or a child reports can exist. A
// forged high number would leave no number for the session's next hold.
func (s *step) plausibleHold(h agent.HoldRef) bool {
	known := s.Holds.lastNumber(h.Session)
	if h.Session == s.Session {
		known = max(known, s.Counters.Hold)
	}
	return wire.PlausibleHold(h, known) && (h.N <= wire.MaxMet || s.Revision >= oneMetHoldSince)
}

// justified reports whether an activity was right to stop for a hold: the hold is new, or
// the run is held or ending. If neither is so, the hold is removed already, and the call is made
// again.
func (s *step) justified(h agent.HoldRef) bool {
	return s.isNewHold(h) || s.Holds.any() || s.End.Stopping != nil || s.End.Grace != nil
}

// recordOutdated records a hold of an earlier run that stopped an activity. Then it stops no other
// activity, and its number is not used again. Holds of other sessions are not recorded:
// there is no end of forged ones.
func (s *step) recordOutdated(h agent.HoldRef) {
	if !s.plausibleHold(h) || h.Session != s.Session && !s.isAncestor(h.Session) {
		return
	}
	s.Holds.remember(h)
	if h.Session == s.Session {
		s.Counters.Hold = max(s.Counters.Hold, h.N)
	}
}

// takeMetHold takes a hold, or an end, of an ancestor that an activity met before the order
// for it came.
func (s *step) takeMetHold(h *agent.HoldRef) {
	if h == nil || !s.isNewHold(*h) || s.outcomeDecided() {
		return
	}
	// One hold holds the run already, and the order for a later one comes. If the later one were remembered,
	// two forged numbers together could be higher than the parent believes, and it could not take them back.
	if h.Verb != agent.VerbCancel && s.Holds.Unconfirmed != nil && s.Revision >= oneMetHoldSince {
		return
	}
	s.Holds.remember(*h)
	s.resumed = agent.Resumed{Cause: agent.InitiatorParent}
	switch {
	case h.Verb == agent.VerbCancel && s.cancelling():
	case h.Verb == agent.VerbCancel:
		s.cancel(reasonParent, h.By)
	// Only interrupts and ends stop an activity. The order will say who holds the run and
	// why (Holds.explain).
	case s.End.Stopping == nil:
		s.Holds.met(*h)
		s.addHold(agent.Hold{
			ID: holdID(h.N), From: agent.HoldInherited, Session: h.Session, Verb: agent.VerbInterrupt, At: s.now(),
		}, h.N, agent.InitiatorParent)
		grace := max(0, min(h.Grace, maxGrace)) // a broker's message may be forged
		s.orderChildren(s.passHolds(agent.VerbInterrupt, grace))
		s.interruptInFlight(grace)
		if s.Revision >= oneMetHoldSince {
			s.Parent.checkWithinAMinute(s.At)
		}
	}
}

// answerMetHold answers a child that met a hold which this run did not order. The hold may
// never have been recorded, or this run does not know it either.
func (s *step) answerMetHold(child int, h agent.HoldRef) {
	switch {
	case s.Holds.knows(h): // passHolds tells the child whether it still holds
	// Each hold of this session is known here, so this one was lost with its workflow task.
	case h.Session == s.Session:
		s.recordOutdated(h)
	// A run further up may know. Its answer comes as an order.
	case s.Parent.Start != nil && s.isAncestor(h.Session):
		s.reportToParent(s.metReport(h))
		return
	}
	s.orderChild(child, s.passHolds(agent.VerbResume, 0))
}

// metReport returns the report of a hold that was met and not ordered.
func (s *step) metReport(h agent.HoldRef) wire.ChildReport {
	r := s.ownReport(s.Status())
	h.By = "" // the parent looks for its number
	r.MetHold = &h
	return r
}

// cancelChildren cancels the children that have not ended: no child outlives its parent. The run
// waits for them from the first cancel on. again means that they were cancelled before, and end
// without a grace now.
func (s *step) cancelChildren(again bool) {
	if !s.Children.anyNotEnded() {
		return
	}
	if !again {
		s.Children.startEndWait(s.At)
	}
	// An end takes a hold number too: activities stop only for one above their KnownHolds.
	n := s.nextHold()
	s.Holds.remember(agent.HoldRef{Session: s.Session, N: n})
	s.do(Broadcast{Session: s.Session, N: n, Verb: agent.VerbCancel, By: s.endedBy})
	s.orderChildren(wire.ParentOrder{Verb: agent.VerbCancel, By: s.endedBy, KnownHolds: slices.Clone(s.Holds.Known), Reason: reasonParent, Again: again})
}
