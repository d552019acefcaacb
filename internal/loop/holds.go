package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Holds is the part that knows what keeps the run from beginning anything. How a hold
// reaches it stands in spread.go.
type Holds struct {
	// List has at most two: the run's own hold and an inherited one.
	List []agent.Hold `json:"list,omitempty"`
	// Known are the last holds that were heard of, lifted or not, by the session that was
	// held. Steps carry them, so that no old hold stops a new step.
	Known []agent.HoldRef `json:"known,omitempty"`
	// Unconfirmed is a hold of an ancestor that a step met, and that the run was not told of yet.
	Unconfirmed *agent.HoldRef `json:"unconfirmed,omitempty"`
}

// defaultGrace is how long tools may take to give a partial result.
const defaultGrace = agent.Duration(5 * time.Second)

func (h Holds) clone() Holds {
	h.List, h.Known = slices.Clone(h.List), slices.Clone(h.Known)
	return h
}

func (h Holds) any() bool { return len(h.List) > 0 }

// from is the hold of one side; nil if there is none.
func (h Holds) from(side agent.HoldFrom) *agent.Hold {
	for i := range h.List {
		if h.List[i].From == side {
			return &h.List[i]
		}
	}
	return nil
}

// own is the hold that was said to this session, and inherited one of an ancestor.
func (h Holds) own() *agent.Hold       { return h.from(agent.HoldOwn) }
func (h Holds) inherited() *agent.Hold { return h.from(agent.HoldInherited) }

// blockCalls reports whether no call may begin: an interrupt keeps all, and a pause those of
// a run that rests.
func (h Holds) blockCalls(resting bool) bool {
	return slices.ContainsFunc(h.List, func(one agent.Hold) bool { return resting || one.Verb == agent.VerbInterrupt })
}

// forChildren are the holds as the sub-agents have them.
func (h Holds) forChildren() (held []agent.Hold) {
	for _, one := range h.List {
		one.From = agent.HoldInherited
		held = append(held, one)
	}
	return held
}

// bounded is a hold of which what somebody wrote is cut to a bound.
func bounded(one agent.Hold) agent.Hold {
	one.ID, one.Session = fit(one.ID, maxName), fit(one.Session, maxName)
	one.From, one.Verb = fit(one.From, receiptFrame), fit(one.Verb, receiptFrame)
	one.By, one.Reason = fit(one.By, maxBy), fit(one.Reason, maxReason)
	return one
}

// add puts a hold on the run. It replaces the hold from the same side.
func (h *Holds) add(one agent.Hold, n int) {
	h.List = slices.DeleteFunc(h.List, func(old agent.Hold) bool { return old.From == one.From })
	h.List = append(h.List, one)
	h.remember(agent.HoldRef{Session: one.Session, N: n})
}

// remove takes away the hold of one side.
func (h *Holds) remove(side agent.HoldFrom) (one agent.Hold, ok bool) {
	i := slices.IndexFunc(h.List, func(o agent.Hold) bool { return o.From == side })
	if i < 0 {
		return one, false
	}
	one = h.List[i]
	h.List = slices.Delete(h.List, i, i+1)
	return one, true
}

// clear forgets all holds: nothing holds an end.
func (h *Holds) clear() { h.List = nil }

// explain takes over who holds the run and why, which a step that met the hold did not know.
func (h *Holds) explain(by, reason string) {
	if one := h.inherited(); one != nil {
		one.By, one.Reason = fit(by, maxBy), fit(reason, maxReason)
	}
}

// remember remembers the newest hold of a session.
func (h *Holds) remember(one agent.HoldRef) {
	one.Verb = ""
	i := slices.IndexFunc(h.Known, func(old agent.HoldRef) bool { return old.Session == one.Session })
	if i < 0 {
		h.Known = append(h.Known, one)
		return
	}
	h.Known[i].N = max(h.Known[i].N, one.N)
}

// lastNumber is the number of the last hold of a session that was heard of.
func (h Holds) lastNumber(session string) int {
	for _, one := range h.Known {
		if one.Session == session {
			return one.N
		}
	}
	return 0
}

func (h Holds) knows(one agent.HoldRef) bool { return knows(h.Known, one) }

// met remembers a hold that a step met first, until the run is told of it.
func (h *Holds) met(one agent.HoldRef) {
	h.Unconfirmed = &agent.HoldRef{Session: one.Session, N: one.N}
}

// confirm forgets a hold that a step met, if what the run is told knows it.
func (h *Holds) confirm(heard []agent.HoldRef) {
	if h.Unconfirmed != nil && knows(heard, *h.Unconfirmed) {
		h.Unconfirmed = nil
	}
}

// startUnder takes the hold that the run is born under; nil of none.
func (h *Holds) startUnder(under *agent.Hold) {
	if under != nil {
		h.List = []agent.Hold{bounded(*under)}
	}
}

// reasons are the holds as what the run waits for. by is who brought the suspension about.
func (h Holds) reasons(by agent.Initiator) (all reasons) {
	if h.inherited() != nil {
		all = append(all, reason{kind: agent.SuspensionHeld, owner: agent.OwnerParent, finds: []string{"held"}})
	}
	if h.own() == nil {
		return all
	}
	owner := agent.OwnerOperator
	if by == agent.InitiatorParent {
		owner = agent.OwnerParent
	}
	own := reason{kind: agent.SuspensionHeld, owner: owner, finds: []string{"held"}}
	if code := h.own().Code; code != "" {
		own.finds = append(own.finds, string(code))
	}
	return append(all, own)
}

// strongest is the hold that keeps the most from beginning, as a run below has it; nil of
// none.
func strongest(holds []agent.Hold) (most *agent.Hold) {
	for _, h := range holds {
		if most == nil || h.Verb.Strength() > most.Verb.Strength() {
			h.From = agent.HoldInherited // else a forged one could never be lifted
			most = &h
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

func holdRef(h agent.Hold) agent.HoldRef { return agent.HoldRef{Session: h.Session, N: holdNumber(h)} }

// knows reports whether a hold, or a later one of its session, is among those heard of.
func knows(heard []agent.HoldRef, h agent.HoldRef) bool {
	return slices.ContainsFunc(heard, func(k agent.HoldRef) bool { return k.Session == h.Session && k.N >= h.N })
}

// holdAs is pause or interrupt, said to this session or by its parent's model.
func (s *step) holdAs(by agent.Initiator, verb agent.Verb, o agent.CommandHeader, reason string, grace agent.Duration) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if h := s.Holds.own(); h != nil && h.Verb.Strength() >= verb.Strength() {
		return s.already()
	}
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: holdID(n), From: agent.HoldOwn, Session: s.Session, Verb: verb, By: o.By, Reason: reason, At: s.now(),
	}, n, by)
	s.orderChildren(s.passHolds(verb, grace))
	if verb == agent.VerbInterrupt {
		s.do(Broadcast{Session: s.Session, N: n, Verb: verb, Grace: grace})
		s.cancelInFlight(grace, "the run was interrupted")
		if s.End.Aborting != nil && s.Children.anyNotEnded() {
			s.do(AwaitInFlight{})
		}
	}
	return nil
}

// holdForLostWorkers holds the run since its model call may be what ends its workers. It goes on at
// resume, and makes the call again.
func (s *step) holdForLostWorkers(err *agent.Error) {
	if s.Holds.own() != nil { // whoever said so lets it go on
		s.Suspensions.setInitiator(agent.InitiatorPolicy, string(err.Code), err.Message)
		return
	}
	s.openSuspension(agent.InitiatorPolicy, string(err.Code), err.Message)
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: holdID(n), From: agent.HoldOwn, Session: s.Session, Verb: agent.VerbPause, Code: err.Code, Reason: err.Message, At: s.now(),
	}, n, agent.InitiatorPolicy)
	s.orderChildren(s.passHolds(agent.VerbPause, 0))
}

// nextHold numbers a hold of this session.
func (s *step) nextHold() int {
	s.Counters.Hold++
	return s.Counters.Hold
}

// addHold puts a hold on the run.
func (s *step) addHold(h agent.Hold, n int, by agent.Initiator) {
	h = bounded(h)
	s.Holds.add(h, n)
	s.openSuspension(by, string(h.Verb), h.Reason)
	s.changed = true
	s.recordIfBegun(agent.Event{Type: agent.EventHoldAdded, Hold: &h})
}

// removeHold takes away the hold of one side.
func (s *step) removeHold(side agent.HoldFrom) {
	h, ok := s.Holds.remove(side)
	if !ok {
		return
	}
	s.changed = true
	if s.idling() && !s.Holds.any() { // it was held over its being idle
		s.Suspensions.setInitiator(agent.InitiatorSelf, causeIdle, "")
	}
	s.recordIfBegun(agent.Event{Type: agent.EventHoldRemoved, Hold: &h})
}

// cancelInFlight begins to give up what is in flight: what comes back within the grace is kept, and
// givenUp ends the grace. Calls that wait are skipped at once, but not those that a person
// has approved or answered.
func (s *step) cancelInFlight(grace agent.Duration, why string) {
	if grace == 0 {
		grace = defaultGrace
	}
	flying := s.inFlight()
	for i, c := range s.Calls.List {
		if c.State == CallPending && !c.hasDecision() {
			s.skip(i, why+" before the call was begun")
		}
	}
	if !flying {
		return
	}
	s.End.startAbort(s.At.Add(time.Duration(grace)), why)
	s.do(CancelInFlight{Grace: grace})
}

// cancelForHistoryLimit gives up what keeps a run from a new execution whose history the server
// will soon end: so much was said to it in one turn. The turn is lost, not the run.
func (s *step) cancelForHistoryLimit() {
	s.cancelInFlight(0, reasonHistoryLimit)
}

const reasonHistoryLimit = "so much was said to the run that it had to begin a new history"

// graceOver is the end of a grace, or of a stop's time: nobody waits any more for what was in
// flight. A model call is dropped, a tool's outcome is unknown.
func (s *step) graceOver() {
	why := s.End.endAbort().Reason
	s.chargeEstimate()
	switch s.Turn.Phase {
	case TurnAsking:
		s.endTurn()
		s.Turn.end()
	case TurnSummarizing:
		s.takeSummary("", nil, true)
	case TurnWorking:
		for i, c := range s.Calls.List {
			if c.State == CallRunning {
				s.setResult(i, agent.CallUnknown, fmt.Sprintf(
					"Unknown outcome: %s while the call was in progress, and it did not come back in time. It may or may not have had its effect; look before you make it again.", why))
			}
		}
	}
}
