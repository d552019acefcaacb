package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Giving is what is in flight being given up, by an interrupt or a stop.
type Giving struct {
	// Until is when what has not come back counts as lost.
	Until time.Time `json:"until"`
	// Why is told to the model of calls that were not begun.
	Why string `json:"why"`
}

// defaultGrace is how long tools may take to give a partial result.
const defaultGrace = agent.Duration(5 * time.Second)

func (s *step) held() bool { return len(s.Holds) > 0 }

// ownHold is the hold that was said to this session.
func (s *step) ownHold() *agent.Hold { return s.hold(agent.HoldOwn) }

func (s *step) hold(from agent.HoldFrom) *agent.Hold {
	for i := range s.Holds {
		if s.Holds[i].From == from {
			return &s.Holds[i]
		}
	}
	return nil
}

// holdAs is pause or interrupt, said to this session or by its parent's model.
func (s *step) holdAs(by agent.Initiator, verb agent.Verb, o agent.Order, reason string, grace agent.Duration) error {
	if s.Stopping != nil {
		return s.already()
	}
	if h := s.ownHold(); h != nil && h.Verb.Strength() >= verb.Strength() {
		return s.already()
	}
	s.Numbers.Hold++
	n := s.Numbers.Hold
	s.lay(agent.Hold{
		ID: agent.HoldID(n), From: agent.HoldOwn, Session: s.Session, Verb: verb, By: o.By, Reason: reason, At: s.now(),
	}, n, by)
	s.tellChildren(s.pass(verb, grace))
	if verb == agent.Interrupt {
		s.do(Broadcast{Session: s.Session, N: n, Verb: verb, Grace: grace})
		s.giveUp(grace, "the run was interrupted")
		if s.Giving != nil && s.liveChildren() {
			s.do(Gather{})
		}
	}
	return nil
}

// lay puts a hold on the run, in the place of a weaker one from the same side.
func (s *step) lay(h agent.Hold, n int, by agent.Initiator) {
	s.Holds = slices.DeleteFunc(s.Holds, func(old agent.Hold) bool { return old.From == h.From })
	s.Holds = append(s.Holds, h)
	s.hear(agent.Heard{Session: h.Session, N: n})
	s.wait(by, string(h.Verb), h.Reason)
	s.changed = true
	s.tell(agent.Event{Type: agent.HoldLaid, Hold: &h})
}

// lift takes the hold from one side.
func (s *step) lift(from agent.HoldFrom) {
	i := slices.IndexFunc(s.Holds, func(h agent.Hold) bool { return h.From == from })
	if i < 0 {
		return
	}
	h := s.Holds[i]
	s.Holds = slices.Delete(s.Holds, i, i+1)
	s.changed = true
	if w := s.Wait; w != nil && s.idling() && !s.held() { // which it was held over
		w.By, w.Cause, w.Reason = agent.BySelf, causeIdle, ""
	}
	s.tell(agent.Event{Type: agent.HoldLifted, Hold: &h})
}

// hear remembers the newest hold of a session.
func (s *step) hear(h agent.Heard) {
	h.Verb = ""
	i := slices.IndexFunc(s.Heard, func(old agent.Heard) bool { return old.Session == h.Session })
	if i < 0 {
		s.Heard = append(s.Heard, h)
		return
	}
	s.Heard[i].N = max(s.Heard[i].N, h.N)
}

func (s *step) hasHeard(h agent.Heard) bool { return knows(s.Heard, h) }

// above tells whether a session is one that this run was born under.
func (s *step) above(session string) bool { return strings.HasPrefix(s.Session, session+"/") }

// news tells whether a hold that a step met is one of a run above that this run
// has not heard of yet.
func (s *step) news(h agent.Heard) bool { return !s.hasHeard(h) && s.above(h.Session) }

// justified tells whether a step was right to stop for a hold: it is news, or the
// run is held or ending.
func (s *step) justified(h agent.Heard) bool {
	return s.news(h) || s.held() || s.Stopping != nil || s.Giving != nil
}

// outdated takes a hold that stopped a step for nothing: it was of a run before
// this one. Now that it was heard of, it stops no other step, and its number is
// not used again.
func (s *step) outdated(h agent.Heard) {
	s.hear(h)
	if h.Session == s.Session {
		s.Numbers.Hold = max(s.Numbers.Hold, h.N)
	}
}

// heed takes a hold, or an end, of a run above that a step met before this run
// heard of it.
func (s *step) heed(h *agent.Heard) {
	if h == nil || !s.news(*h) || s.over() {
		return
	}
	s.hear(*h)
	s.resumed = agent.Resumed{Cause: agent.ByParent}
	switch {
	case h.Verb == agent.Cancel:
		s.end(agent.Cancelled, reasonParent, func(o *agent.Outcome) { o.Text = s.Text })
	case s.Stopping == nil:
		s.Early = &agent.Heard{Session: h.Session, N: h.N}
		s.lay(agent.Hold{
			ID: agent.HoldID(h.N), From: agent.HoldInherited, Session: h.Session, Verb: agent.Interrupt, At: s.now(),
		}, h.N, agent.ByParent)
		s.tellChildren(s.pass(agent.Interrupt, 0))
		s.giveUp(0, "the run was interrupted")
	}
}

// giveUp gives up what is in flight and what was not begun; what comes back
// within the grace is kept.
func (s *step) giveUp(grace agent.Duration, why string) {
	if grace == 0 {
		grace = defaultGrace
	}
	flying := s.Phase == Asking || s.Phase == Summing || s.active() > 0
	for i, c := range s.Calls {
		if c.State == Waiting && !c.Approved { // an approval is kept
			s.skip(i, why+" before the call was begun")
		}
	}
	if !flying {
		return
	}
	s.Giving = &Giving{Until: s.At.Add(time.Duration(grace)), Why: why}
	s.do(Abandon{Grace: grace})
}

// giveUpForRoom gives up what keeps a run from a new execution whose history the
// server will soon end: so much was said to it in one turn. The turn is lost, not the run.
func (s *step) giveUpForRoom() {
	if s.Phase == Asking || s.Phase == Summing || s.Phase == Working && s.active() > 0 {
		s.giveUp(0, "so much was said to the run that it had to begin a new history")
	}
}

// givenUp ends the wait for what was in flight: a model call is dropped, a tool's
// outcome is unknown.
func (s *step) givenUp() {
	why := s.Giving.Why
	s.Giving = nil
	switch s.Phase {
	case Asking:
		s.endTurn()
		s.Phase = Resting
	case Summing:
		s.summed("", nil, true)
	case Working:
		for i := range s.Calls {
			if c := s.Calls[i]; c.State == Active {
				s.settle(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallUnknown, Text: fmt.Sprintf(
					"Unknown outcome: %s while the call was in progress, and it did not come back in time. It may or may not have had its effect; look before you make it again.", why)})
			}
		}
	}
}

// skip answers a call that is not begun any more.
func (s *step) skip(i int, why string) {
	c := s.Calls[i]
	s.settle(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallSkipped, Text: "Not executed: " + why + "."})
}
