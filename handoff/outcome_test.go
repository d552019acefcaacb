package handoff

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever a run below came to is folded in as it ended (HL-56).
func TestOutcomesFoldIn(t *testing.T) {
	one := func(what string) []agent.WorkItem {
		return []agent.WorkItem{{What: what, Ref: "session:p/c-1", By: "p/c-1"}}
	}
	for name, c := range map[string]struct {
		o    agent.Outcome
		want agent.Handoff
	}{
		"completed": {
			agent.Outcome{Status: agent.StatusCompleted, Reason: "done", Text: "Rome"},
			agent.Handoff{Reason: "done", Summary: "Rome", Done: one("Rome"), Confidence: 0.78},
		},
		"completed with an output only": {
			agent.Outcome{Status: agent.StatusCompleted, Reason: "finished", Output: json.RawMessage(`{"city":"Rome"}`)},
			agent.Handoff{Reason: "finished", Summary: `{"city":"Rome"}`, Done: one(`{"city":"Rome"}`), Confidence: 0.78},
		},
		"completed without words": {
			agent.Outcome{Status: agent.StatusCompleted},
			agent.Handoff{Reason: "completed", Summary: "It completed its task and said nothing.", Done: one("It completed its task and said nothing."), Confidence: 0.45},
		},
		"failed": {
			agent.Outcome{Status: agent.StatusFailed, Reason: "limit_turns", Text: "Half of it.", Error: agent.Errorf(agent.CodeLimitTurns, "2 turns are over")},
			agent.Handoff{Reason: "limit_turns", Summary: "It failed: 2 turns are over. The last thing that it said:\n\nHalf of it.", Failed: one("it failed: 2 turns are over"), Confidence: 0.78},
		},
		"failed without words": {
			agent.Outcome{Status: agent.StatusFailed, Reason: "timed_out"},
			agent.Handoff{Reason: "timed_out", Summary: "It failed: timed_out. It had said nothing.", Failed: one("it failed: timed_out"), Confidence: 0.45},
		},
		"cancelled": {
			agent.Outcome{Status: agent.StatusCancelled, Reason: "requested", Turns: 3, Text: "Half."},
			agent.Handoff{Reason: "requested", Summary: "It ended before it was finished: cancelled (requested). The last thing that it said:\n\nHalf.", InFlight: one("it ended before it was finished: cancelled (requested)"), Confidence: 0.78},
		},
		"cancelled before it began": {
			agent.Outcome{Status: agent.StatusCancelled, Reason: "requested"},
			agent.Handoff{Reason: "requested", Summary: "It ended before it was finished: cancelled (requested). It had said nothing.", NotStarted: one("it ended before it was finished: cancelled (requested)"), Confidence: 0.45},
		},
		"stopped without a handoff": {
			agent.Outcome{Status: agent.StatusStopped, Reason: "enough", Turns: 1},
			agent.Handoff{Reason: "enough", Summary: "It ended before it was finished: stopped (enough). It had said nothing.", InFlight: one("it ended before it was finished: stopped (enough)"), Confidence: 0.45},
		},
		"not ended": {
			agent.Outcome{Status: agent.StatusSuspended, Turns: 1},
			agent.Handoff{Reason: "suspended", Summary: "It has not ended: suspended. It had said nothing.", InFlight: one("it has not ended: suspended"), Confidence: 0.45},
		},
	} {
		c.o.Session, c.o.Run, c.o.Agent, c.o.Usage, c.o.Cost = "p/c-1", "02", "scout", agent.Usage{Input: 7}, 9
		c.want.Session, c.want.Run, c.want.Agent, c.want.Usage, c.want.Cost = "p/c-1", "02", "scout", agent.Usage{Input: 7}, 9
		c.want.V, c.want.Status, c.want.Task, c.want.ConfidenceBy, c.want.SummarizedBy = 1, c.o.Status, "Look", agent.SummarizedByRule, agent.SummarizedByRule
		require.Equal(t, c.want, FromOutcome(c.o, "Look"), name)
	}
}

func TestAStoppedChildHasItsOwnHandoff(t *testing.T) {
	own := Complete(skeleton(), goodAnswer)
	own.Children = children()
	o := agent.Outcome{Session: own.Session, Run: own.Run, Agent: own.Agent, Status: agent.StatusStopped, Usage: own.Usage, Cost: own.Cost, Handoff: &own}
	require.Equal(t, own, FromOutcome(o, "another task"))
	o.Usage.Input, o.Cost = 5, 6
	got := FromOutcome(o, "another task")
	require.Equal(t, int64(5), got.Usage.Input, "the outcome's numbers are the last ones")
	require.Equal(t, agent.USD(6), got.Cost)
	require.NotEqual(t, own.Usage, got.Usage, "the outcome's own handoff is not changed")
}

// What a run below answers is cut where it is long (HA-104).
func TestLongOutcomesAreCut(t *testing.T) {
	for _, status := range []agent.Status{agent.StatusCompleted, agent.StatusFailed, agent.StatusCancelled} {
		h := FromOutcome(agent.Outcome{Status: status, Session: "s", Text: strings.Repeat("x", 100_000), Reason: strings.Repeat("r", 100_000)}, strings.Repeat("t", 100_000))
		require.LessOrEqual(t, len(h.Summary), maxSummary)
		require.LessOrEqual(t, len(h.Reason), maxText)
		require.LessOrEqual(t, len(h.Task), maxText)
		require.Contains(t, h.Summary, "[cut here: ")
		for _, i := range append(append(h.Done, h.Failed...), h.InFlight...) {
			require.LessOrEqual(t, len(i.What), maxText)
		}
	}
}

func TestUnheard(t *testing.T) {
	h := Missing("p/c-1", "02", "scout", "Look")
	require.Equal(t, agent.StatusCancelled, h.Status)
	require.Equal(t, "Look", h.Task)
	require.Equal(t, agent.SummarizedByRule, h.SummarizedBy)
	require.Equal(t, []any{0.45, agent.SummarizedByRule}, []any{h.Confidence, h.ConfidenceBy})
	require.Contains(t, h.Summary, "not known")
	require.Equal(t, []agent.WorkItem{{What: "it did not report in time: how far it got, and what it spent, is not known here", Ref: "session:p/c-1", By: "p/c-1"}}, h.InFlight)
	require.Equal(t, noTask, Missing("p/c-1", "", "scout", "").Task)
}

// A child that hands off since it failed says so to its parent, unless its model has summed that up.
func TestAFailedChildSaysThatItFailed(t *testing.T) {
	h := agent.Handoff{Status: agent.StatusFailed, Summary: "I read the ledger.", SummarizedBy: agent.SummarizedByRule}
	o := agent.Outcome{Session: "s/b-1", Status: agent.StatusFailed, Text: "I read the ledger.", Error: agent.Errorf(agent.CodeProviderAuth, "the key was refused"), Handoff: &h}
	got := FromOutcome(o, "read")
	require.Equal(t, "It failed: the key was refused. The last thing that it said:\n\nI read the ledger.", got.Summary)
	require.Equal(t, "it failed: the key was refused", got.Failed[0].What)
	h.SummarizedBy = agent.SummarizedByModel
	require.Equal(t, h.Summary, FromOutcome(o, "read").Summary)
}
