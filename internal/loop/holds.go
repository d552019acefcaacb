package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Holds is the part that knows the holds, which prevent new calls. spread.go says
// how a hold reaches the run.
type Holds struct {
	// List has at most two: the run's own hold and an inherited one.
	List []agent.Hold `json:"list,omitempty"`
	// Known is the last known hold of each session, removed or not. Activities carry this list,
	// so that an old hold does not stop a new activity.
	Known []agent.HoldRef `json:"known,omitempty"`
	// Unconfirmed is an ancestor's hold that stopped an activity, and that no order of the parent
	// has confirmed yet.
	Unconfirmed *agent.HoldRef `json:"unconfirmed,omitempty"`
	// Unanswered is the interrupt whose sender has no answer yet (ack.go); nil if there is none.
	Unanswered *UnansweredInterrupt `json:"unanswered,omitempty"`
}

// UnansweredInterrupt is an interrupt whose sender gets the answer when the run is suspended.
type UnansweredInterrupt struct {
	ProcessedVerb
	// Sealing means that a local seal stores the suspension, or has stored it.
	Sealing bool `json:"sealing,omitempty"`
}

// defaultGrace is how long cancelled calls may take to return a partial result.
const defaultGrace = agent.Duration(5 * time.Second)

func (h Holds) clone() Holds {
	h.List, h.Known = slices.Clone(h.List), slices.Clone(h.Known)
	return h
}

// answerLater keeps an interrupt that is not answered yet; nil if it is.
func (h *Holds) answerLater(u *UnansweredInterrupt) { h.Unanswered = u }

// answerAfterSeal means that the answer waits for a local seal.
func (h *Holds) answerAfterSeal() {
	u := *h.Unanswered
	u.Sealing = true
	h.Unanswered = &u
}

func (h Holds) any() bool { return len(h.List) > 0 }

// from returns the hold of one side; nil if there is none.
func (h Holds) from(side agent.HoldFrom) *agent.Hold {
	for i := range h.List {
		if h.List[i].From == side {
			return &h.List[i]
		}
	}
	return nil
}

// own returns the session's own hold, and inherited the one of an ancestor; nil if there is none.
func (h Holds) own() *agent.Hold       { return h.from(agent.HoldOwn) }
func (h Holds) inherited() *agent.Hold { return h.from(agent.HoldInherited) }

// blockCalls reports whether no call may begin: an interrupt blocks every call, and a pause the calls
// of a run at rest.
func (h Holds) blockCalls(resting bool) bool {
	return slices.ContainsFunc(h.List, func(one agent.Hold) bool { return resting || one.Verb == agent.VerbInterrupt })
}

// forChildren returns the holds as the sub-agents inherit them.
func (h Holds) forChildren() (held []agent.Hold) {
	for _, one := range h.List {
		one.From = agent.HoldInherited
		held = append(held, one)
	}
	return held
}

// bounded returns a hold with its texts cut to their limits.
func bounded(one agent.Hold) agent.Hold {
	one.ID, one.Session = fit(one.ID, maxName), fit(one.Session, maxName)
	one.From, one.Verb = fit(one.From, receiptFrame), fit(one.Verb, receiptFrame)
	one.By, one.RemovedBy, one.Reason = fit(one.By, maxBy), "", fit(one.Reason, maxReason)
	one.Code = fit(one.Code, receiptFrame)
	return one
}

// add adds a hold, instead of the one from the same side.
func (h *Holds) add(one agent.Hold, n int) {
	h.List = slices.DeleteFunc(h.List, func(old agent.Hold) bool { return old.From == one.From })
	h.List = append(h.List, one)
	h.remember(agent.HoldRef{Session: one.Session, N: n})
}

// remove removes the hold of one side and returns it.
func (h *Holds) remove(side agent.HoldFrom) (one agent.Hold, ok bool) {
	i := slices.IndexFunc(h.List, func(o agent.Hold) bool { return o.From == side })
	if i < 0 {
		return one, false
	}
	one = h.List[i]
	h.List = slices.Delete(h.List, i, i+1)
	return one, true
}

// clear removes all holds: an end can't be held.
func (h *Holds) clear() { h.List = nil }

// explain adds who ordered the inherited hold and why. An activity that met the hold did not know.
func (h *Holds) explain(by, reason string) {
	if one := h.inherited(); one != nil {
		one.By, one.Reason = fit(by, maxBy), fit(reason, maxReason)
	}
}

// remember records a hold as known, if it is the session's newest.
func (h *Holds) remember(one agent.HoldRef) {
	one.Verb, one.Grace, one.By = "", 0, "" // session and number name a hold: knows compares nothing else
	i := slices.IndexFunc(h.Known, func(old agent.HoldRef) bool { return old.Session == one.Session })
	if i < 0 {
		h.Known = append(h.Known, one)
		return
	}
	h.Known[i].N = max(h.Known[i].N, one.N)
}

// lastNumber returns the number of a session's last known hold; zero if none is known.
func (h Holds) lastNumber(session string) int {
	for _, one := range h.Known {
		if one.Session == session {
			return one.N
		}
	}
	return 0
}

func (h Holds) knows(one agent.HoldRef) bool { return knows(h.Known, one) }

// met remembers a hold that stopped an activity before an order told the run of it.
func (h *Holds) met(one agent.HoldRef) {
	h.Unconfirmed = &agent.HoldRef{Session: one.Session, N: one.N}
}

// confirm clears Unconfirmed if the parent knows that hold, or a later one of its session.
func (h *Holds) confirm(heard []agent.HoldRef) {
	if h.Unconfirmed != nil && knows(heard, *h.Unconfirmed) {
		h.Unconfirmed = nil
	}
}

// startUnder sets the hold under which the run starts; nil if there is none.
func (h *Holds) startUnder(under *agent.Hold) {
	if under != nil {
		one := bounded(*under)
		one.Initiator = agent.InitiatorParent // the parent may have it of an operator
		h.List = []agent.Hold{one}
	}
}

// reasons returns the holds as reasons to wait.
func (h Holds) reasons() (all reasons) {
	if h.inherited() != nil {
		all = append(all, reason{kind: agent.SuspensionHeld, owner: agent.OwnerParent, finds: []string{"held"}})
	}
	if h.own() == nil {
		return all
	}
	owner := agent.OwnerOperator
	if h.own().Initiator == agent.InitiatorParent {
		owner = agent.OwnerParent
	}
	own := reason{kind: agent.SuspensionHeld, owner: owner, finds: []string{"held"}}
	if code := h.own().Code; code != "" {
		own.finds = append(own.finds, string(code))
	}
	return append(all, own)
}

// strongest returns the strongest of some holds, as an inherited one; nil if there is none.
func strongest(holds []agent.Hold) (most *agent.Hold) {
	for _, h := range holds {
		if most == nil || h.Verb.Strength() > most.Verb.Strength() {
			h.From = agent.HoldInherited // a forged "own" hold would never be removed by an order
			most = &h
		}
	}
	return most
}

// holdNumber returns the number in a hold's id; zero if it has none.
func holdNumber(h agent.Hold) int {
	n, err := strconv.Atoi(strings.TrimPrefix(h.ID, "h-"))
	if err != nil {
		return 0
	}
	return n
}

func holdRef(h agent.Hold) agent.HoldRef { return agent.HoldRef{Session: h.Session, N: holdNumber(h)} }

// knows reports whether a hold, or a later one of its session, is among the known ones.
func knows(heard []agent.HoldRef, h agent.HoldRef) bool {
	return slices.ContainsFunc(heard, func(k agent.HoldRef) bool { return k.Session == h.Session && k.N >= h.N })
}

// holdAs carries out pause or interrupt for this session, from a person or its parent's model.
func (s *step) holdAs(by agent.Initiator, verb agent.Verb, o agent.CommandHeader, reason string, grace agent.Duration) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if s.SuspensionHooks.Resume != nil { // it was said before, and is not carried out after the hold
		s.withdrawResume()
	}
	if h := s.Holds.own(); h != nil && h.Verb.Strength() >= verb.Strength() {
		return s.already()
	}
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: holdID(n), From: agent.HoldOwn, Session: s.Session, Verb: verb, By: o.By, Reason: reason, At: s.now(),
	}, n, by)
	if by == agent.InitiatorParent && len(s.hooksAt(agent.PointBeforeSuspension)) > 0 {
		s.Suspensions.settle()
	}
	s.orderChildren(s.passHolds(verb, grace))
	if verb == agent.VerbInterrupt {
		// Broadcast acts within this workflow task; the orders above leave when it completes.
		s.do(Broadcast{Session: s.Session, N: n, Verb: verb, Grace: grace})
		s.interruptInFlight(grace)
		if s.Children.anyNotEnded() {
			s.answerWhenSuspended()
			if s.End.Grace != nil {
				// Without this, the results of this run's calls would come in a later task, behind the
				// tasks of the whole tree that stops at once.
				s.do(AwaitInFlight{Report: s.Holds.Unanswered != nil})
			}
		}
	}
	return nil
}

// holdForLostWorkers pauses the run because its model call may crash its workers. A resume makes the
// call again.
func (s *step) holdForLostWorkers(err *agent.Error) {
	if s.Holds.own() != nil { // a resume is needed anyway: only the cause is new
		s.Suspensions.setInitiator(agent.InitiatorPolicy, string(err.Code), fit(err.Message, maxReason))
		return
	}
	s.openSuspension(agent.InitiatorPolicy, string(err.Code), err.Message) // before addHold, which would name the verb as the cause
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: holdID(n), From: agent.HoldOwn, Session: s.Session, Verb: agent.VerbPause, Code: err.Code, Reason: err.Message, At: s.now(),
	}, n, agent.InitiatorPolicy)
	s.orderChildren(s.passHolds(agent.VerbPause, 0))
}

// nextHold returns the number of this session's next hold. An end uses one, too.
func (s *step) nextHold() int {
	s.Counters.Hold++
	return s.Counters.Hold
}

// addHold adds a hold, opens a suspension if none is open, and records both.
func (s *step) addHold(h agent.Hold, n int, by agent.Initiator) {
	h = bounded(h)
	h.Initiator = by
	s.Holds.add(h, n)
	s.openSuspension(by, string(h.Verb), h.Reason)
	s.changed = true
	s.recordIfBegun(agent.Event{Type: agent.EventHoldAdded, Hold: &h})
}

// removeHold removes the hold of one side. The rules close the suspension if no reason is left.
func (s *step) removeHold(side agent.HoldFrom) {
	h, ok := s.Holds.remove(side)
	if !ok {
		return
	}
	s.changed = true
	if s.idling() && !s.Holds.any() { // a daemon that was idle under the hold: its suspension shows that again
		s.Suspensions.setInitiator(agent.InitiatorSelf, causeIdle, "")
	}
	h.RemovedBy = fit(s.resumed.By, maxBy)
	s.recordIfBegun(agent.Event{Type: agent.EventHoldRemoved, Hold: &h})
}

// cancelInFlight cancels the model and tool calls in flight. What returns within the grace is kept;
// graceOver ends the grace. Pending calls are skipped at once, except those that a person has
// approved or answered.
func (s *step) cancelInFlight(grace agent.Duration, why string) {
	if grace == 0 {
		grace = defaultGrace
	}
	flying := s.inFlight()
	// Also if nothing is in flight: pending calls may wait for another call's approval.
	for i, c := range s.Calls.List {
		if c.State == CallPending && !c.hasDecision() {
			s.skip(i, why+" before the call began")
		}
	}
	if !flying {
		return
	}
	s.End.startGrace(s.At.Add(time.Duration(grace)), why)
	s.do(CancelInFlight{})
}

// interruptInFlight cancels what is in flight for an interrupt.
func (s *step) interruptInFlight(grace agent.Duration) {
	s.Turn.interrupt()
	s.cancelInFlight(grace, "the run was interrupted")
}

// cancelForHistoryLimit cancels what is in flight, because the server would soon terminate the run for
// its long history. That happens if one turn gets very many messages. The turn's calls are lost;
// the run continues in a new execution.
func (s *step) cancelForHistoryLimit() {
	s.cancelInFlight(0, reasonHistoryLimit)
}

const reasonHistoryLimit = "so much was said to the run that it had to begin a new history"

// graceOver ends a grace: the run no longer waits for what is in flight. A model call is dropped, and
// a tool call's outcome is unknown.
func (s *step) graceOver() {
	why := s.End.endGrace().Reason
	s.chargeEstimate() // before the turn ends: it charges only a call in flight
	switch s.Turn.Phase {
	case TurnAsking:
		s.recordTurnEnd()
		s.Turn.end()
	case TurnSummarizing:
		s.takeSummary("", nil, nil, true)
	case TurnWorking, TurnAdvancing:
		for i, c := range s.Calls.List {
			if c.State != CallRunning {
				continue
			}
			s.chargeLostCall(c)
			text := fmt.Sprintf(
				"Unknown outcome: %s while the call was in progress, and it did not come back in time. It may or may not have had its effect; look before you make it again.", why)
			if !s.resolveUnknown(i, text) {
				s.setResult(i, agent.CallUnknown, text)
			}
		}
	}
}
