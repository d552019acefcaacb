package loop

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// emit accepts an event: one that a park waits for, or one for a daemon.
func (s *step) emit(o agent.EmitCommand, in CommandReceived) error {
	// Compared before any other check: an event that is refused uses the task's budget too.
	// Else a flood of events that do not match would cost nothing (decision 0036).
	b := s.matchBudget()
	before := b.Spent()
	if s.isFlow() && s.Park == nil {
		return s.emitToSteps(o, b, before)
	}
	parked := s.Park.waitsFor(o, b)
	if s.daemon() != nil {
		if again, err := s.isRepeat(in.ID, remembered.EventDigest(o)); again {
			return err
		}
	}
	switch {
	case parked && eventJSONLen(o) > s.space():
		return s.refuseAs(agent.CodeQueueFull, "", "too much waits for the run already; emit it again when less does")
	// A daemon's event is part of its backlog until the park ends, so the head has to learn
	// of it.
	case parked && s.daemon() != nil:
		s.rememberReceipt(in.ID, remembered.EventDigest(o))
		o.ID = in.ID
		s.conditionMet(conditionMetBy(o))
		s.Log.setHeadBehind(true)
		return nil
	case parked:
		s.conditionMet(MetCondition{Topic: o.Topic, Payload: o.Payload, By: o.By})
		return nil
	case s.hearsTopic(o.Topic):
		return s.queue(o, in.ID)
	// The budget ran out before the comparison, so nobody knows whether the event matches.
	case b.Exceeded() && s.Park != nil && s.Park.Met == nil && slices.Contains(s.Park.topics(), o.Topic):
		return s.refuseUncompared(before)
	}
	return s.refuseUnawaited(o)
}

// refuseUncompared refuses an event that was not compared for want of budget. If it had the
// whole budget, it will never fit. Else another task has a new budget.
func (s *step) refuseUncompared(before int) error {
	if before == 0 {
		return s.refuseAs(agent.CodeStale, "payload", "the payload has too many parts to be compared with what the run waits for; emit a shorter one")
	}
	err := s.refuseAs(agent.CodeQueueFull, "", "more came at once than is compared with what the run waits for; emit it again")
	err.Retryable = true
	return err
}

// refuseUnawaited refuses an event that the run does not take. It says whether the topic or
// the payload is the reason.
func (s *step) refuseUnawaited(o agent.EmitCommand) error {
	topics := slices.Concat(s.Park.topics(), s.topics())
	switch known := slices.Contains(topics, o.Topic); {
	case known && s.Park.Met != nil:
		return s.refuseAs(agent.CodeStale, "topic", "what the run waits for has come already")
	case known:
		return s.refuseAs(agent.CodeStale, "payload", "the run waits for an event of topic %s with another payload: this one does not match what its conditions ask for", o.Topic)
	case len(topics) > 0:
		return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s; it waits for %s", o.Topic, strings.Join(topics, ", "))
	}
	return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s, nor for any other", o.Topic)
}

// queue keeps an event for a daemon, which gives it turns of its own.
func (s *step) queue(o agent.EmitCommand, id string) error {
	e := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: id, By: o.By}, Topic: o.Topic, Payload: o.Payload}
	switch most := s.daemon().Queue; {
	case s.End.Stopping != nil:
		err := s.refuseAs(agent.CodeStale, "", "%s; emit it again, with the same id, when the session's next run has started", s.End.doing())
		err.Retryable = true // the session takes the event, only not now
		return err
	case len(s.Messages.Emitted) >= most || s.Messages.EmittedSize+eventJSONLen(e) > eventShare || eventJSONLen(e) > s.space():
		return s.refuseAs(agent.CodeQueueFull, "", "%d events wait already (daemon.queue allows %d, and %d bytes); emit it again, with the same id, when fewer do", len(s.Messages.Emitted), most, eventShare)
	}
	s.Messages.queue(e)
	s.Log.setHeadBehind(true)
	s.rememberReceipt(id, remembered.EventDigest(e))
	return nil
}
