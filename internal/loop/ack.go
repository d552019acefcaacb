package loop

import (
	"cmp"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// acknowledge answers the verb of this step, and remembers the answer.
func (s *step) acknowledge() {
	if s.verb == "" {
		return
	}
	p := s.ackState(ProcessedVerb{ID: s.verbID, Digest: s.verbDigest, Effect: s.verbEffect})
	s.Verbs.remember(p)
	if s.owesAnswer(s.verbID) { // answerInterrupt answers it
		return
	}
	s.do(Acknowledge{Ack: s.ackOf(s.verb, p), For: s.answersFor})
}

// answerWhenSuspended keeps the interrupt of this step without an answer, which comes when the run's own
// calls have ended and the store has its suspension. It then says suspended: a question for the status would
// wait behind the tasks of a whole tree. It costs no time while all of it happens within the workflow task of
// the interrupt and the one that follows at once. Where it does not, the answer says suspending, and comes
// no later. The end of a call outside comes with a task of its own, so nothing waits for that.
func (s *step) answerWhenSuspended() {
	outside := slices.ContainsFunc(s.Calls.List, func(c Call) bool { return c.State == CallRunning && s.temporalCall(c) != nil })
	if s.verb == "" || s.verbID == "" || s.bySignal || outside || s.Revision < suspendedAckSince {
		return
	}
	s.Holds.answerLater(&UnansweredInterrupt{ProcessedVerb: ProcessedVerb{ID: s.verbID, Digest: s.verbDigest, Effect: s.verbEffect}})
}

// answerInterrupt answers an interrupt that has no answer yet, if nothing is left to wait for, its hold is
// overtaken or removed, or its sender waits no longer.
func (s *step) answerInterrupt() {
	u := s.Holds.Unanswered
	if u == nil {
		return
	}
	waits := s.Status() == agent.StatusSuspending && s.Holds.own() != nil && (s.End.Grace != nil || u.Sealing && s.Log.SealingSeq > 0)
	if waits && !s.answersNow {
		return
	}
	s.Holds.answerLater(nil)
	p := s.ackState(u.ProcessedVerb)
	s.Verbs.amend(p)
	now := Acknowledge{Ack: s.ackOf(agent.VerbInterrupt, p), For: p.ID}
	if p.ID == s.verbID {
		now.For = "" // nobody waits for a late answer yet
	}
	s.do(now)
}

// owesAnswer reports whether a verb has no answer yet.
func (s *step) owesAnswer(id string) bool {
	return s.Holds.Unanswered != nil && id != "" && s.Holds.Unanswered.ID == id
}

// saidBefore returns the answer to a verb that was said under an id before. One that has no answer yet
// counts even if so many have come since that it is forgotten.
func (s *step) saidBefore(id string) (ProcessedVerb, bool) {
	if s.owesAnswer(id) {
		return s.Holds.Unanswered.ProcessedVerb, true
	}
	return s.Verbs.find(id)
}

// ackState completes the answer to a verb: how the run stands after this step.
func (s *step) ackState(p ProcessedVerb) ProcessedVerb {
	suspension := ""
	if s.Suspensions.Open != nil {
		suspension = s.Suspensions.Open.ID
	}
	return ProcessedVerb{ID: p.ID, Digest: p.Digest, Effect: p.Effect, Status: s.Status(), Seq: s.Log.Seq, Suspension: suspension}
}

// ackOf returns the answer to a verb. The hold is not in p: what is kept for repeated ids stays small.
func (s *step) ackOf(verb agent.Verb, p ProcessedVerb) agent.Ack {
	ack := s.ack(p)
	if verb == agent.VerbPause || verb == agent.VerbInterrupt {
		ack.Hold = s.ackHold()
	}
	return ack
}

// ackHold returns the run's own hold, for the answer to a hold. The suspension may have begun for
// another reason, such as a question or a hold of the parent: then its initiator is another one.
func (s *step) ackHold() *agent.AckHold {
	v, h := s.Suspension(), s.Holds.own()
	if v == nil || h == nil {
		return nil
	}
	// An imported state may be older than Initiator. Only a root is exported, so no parent held it.
	by := cmp.Or(h.Initiator, agent.InitiatorOperator)
	return wire.BoundedHold(agent.AckHold{Kind: v.Kind, Initiator: by, Verb: h.Verb, By: h.By, Reason: h.Reason, Since: h.At})
}

func (s *step) ack(p ProcessedVerb) agent.Ack {
	return agent.Ack{V: agent.Version, Session: s.Session, Run: s.Run, Status: p.Status, Suspension: p.Suspension, Seq: p.Seq, Effect: p.Effect}
}
