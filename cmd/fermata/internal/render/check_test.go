package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A hook that fails is shown as failed, also where that decides nothing.
func TestACheckThatFailed(t *testing.T) {
	accept := &agent.Verdict{Decision: agent.DecisionAccept}
	for want, u := range map[string]agent.CheckUpdate{
		"check refresh: accepted":                                 {Name: "refresh", Point: agent.PointAfterResume, Verdict: accept},
		"check refresh: failed, no such host":                     {Name: "refresh", Point: agent.PointAfterResume, Verdict: accept, Error: "no such host"},
		"check gate: failed, no worker; that counts as accepted":  {Name: "gate", Point: agent.PointBeforeSuspension, Verdict: accept, Error: "no worker"},
		"check rubric: veto, too short Next: write more":          {Name: "rubric", Point: agent.PointVerify, Verdict: &agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "too short", NextStep: "write more"}},
		"check rubric: skipped, later":                            {Name: "rubric", Point: agent.PointVerify, Skipped: true, Reason: "later"},
		"check rubric: skipped, its cadence leaves this turn out": {Name: "rubric", Point: agent.PointVerify, Skipped: true, Reason: agent.SkippedEvery},
		"check rubric: skipped, not asked in the last turns":      {Name: "rubric", Point: agent.PointBeforeCalls, Skipped: true, Reason: agent.SkippedLastTurns},
	} {
		require.Equal(t, want, CheckLine(&u))
	}
}

// A person reads words for each reason, and no key of the file.
func TestSkippedChecksHaveWords(t *testing.T) {
	for _, r := range []agent.SkipReason{
		agent.SkippedStalled, agent.SkippedLastTurns, agent.SkippedAttempts, agent.SkippedEvery, agent.SkippedAfterTurns,
		agent.SkippedMaxInvocations, agent.SkippedWhen, agent.SkippedByCheck, agent.SkippedLimit,
	} {
		require.Contains(t, skippedText(r), " ", r)
	}
}
