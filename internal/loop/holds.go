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
	// Heard are the last holds that were heard of, lifted or not, by the session that was
	// held. Steps carry them, so that no old hold stops a new step.
	Heard []agent.Heard `json:"heard,omitempty"`
	// Early is a hold of an ancestor that a step met, and that the run was not told of yet.
	Early *agent.Heard `json:"early,omitempty"`
}

// defaultGrace is how long tools may take to give a partial result.
const defaultGrace = agent.Duration(5 * time.Second)

func (h Holds) clone() Holds {
	h.List, h.Heard = slices.Clone(h.List), slices.Clone(h.Heard)
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
	return slices.ContainsFunc(h.List, func(one agent.Hold) bool { return resting || one.Verb == agent.Interrupt })
}

// down are the holds as the sub-agents have them.
func (h Holds) down() (held []agent.Hold) {
	for _, one := range h.List {
		one.From = agent.HoldInherited
		held = append(held, one)
	}
	return held
}

// bounded is a hold of which what somebody wrote is cut to a bound.
func bounded(one agent.Hold) agent.Hold {
	one.ID, one.Session = fit(one.ID, maxName), fit(one.Session, maxName)
	one.From, one.Verb = fit(one.From, postFrame), fit(one.Verb, postFrame)
	one.By, one.Reason = fit(one.By, maxBy), fit(one.Reason, maxReason)
	return one
}

// add puts a hold on the run. It replaces the hold from the same side.
func (h *Holds) add(one agent.Hold, n int) {
	h.List = slices.DeleteFunc(h.List, func(old agent.Hold) bool { return old.From == one.From })
	h.List = append(h.List, one)
	h.hear(agent.Heard{Session: one.Session, N: n})
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

// hear remembers the newest hold of a session.
func (h *Holds) hear(one agent.Heard) {
	one.Verb = ""
	i := slices.IndexFunc(h.Heard, func(old agent.Heard) bool { return old.Session == one.Session })
	if i < 0 {
		h.Heard = append(h.Heard, one)
		return
	}
	h.Heard[i].N = max(h.Heard[i].N, one.N)
}

// last is the number of the last hold of a session that was heard of.
func (h Holds) last(session string) int {
	for _, one := range h.Heard {
		if one.Session == session {
			return one.N
		}
	}
	return 0
}

func (h Holds) knows(one agent.Heard) bool { return knows(h.Heard, one) }

// met remembers a hold that a step met first, until the run is told of it.
func (h *Holds) met(one agent.Heard) { h.Early = &agent.Heard{Session: one.Session, N: one.N} }

// told forgets a hold that a step met, if what the run is told knows it.
func (h *Holds) told(heard []agent.Heard) {
	if h.Early != nil && knows(heard, *h.Early) {
		h.Early = nil
	}
}

// born takes the hold that the run is born under; nil of none.
func (h *Holds) born(under *agent.Hold) {
	if under != nil {
		h.List = []agent.Hold{bounded(*under)}
	}
}

// reasons are the holds as what the run waits for. by is who brought the suspension about.
func (h Holds) reasons(by agent.Initiator) (all reasons) {
	if h.inherited() != nil {
		all = append(all, reason{kind: agent.Paused, owner: agent.OwnedByParent, finds: []string{"held"}})
	}
	if h.own() == nil {
		return all
	}
	owner := agent.OwnedByOperator
	if by == agent.ByParent {
		owner = agent.OwnedByParent
	}
	own := reason{kind: agent.Paused, owner: owner, finds: []string{"held"}}
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

func heardOf(h agent.Hold) agent.Heard { return agent.Heard{Session: h.Session, N: holdNumber(h)} }

// knows reports whether a hold, or a later one of its session, is among those heard of.
func knows(heard []agent.Heard, h agent.Heard) bool {
	return slices.ContainsFunc(heard, func(k agent.Heard) bool { return k.Session == h.Session && k.N >= h.N })
}

// holdAs is pause or interrupt, said to this session or by its parent's model.
func (s *step) holdAs(by agent.Initiator, verb agent.Verb, o agent.Order, reason string, grace agent.Duration) error {
	if s.End.Stopping != nil {
		return s.already()
	}
	if h := s.Holds.own(); h != nil && h.Verb.Strength() >= verb.Strength() {
		return s.already()
	}
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: agent.HoldID(n), From: agent.HoldOwn, Session: s.Session, Verb: verb, By: o.By, Reason: reason, At: s.now(),
	}, n, by)
	s.tellChildren(s.pass(verb, grace))
	if verb == agent.Interrupt {
		s.do(Broadcast{Session: s.Session, N: n, Verb: verb, Grace: grace})
		s.giveUp(grace, "the run was interrupted")
		if s.End.Aborting != nil && s.Children.working() {
			s.do(Gather{})
		}
	}
	return nil
}

// holdLost holds the run since its model call may be what ends its workers. It goes on at
// resume, and makes the call again.
func (s *step) holdLost(err *agent.Error) {
	if s.Holds.own() != nil { // whoever said so lets it go on
		s.Rest.blame(agent.ByPolicy, string(err.Code), err.Message)
		return
	}
	s.openSuspension(agent.ByPolicy, string(err.Code), err.Message)
	n := s.nextHold()
	s.addHold(agent.Hold{
		ID: agent.HoldID(n), From: agent.HoldOwn, Session: s.Session, Verb: agent.Pause, Code: err.Code, Reason: err.Message, At: s.now(),
	}, n, agent.ByPolicy)
	s.tellChildren(s.pass(agent.Pause, 0))
}

// nextHold numbers a hold of this session.
func (s *step) nextHold() int {
	s.Numbers.Hold++
	return s.Numbers.Hold
}

// addHold puts a hold on the run.
func (s *step) addHold(h agent.Hold, n int, by agent.Initiator) {
	h = bounded(h)
	s.Holds.add(h, n)
	s.openSuspension(by, string(h.Verb), h.Reason)
	s.changed = true
	s.tell(agent.Event{Type: agent.HoldLaid, Hold: &h})
}

// removeHold takes away the hold of one side.
func (s *step) removeHold(side agent.HoldFrom) {
	h, ok := s.Holds.remove(side)
	if !ok {
		return
	}
	s.changed = true
	if s.idling() && !s.Holds.any() { // it was held over its being idle
		s.Rest.blame(agent.BySelf, causeIdle, "")
	}
	s.tell(agent.Event{Type: agent.HoldLifted, Hold: &h})
}

// giveUp begins to give up what is in flight: what comes back within the grace is kept, and
// givenUp ends the grace. Calls that wait are skipped at once, but not those that a person
// has approved or answered.
func (s *step) giveUp(grace agent.Duration, why string) {
	if grace == 0 {
		grace = defaultGrace
	}
	flying := s.inFlight()
	for i, c := range s.Calls.List {
		if c.State == Waiting && !c.decided() {
			s.skip(i, why+" before the call was begun")
		}
	}
	if !flying {
		return
	}
	s.End.aborts(s.At.Add(time.Duration(grace)), why)
	s.do(Abandon{Grace: grace})
}

// giveUpForRoom gives up what keeps a run from a new execution whose history the server
// will soon end: so much was said to it in one turn. The turn is lost, not the run.
func (s *step) giveUpForRoom() {
	s.giveUp(0, whyNoRoom)
}

const whyNoRoom = "so much was said to the run that it had to begin a new history"

// givenUp is the end of a grace, or of a stop's time: nobody waits any more for what was in
// flight. A model call is dropped, a tool's outcome is unknown.
func (s *step) givenUp() {
	why := s.End.endAbort().Why
	s.chargeBlind()
	switch s.Turn.Phase {
	case Asking:
		s.endTurn()
		s.Turn.end()
	case Summing:
		s.takeSummary("", nil, true)
	case Working:
		for i, c := range s.Calls.List {
			if c.State == Active {
				s.settle(i, agent.CallUnknown, fmt.Sprintf(
					"Unknown outcome: %s while the call was in progress, and it did not come back in time. It may or may not have had its effect; look before you make it again.", why))
			}
		}
	}
}
