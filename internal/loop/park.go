package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
)

// Park is the part that keeps what a parked run, or an idle daemon, waits for.
type Park struct {
	Conditions agent.Conditions `json:"conditions"`
	// Idle means that a daemon has no work. The conditions say what it waits for, but
	// anything that comes wakes it.
	Idle bool `json:"idle,omitempty"`
	Size int  `json:"size,omitempty"` // of the conditions
	// Cut means that the time in the conditions is the run's bound, and not one that its model named.
	Cut bool `json:"cut,omitempty"`
	// Again means that a flow's step waits in the middle of its call. It is called again with what
	// came, under the Name and the Digest of its question.
	Again  bool   `json:"again,omitempty"`
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Met is the first condition that came true. It is kept while a hold keeps the run from
	// continuing.
	Met *MetCondition `json:"met,omitempty"`
}

// MetCondition is a condition that came true.
type MetCondition struct {
	Topic   string          `json:"topic,omitempty"` // of an event; empty for a time
	Payload json.RawMessage `json:"payload,omitempty"`
	By      string          `json:"by,omitempty"`
	ID      string          `json:"id,omitempty"`
}

// order returns the event as it was emitted. message returns it as the model sees it.
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

// size returns how long the conditions and the event that came are in JSON at most.
func (p *Park) size() int {
	if p == nil {
		return 0
	}
	if e := p.event(); e != nil {
		return p.Size + eventJSONLen(e.order())
	}
	return p.Size
}

// recount computes the size again, after an import.
func (p *Park) recount() {
	if p != nil {
		p.Size = conditionsJSONLen(p.Conditions) + jsonLen(p.Name)
	}
}

// next returns the earliest time that ends the park; zero if there is none.
func (p *Park) next() (at time.Time) {
	for _, c := range p.Conditions.List() {
		at = earlier(at, c.At)
	}
	return at
}

// due returns when the time of the park comes; zero if it has none, or a condition was met.
func (p *Park) due() time.Time {
	if p == nil || p.Met != nil {
		return time.Time{}
	}
	return p.next()
}

// waitsFor reports whether an event ends the park of a run that is not idle. If the budget
// runs out, the event does not count as a match.
func (p *Park) waitsFor(e agent.EmitCommand, b *match.Budget) bool {
	return p != nil && !p.Idle && p.Met == nil && p.meets(e, b)
}

// topics returns the topics of the events that would end the park of a run that is not idle.
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

// meets reports whether an event meets one of the conditions.
func (p *Park) meets(e agent.EmitCommand, b *match.Budget) bool {
	var payload match.Value
	wasRead := false
	for _, one := range p.Conditions.List() {
		if one.Event == nil || one.Event.Topic != e.Topic {
			continue
		}
		// Reading uses the budget too, so the payload is read once for all conditions.
		if !wasRead {
			var err error
			if payload, err = match.ReadValue(e.Payload, b); err != nil {
				return false
			}
			wasRead = true
		}
		// An error means that the budget ran out. The event counts as no match then.
		if fits, err := b.Schema(one.Event.Match).Fits(payload, b); err != nil || fits {
			return err == nil
		}
	}
	return false
}

// event returns the event that met the park; nil if none did.
func (p *Park) event() *MetCondition {
	if p == nil || p.Met == nil || p.Met.Topic == "" {
		return nil
	}
	return p.Met
}

// reasons returns what the run waits for.
func (p *Park) reasons() reasons {
	if p == nil {
		return nil
	}
	why := reason{kind: agent.SuspensionParked, owner: agent.OwnerRuntime, expires: p.next()}
	list := p.Conditions.List()
	if len(list) == 0 {
		why.owner = agent.OwnerOperator // only a resume ends it
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

// absolute turns durations into times, counted from now. So a new execution does not begin
// them again.
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

// park parks the run until one of the conditions is met.
func (s *step) park(c agent.Conditions, by agent.Initiator, reason string) {
	s.Park, s.changed = &Park{Conditions: absolute(c, s.now()), Size: conditionsJSONLen(c)}, true
	s.openSuspension(by, "park", reason)
}

// longestCheckPark is how long after its start an agent that a check asks, or one below it, may be parked.
// Such a check has no timeout, and what it looks at may come from anywhere: it must not be able to talk an
// agent into a park without an end.
const longestCheckPark = 24 * time.Hour

// parkUntil returns until when a child that a call starts may be parked: no longer than the run itself.
func (s *step) parkUntil(c Call) time.Time {
	until := s.Parent.parkUntil()
	if s.Checks.has(c.ID) && until.IsZero() {
		return s.now().Add(longestCheckPark)
	}
	return until
}

func (p Parent) parkUntil() time.Time {
	if p.Start == nil {
		return time.Time{}
	}
	return p.Start.ParkUntil
}

// bounded returns the conditions of a park that ends by a time, and whether that time ends it first. A zero
// time is no bound. What the conditions say about their own time is not for the bound.
func (s *step) bounded(c agent.Conditions, until time.Time) (_ agent.Conditions, cut bool) {
	list := absolute(agent.Conditions{Any: c.List()}, s.now()).Any
	timed := func(one agent.Condition) bool { return !one.At.IsZero() && !one.At.After(until) }
	if until.IsZero() || slices.ContainsFunc(list, timed) {
		return c, false
	}
	list = slices.DeleteFunc(list, func(one agent.Condition) bool { return one.Event == nil }) // a later time
	return agent.Conditions{Any: append(list, agent.Condition{At: until})}, true
}

// goIdle parks a daemon until something comes.
func (s *step) goIdle() {
	var c agent.Conditions
	if every := s.daemon().Every; every > 0 {
		c.Any = append(c.Any, agent.Condition{At: s.now().Add(time.Duration(every))})
	}
	for _, topic := range s.topics() {
		c.Any = append(c.Any, agent.Condition{Event: &agent.EventCondition{Topic: topic}})
	}
	s.Park, s.changed = &Park{Conditions: c, Idle: true, Size: conditionsJSONLen(c)}, true
	s.watchFiles()
	s.Suspensions.setInitiator(agent.InitiatorSelf, causeIdle, "") // if it is held, Suspension.Holds says so
}

// cut says whether the run's bound ends the park.
func (p *Park) cut(cut bool) { p.Cut = cut }

// endPark ends the park.
func (s *step) endPark() { s.Park = nil }

// conditionMet keeps the first condition that came true. The park takes no other.
func (s *step) conditionMet(m MetCondition) { s.Park.Met, s.changed = &m, true }

// mayUnpark reports whether the park can end: something has come, and no hold is on the run.
func (s *step) mayUnpark() bool {
	switch {
	case s.Park == nil || s.Holds.any() || s.End.Stopping != nil:
		return false
	case s.Park.Idle:
		return s.hasWork()
	}
	return s.Park.Met != nil
}

// unpark ends the park, as what has come asks for.
func (s *step) unpark() {
	if s.Park.Idle {
		s.wakeIdle()
		return
	}
	m, c, cut := s.Park.Met, s.Park.Conditions, s.Park.Cut
	s.endPark()
	if m.Topic != "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorTriggered, Event: m.Topic, By: m.By}
		s.resumeWith(fmt.Sprintf("The event %s came.", m.Topic), string(m.Payload))
		s.steerEvent(m.order())
		return
	}
	s.resumed = agent.Resumed{Cause: agent.InitiatorTimeout}
	timeCame := "The time until which you waited has come."
	if cut {
		timeCame = "What you waited for has not come. You work for a check, and can wait no longer."
	}
	switch c.OnTimeout {
	case agent.OnTimeoutFail:
		s.fail(agent.Errorf(agent.CodeLimitTime, "the time until which the run waited has come, and its conditions say to fail then"))
	case agent.OnTimeoutCancel:
		s.end(agent.StatusCancelled, agent.ReasonTimedOut, func(o *agent.Outcome) { o.Text = s.Turn.Text })
	case agent.OnTimeoutResumeWithInput:
		s.resumeWith(timeCame, c.Input)
		s.steer(s.parkInput(c.Input))
	default:
		s.summarizeFirst()
		s.resumeWith(timeCame, "")
	}
}

// dropPark ends the park of a run that ends.
func (s *step) dropPark() {
	// The event came while a hold kept the run. It becomes a message, or it would be lost.
	if e := s.Park.event(); e != nil {
		s.steerEvent(e.order())
	}
	s.endPark()
}

// parkInput returns the message with which a park's conditions say to continue. What the model itself
// wrote is marked, or a check would take it for a person's words. Only a start parks before the first
// turn.
func (s *step) parkInput(text string) agent.Message {
	m := agent.TextMessage(agent.RoleUser, text)
	if s.ownTurns() > 0 {
		m.Note = agent.NoteTimeout
	}
	return m
}
