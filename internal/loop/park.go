package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
)

// Park is the part that keeps what a parked run waits for, also a daemon that is idle.
type Park struct {
	Conditions agent.Conditions `json:"conditions"`
	// Idle means that a daemon has nothing to deal with: the conditions say what it waits
	// for, and it goes on for anything that comes.
	Idle bool `json:"idle,omitempty"`
	Size int  `json:"size,omitempty"` // of the conditions
	// Met is what came true first, kept while a hold keeps the run from going on.
	Met *MetCondition `json:"met,omitempty"`
}

// MetCondition is a condition that came true.
type MetCondition struct {
	Topic   string          `json:"topic,omitempty"` // of an event; empty for a time
	Payload json.RawMessage `json:"payload,omitempty"`
	By      string          `json:"by,omitempty"`
	ID      string          `json:"id,omitempty"`
}

// order is the event as it was emitted, and message as the model is told of it.
func (m MetCondition) order() agent.EmitCommand {
	return agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: m.ID, By: m.By}, Topic: m.Topic, Payload: m.Payload}
}

func (m MetCondition) message() agent.Message { return eventMessage(m.order()) }

func conditionMetBy(e agent.EmitCommand) MetCondition {
	return MetCondition{Topic: e.Topic, Payload: e.Payload, By: e.By, ID: e.ID}
}

const tooLongToWait = "Not parked: what the run would wait for is too long to be kept."

func conditionsJSONLen(c agent.Conditions) int {
	n := messageFrame + jsonLen(c.Input)
	for _, one := range c.List() {
		if n += verbFrame; one.Event != nil {
			n += jsonLen(one.Event.Topic) + rawJSONLen(one.Event.Match)
		}
	}
	return n
}

// size is the length in JSON of what the run waits for, and of what has come.
func (p *Park) size() int {
	if p == nil {
		return 0
	}
	if e := p.event(); e != nil {
		return p.Size + eventJSONLen(e.order())
	}
	return p.Size
}

// recount counts anew how long what the run waits for is.
func (p *Park) recount() {
	if p != nil {
		p.Size = conditionsJSONLen(p.Conditions)
	}
}

// next is the earliest time that ends the park; zero if there is none.
func (p *Park) next() (at time.Time) {
	for _, c := range p.Conditions.List() {
		at = earlier(at, c.At)
	}
	return at
}

// due is when the time comes that the run waits for.
func (p *Park) due() time.Time {
	if p == nil || p.Met != nil {
		return time.Time{}
	}
	return p.next()
}

// waitsFor reports whether an event ends the park of a run that is not idle, as far as the
// budget lets it be found out. It does not if the budget ends before.
func (p *Park) waitsFor(e agent.EmitCommand, b *match.Budget) bool {
	return p != nil && !p.Idle && p.Met == nil && p.meets(e, b)
}

// topics are those of the events that would end the park of a run that is not idle.
func (p *Park) topics() (list []string) {
	if p == nil || p.Idle {
		return nil
	}
	for _, one := range p.Conditions.List() {
		if one.Event != nil && !slices.Contains(list, one.Event.Topic) {
			list = append(list, one.Event.Topic)
		}
	}
	return list
}

// meets reports whether an event is one of those that the conditions wait for. Its payload is
// read once for all of them.
func (p *Park) meets(e agent.EmitCommand, b *match.Budget) bool {
	var payload match.Value
	wasRead := false
	for _, one := range p.Conditions.List() {
		if one.Event == nil || one.Event.Topic != e.Topic {
			continue
		}
		if !wasRead {
			var err error
			if payload, err = match.ReadValue(e.Payload, b); err != nil {
				return false
			}
			wasRead = true
		}
		if fits, err := b.Schema(one.Event.Match).Fits(payload, b); err != nil || fits {
			return err == nil
		}
	}
	return false
}

// event is the event that has met the park; nil if none has.
func (p *Park) event() *MetCondition {
	if p == nil || p.Met == nil || p.Met.Topic == "" {
		return nil
	}
	return p.Met
}

// reasons is what the run waits for.
func (p *Park) reasons() reasons {
	if p == nil {
		return nil
	}
	why := reason{kind: agent.SuspensionParked, owner: agent.OwnerRuntime, expires: p.next()}
	list := p.Conditions.List()
	if len(list) == 0 {
		why.owner = agent.OwnerOperator
	}
	for _, c := range list {
		if c.Event != nil {
			why.finds = append(why.finds, topicValue(c.Event.Topic))
		} else {
			why.finds = append(why.finds, "time")
		}
	}
	return reasons{why}
}

// absolute makes a time from now on a time.
func absolute(c agent.Conditions, now time.Time) agent.Conditions {
	if c.After > 0 {
		c.At, c.After = now.Add(time.Duration(c.After)), 0
	}
	list := make([]agent.Condition, len(c.Any))
	for i, one := range c.Any {
		if one.After > 0 {
			one.At, one.After = now.Add(time.Duration(one.After)), 0
		}
		list[i] = one
	}
	c.Any = list
	return c
}

// park makes the run wait for conditions.
func (s *step) park(c agent.Conditions, by agent.Initiator, reason string) {
	s.Park, s.changed = &Park{Conditions: absolute(c, s.now()), Size: conditionsJSONLen(c)}, true
	s.openSuspension(by, "park", reason)
}

// goIdle parks a daemon until something comes; wakeIdle looks whether it has already.
func (s *step) goIdle() {
	var c agent.Conditions
	if every := s.daemon().Every; every > 0 {
		c.Any = append(c.Any, agent.Condition{At: s.now().Add(time.Duration(every))})
	}
	for _, topic := range s.topics() {
		c.Any = append(c.Any, agent.Condition{Event: &agent.EventCondition{Topic: topic}})
	}
	s.Park, s.changed = &Park{Conditions: c, Idle: true, Size: conditionsJSONLen(c)}, true
	s.Suspensions.setInitiator(agent.InitiatorSelf, causeIdle, "") // it is held: that stands in Held
}

// endPark ends the park.
func (s *step) endPark() { s.Park = nil }

// conditionMet keeps the condition that came true. A park that has one waits for nothing more.
func (s *step) conditionMet(m MetCondition) { s.Park.Met, s.changed = &m, true }

// mayUnpark reports whether something has come that ends the park, and no hold is on the run.
func (s *step) mayUnpark() bool {
	switch {
	case s.Park == nil || s.Holds.any() || s.End.Stopping != nil:
		return false
	case s.Park.Idle:
		return s.hasWork()
	}
	return s.Park.Met != nil
}

// unpark goes on after what has come.
func (s *step) unpark() {
	if s.Park.Idle {
		s.wakeIdle()
		return
	}
	m, c := s.Park.Met, s.Park.Conditions
	s.endPark()
	if m.Topic != "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorTriggered, Event: m.Topic, By: m.By}
		s.resumeWith(fmt.Sprintf("The event %s came.", m.Topic), "")
		s.steerEvent(m.order())
		return
	}
	s.resumed = agent.Resumed{Cause: agent.InitiatorTimeout}
	const timeCame = "The time until which you waited has come."
	switch c.OnTimeout {
	case agent.OnTimeoutFail:
		s.fail(agent.Errorf(agent.CodeLimitTime, "the time until which the run waited has come, and its conditions say to fail then"))
	case agent.OnTimeoutCancel:
		s.end(agent.StatusCancelled, agent.ReasonTimedOut, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	case agent.OnTimeoutResumeWithInput:
		s.resumeWith(timeCame, c.Input)
	default:
		s.startFromSummary()
		s.resumeWith(timeCame, "")
	}
}

// dropPark forgets the park of a run that ends. An event that has met it while a hold kept
// the run is told like a message that waits.
func (s *step) dropPark() {
	if e := s.Park.event(); e != nil {
		s.steerEvent(e.order())
	}
	s.endPark()
}

// resumeWith writes the note that the model gets once, behind everything else, and what it
// is told beside.
func (s *step) resumeWith(cause, input string) {
	if s.Suspensions.atRest() {
		w := s.Suspensions.Open
		note := fmt.Sprintf("You were suspended at turn %d", w.Turn)
		if w.Reason != "" {
			note += " for the reason " + quote(w.Reason)
		}
		s.Turn.setNote(note + fmt.Sprintf(" and go on at %s. %s", s.now().Format(time.RFC3339), cause))
	}
	if input != "" {
		s.steer(agent.TextMessage(agent.RoleUser, input))
	}
}
