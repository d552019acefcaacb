package loop

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Park is what a parked run waits for.
type Park struct {
	Conditions agent.Conditions `json:"conditions"`
	// Idle tells that a daemon has nothing to deal with: the conditions say what it
	// waits for, and it goes on for anything that comes.
	Idle bool `json:"idle,omitempty"`
	// Met is what came true first, kept while a hold keeps the run from going on.
	Met *Met `json:"met,omitempty"`
}

// Met is a condition that came true.
type Met struct {
	Topic   string          `json:"topic,omitempty"` // of an event; empty for a time
	Payload json.RawMessage `json:"payload,omitempty"`
	By      string          `json:"by,omitempty"`
	ID      string          `json:"id,omitempty"`
}

// order is the event as it was emitted, and message as the model is told of it.
func (m Met) order() agent.EmitOrder {
	return agent.EmitOrder{Order: agent.Order{ID: m.ID, By: m.By}, Topic: m.Topic, Payload: m.Payload}
}

func (m Met) message() agent.Message { return eventMessage(m.order()) }

func metBy(e agent.EmitOrder) Met {
	return Met{Topic: e.Topic, Payload: e.Payload, By: e.By, ID: e.ID}
}

// Parking is a call of await_resumption as the shell read it: conditions are
// checked where all conditions are.
type Parking struct {
	Reason     string
	Conditions agent.Conditions
	// Waiting is the place, from 1, of the first event in [State.Events] that meets the
	// conditions; zero where none does.
	Waiting int
	Err     *agent.Error
}

// park makes the run wait for conditions; a time from now becomes a time.
func (s *step) park(c agent.Conditions, by agent.Initiator, reason string) {
	if c.After > 0 {
		c.At, c.After = s.now().Add(time.Duration(c.After)), 0
	}
	list := make([]agent.Condition, len(c.Any))
	for i, one := range c.Any {
		if one.After > 0 {
			one.At, one.After = s.now().Add(time.Duration(one.After)), 0
		}
		list[i] = one
	}
	c.Any = list
	s.Park, s.changed = &Park{Conditions: c}, true
	s.wait(by, "park", reason)
}

// next is the earliest time that ends the park; zero where there is none.
func (p *Park) next() (at time.Time) {
	for _, c := range p.Conditions.List() {
		at = earlier(at, c.At)
	}
	return at
}

// met keeps the first condition that comes true.
func (s *step) met(m Met) {
	if s.Park.Met == nil {
		s.Park.Met, s.changed = &m, true
	}
}

// unpark goes on after the condition that came true, unless a hold is on the run.
func (s *step) unpark() {
	if s.Park == nil || s.held() || s.Stopping != nil {
		return
	}
	if s.Park.Idle {
		s.rouse()
		return
	}
	if s.Park.Met == nil {
		return
	}
	m, c := s.Park.Met, s.Park.Conditions
	s.Park = nil
	if m.Topic != "" {
		s.resumed = agent.Resumed{Cause: agent.ByTriggered, Event: m.Topic, By: m.By}
		s.goOnWith(fmt.Sprintf("The event %s came.", m.Topic), "")
		s.steer(m.message())
		return
	}
	s.resumed = agent.Resumed{Cause: agent.ByTimeout}
	switch c.OnTimeout {
	case agent.TimeoutFails:
		s.fail(agent.Errorf(agent.LimitTime, "the time until which the run waited has come, and its conditions say to fail then"))
	case agent.TimeoutCancels:
		s.end(agent.Cancelled, agent.ReasonTimedOut, func(o *agent.Outcome) { o.Text = s.Text })
	case agent.ResumeWithInput:
		s.goOnWith("The time until which you waited has come.", c.Input)
	default:
		s.fresh()
		s.goOnWith("The time until which you waited has come.", "")
	}
}

// unparked forgets the park of a run that ends. An event that has met it while a
// hold kept the run is told like a message that waits.
func (s *step) unparked() {
	if s.Park != nil && s.Park.Met != nil && s.Park.Met.Topic != "" {
		s.steer(s.Park.Met.message())
	}
	s.Park = nil
}

// fresh lets the run go on from a summary of what was said.
func (s *step) fresh() {
	if s.Turn > 0 && s.Fresh == "" {
		s.Fresh = agent.CompactedForResume
	}
}

// goOnWith writes the note that the model gets once, behind everything else
// (catalogue HL-34), and what it is told beside.
func (s *step) goOnWith(cause, input string) {
	if w := s.Wait; w != nil && w.Resting {
		s.Note = fmt.Sprintf("You were suspended at turn %d", w.Turn)
		if w.Reason != "" {
			s.Note += " for the reason " + quote(w.Reason)
		}
		s.Note += fmt.Sprintf(" and go on at %s. %s", s.now().Format(time.RFC3339), cause)
	}
	if input != "" {
		s.steer(agent.TextMessage(agent.RoleUser, input))
	}
}

// Letter is a message that the model has not got yet.
type Letter struct {
	Message agent.Message  `json:"message"`
	Mode    agent.SendMode `json:"mode"`
}

// deliver says what was sent: what steers at every turn, what is queued when the
// run would be done. It returns whether there was any.
func (s *step) deliver(done bool) bool {
	var kept []Letter
	said := false
	for _, l := range s.Letters {
		if l.Mode == agent.SendQueue && !done {
			kept = append(kept, l)
			continue
		}
		s.say(l.Message)
		said = true
	}
	s.Letters = kept
	s.Due = s.Due || said && s.daemon() != nil
	return said
}
