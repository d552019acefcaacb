package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A step of a flow can wait for an event or a time, as a parked run does. Several steps can
// wait at once, and an event ends each wait that it matches.

// stepEvent is the result of a step that waited, as package flow reads it.
type stepEvent struct {
	Topic    string          `json:"topic,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	By       string          `json:"by,omitempty"`
	TimedOut bool            `json:"timed_out,omitempty"`
	Message  string          `json:"message,omitempty"` // of a resume
}

// waitInStep lets a step wait for its conditions.
func (s *step) waitInStep(i int, p wire.ParkRequest) {
	switch size := conditionsJSONLen(p.Conditions); {
	case p.Err != nil:
		s.setResult(i, agent.CallRejected, p.Err.Message)
	case size > s.space():
		if s.leaveOut(i) {
			return
		}
		s.setResult(i, agent.CallRejected, "Not begun: what the flow would wait for is too long to be kept.")
	default:
		s.Calls.awaitEvent(i, &Park{Conditions: absolute(p.Conditions, s.now()), Size: size}, s.At)
		s.record(agent.Event{Type: agent.EventCallStarted, Call: s.callUpdate(s.Calls.List[i], "")})
		s.changed = true
	}
}

// waitReasons returns what steps wait for as reasons to wait.
func (c Calls) waitReasons() (all reasons) {
	for _, k := range c.List {
		if k.State == CallAwaitingEvent {
			all = append(all, k.Wait.reasons()...)
		}
	}
	return all
}

// waitDue returns when the next wait of a step ends by its time.
func (c Calls) waitDue() (at time.Time) {
	for _, k := range c.List {
		if k.State == CallAwaitingEvent {
			at = earlier(at, k.Wait.next())
		}
	}
	return at
}

// waitTopics returns the topics that steps wait for.
func (c Calls) waitTopics() (list []string) {
	for _, k := range c.List {
		if k.State != CallAwaitingEvent {
			continue
		}
		for _, topic := range k.Wait.topics() {
			if !slices.Contains(list, topic) {
				list = append(list, topic)
			}
		}
	}
	return list
}

// waiting returns the calls that wait for an event or a time.
func (c Calls) waiting() (ids []string) {
	for _, k := range c.List {
		if k.State == CallAwaitingEvent {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// endWait gives a step that waits its result.
func (s *step) endWait(call string, e stepEvent) {
	text, err := json.Marshal(e)
	if err != nil { // the payload was checked when the verb came
		text = []byte("{}")
	}
	text = rawjson.UnescapeHTML(text) // as long as it was counted when the verb came
	s.changed = true
	i := s.Calls.find(call)
	if w := s.Calls.List[i].Wait; w.Again {
		s.answerWait(i, agent.ToolAnswer{Name: w.Name, Digest: w.Digest, Data: text, By: e.By, Expired: e.TimedOut})
		return
	}
	s.setResultSized(i, agent.CallOK, string(text), len(e.Payload)+len(e.Message))
}

// answerWait makes a step that waited in the middle of its call pending again, with what came.
func (s *step) answerWait(i int, a agent.ToolAnswer) {
	if answerJSONLen(a) > s.space() || answersSize(s.Calls.List[i])+len(a.Data) > maxAnswers { // a resume's message; an event was refused before
		s.setResult(i, agent.CallFailed, "Not finished: what came is too long to be kept.")
		return
	}
	s.Calls.answer(i, a)
}

// answersSize returns how many bytes the answers have with which a call is made again.
func answersSize(c Call) (n int) {
	for _, a := range c.Answers {
		n += len(a.Text) + len(a.Data)
	}
	return n
}

// eventFits returns why an event can't end the waits of these steps; nil if it can.
func (s *step) eventFits(met []string, o agent.EmitCommand) error {
	size := 0
	for _, id := range met {
		c := s.Calls.List[s.Calls.find(id)]
		if size += eventJSONLen(o); !c.Wait.Again {
			continue
		}
		size += eventJSONLen(o) // within JSON, and with who has emitted it
		if answersSize(c)+verbFrame+len(o.Topic)+len(o.By)+len(o.Payload) > maxAnswers {
			return s.refuseAs(agent.CodeTooLarge, "payload", "what step %s has waited for and been answered would have more than %d bytes: emit a shorter payload", c.ProviderID, maxAnswers)
		}
	}
	if size > s.space() {
		return s.refuseAs(agent.CodeQueueFull, "", "too much waits for the run already; emit it again when less does")
	}
	return nil
}

// endDueWaits ends the waits whose time has come.
func (s *step) endDueWaits() {
	for _, id := range s.Calls.waiting() {
		if reached(s.Calls.List[s.Calls.find(id)].Wait.next(), s.At) {
			s.resumed = agent.Resumed{Cause: agent.InitiatorTimeout}
			s.endWait(id, stepEvent{TimedOut: true})
		}
	}
}

// dropWaits ends the waits of steps for a stop.
func (s *step) dropWaits() {
	for _, id := range s.Calls.waiting() {
		s.skip(s.Calls.find(id), reasonStopped+" before that came")
	}
}

// emitToSteps passes an event to every step that waits for it.
func (s *step) emitToSteps(o agent.EmitCommand, b *match.Budget, before int) error {
	var met []string
	for _, id := range s.Calls.waiting() {
		if s.Calls.List[s.Calls.find(id)].Wait.waitsFor(o, b) {
			met = append(met, id)
		}
	}
	topics := s.Calls.waitTopics()
	switch {
	// Not some of them: which ones would depend on their order.
	case b.Exceeded() && slices.Contains(topics, o.Topic):
		return s.refuseUncompared(before)
	case len(met) > 0:
		if err := s.eventFits(met, o); err != nil {
			return err
		}
		s.resumed = agent.Resumed{Cause: agent.InitiatorTriggered, Event: o.Topic, By: o.By}
		for _, id := range met {
			s.endWait(id, stepEvent{Topic: o.Topic, Payload: o.Payload, By: o.By})
		}
		return nil
	case slices.Contains(topics, o.Topic):
		return s.refuseAs(agent.CodeStale, "payload", "the run waits for an event of topic %s with another payload: this one does not match what its conditions ask for", o.Topic)
	case len(topics) > 0:
		return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s; it waits for %s", o.Topic, strings.Join(topics, ", "))
	}
	return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s, nor for any other", o.Topic)
}

// resumeSteps ends the waits that nothing but a resume ends. It reports whether there was one.
func (s *step) resumeSteps(o agent.ResumeCommand) (some bool) {
	for _, id := range s.Calls.waiting() {
		if len(s.Calls.List[s.Calls.find(id)].Wait.Conditions.List()) == 0 {
			s.endWait(id, stepEvent{Message: o.Message, By: o.By})
			some = true
		}
	}
	if some && s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: o.By}
	}
	if some && o.Message != "" {
		s.resumed.Mode = agent.ResumedMessage
	}
	return some
}
