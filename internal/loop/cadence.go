package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// This file decides which checks of an answer are not made.

// skipsNext says why the next check of the waiting answer is not made; empty if it is.
func (s *State) skipsNext() agent.SkipReason {
	p := s.Checks.Proposal
	if p.Skip&(1<<p.Next) != 0 {
		return agent.SkippedByCheck
	}
	return s.skipsAnswer(agent.PointVerify, s.nextCheck())
}

// skipsAnswer says why a check's cadence does not let it look; empty if it does. The model has chosen the
// turn in which it stalls, so each judge looks at such an answer, whatever turn it is.
func (s *State) skipsAnswer(p agent.CheckPoint, k agent.Check) agent.SkipReason {
	c, turns := k.Cadence, s.ownTurns()
	if s.daemon() != nil {
		turns -= s.Budget.OwnTurnsAtRenewal
	}
	anyTurn := p == agent.PointVerify && s.Checks.Proposal != nil && s.Checks.Proposal.Reason == agent.ReasonStalled
	switch i := s.verifyIndex(k); {
	case p == agent.PointVerify && c.When == agent.CadenceStalled:
		return agent.SkippedWhen
	case turns <= c.AfterTurns && c.AfterTurns > 0 && !anyTurn:
		return agent.SkippedAfterTurns
	case c.Every > 0 && turns%c.Every != 0 && !anyTurn:
		return agent.SkippedEvery
	case c.MaxInvocations > 0 && i < len(s.Checks.AskedBy) && s.Checks.AskedBy[i] >= c.MaxInvocations:
		return agent.SkippedMaxInvocations
	}
	return ""
}

// verifyIndex returns the index of a check in verify.
func (s *State) verifyIndex(k agent.Check) int {
	return slices.IndexFunc(s.Spec.Verify.Checks, func(o agent.Check) bool { return o.Name == k.Name })
}

// countAsked counts a verdict of a judge whose cadence has max_invocations.
func (s *step) countAsked(k agent.Check) {
	if k.Cadence.MaxInvocations > 0 {
		s.Checks.asked(s.verifyIndex(k))
	}
}
