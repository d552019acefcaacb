package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A profile sets limits, what the author says wins, and a profile that nobody
// knows is refused with those that there are (HA-39).
func TestProfiles(t *testing.T) {
	for profile, want := range map[Profile][3]int{
		"": {50, 8, 1}, ProfileToolUsing: {50, 8, 1}, ProfileResearcher: {30, 4, 1}, ProfileVerifier: {5, 0, 3}, ProfileCompleter: {1, 0, 3},
	} {
		d := Definition{Name: "a", Model: "m", Profile: profile}
		require.NoError(t, d.Check())
		d = d.WithDefaults()
		require.Equal(t, want, [3]int{d.Limits.OwnTurns, d.Nudges, d.Repairs}, profile)
		require.Equal(t, Limits{OwnTurns: want[0], Agents: 10_000, Depth: 8}, d.Limits, profile)

		d = Definition{Profile: profile, Limits: Limits{Turns: 7}, Nudges: 2, Repairs: 5}.WithDefaults()
		require.Equal(t, [3]int{7, 2, 5}, [3]int{d.Limits.Turns, d.Nudges, d.Repairs}, profile)
		require.Zero(t, d.Limits.OwnTurns, "a limit of the tree is one of the run, too")
	}
	err := Definition{Name: "a", Model: "m", Profile: "poet"}.Check()
	require.ErrorIs(t, err, CodeInvalidInput)
	require.ErrorContains(t, err, "tool_using, researcher, verifier, completer")
}

// Unless the author says otherwise, a model call that is silent for 60 s is given up, one that
// streams may take 10 minutes, and a call is made four times at most (PA-66).
func TestHowLongAModelCallMayTake(t *testing.T) {
	d := Definition{Name: "a", Model: "m"}.WithDefaults()
	require.Equal(t, []Duration{Duration(time.Minute), Duration(10 * time.Minute)}, []Duration{d.ModelSilence, d.ModelTimeout})
	require.Equal(t, 4, d.ModelAttempts)
}

// Numbers below zero are refused, with their field (HA-38).
func TestNumbersThatCantBeMeant(t *testing.T) {
	for path, d := range map[string]Definition{
		"limits.turns": {Limits: Limits{Turns: -1}}, "limits.tokens": {Limits: Limits{Tokens: -1}}, "limits.cost_usd": {Limits: Limits{CostUSD: -1}},
		"limits.wall_clock": {Limits: Limits{WallClock: -1}}, "limits.own_turns": {Limits: Limits{OwnTurns: -1}},
		"limits.adaptive.initial": {Limits: Limits{Adaptive: &AdaptiveLimit{Initial: 17}}}, "limits.agents": {Limits: Limits{Agents: 10_001}}, "limits.depth": {Limits: Limits{Depth: 17}}, "nudges": {Nudges: -2}, "repairs": {Repairs: -2}, "parallel_tools": {ParallelTools: -1},
		"model_timeout": {ModelTimeout: -1}, "model_silence": {ModelSilence: -1}, "model_attempts": {ModelAttempts: -1},
		"max_output_tokens": {MaxOutputTokens: -1}, "state_version": {StateVersion: -1}, "resume_within": {ResumeWithin: -1}, "compaction.keep_first": {Compaction: CompactionPolicy{KeepFirst: -1}},
	} {
		d.Name, d.Model = "a", "m"
		err := d.Check()
		require.ErrorIs(t, err, CodeInvalidInput, path)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, path, e.Path)
	}
}

// A run is ok only when it was completed: neither a rest nor any other end is (PA-74).
func TestOnlyACompletedRunIsOK(t *testing.T) {
	for _, s := range []Status{StatusPending, StatusRunning, StatusSuspending, StatusSuspended, StatusCompleted, StatusFailed, StatusCancelled, StatusStopped} {
		require.Equal(t, s == StatusCompleted, Outcome{Status: s, Text: "done"}.OK(), s)
	}
}

// Reasons are an open set, and so are fields: a reader passes on what it does not
// know (HA-22).
func TestReasonsAreAnOpenSet(t *testing.T) {
	var o Outcome
	require.NoError(t, json.Unmarshal([]byte(`{"v":1,"type":"outcome","status":"failed","reason":"moon_phase","moon":"full","error":{"code":"moon_phase","message":"wait"}}`), &o))
	require.Equal(t, "moon_phase", o.Reason)
	require.Equal(t, Code("moon_phase"), CodeOf(o.Err()))
}

// docs/limits.md tells the turns of each profile, and which limits take them away.
func TestTheDocumentedTurnsOfProfiles(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	require.NoError(t, err)
	var turns []string
	for _, p := range []Profile{ProfileToolUsing, ProfileResearcher, ProfileVerifier, ProfileCompleter} {
		turns = append(turns, fmt.Sprintf("`%s` %d", p, Definition{Profile: p}.WithDefaults().Limits.OwnTurns))
	}
	row := "| turns of a run | " + strings.Join(turns, ", ") + "; none if the definition sets `limits.turns` |"
	require.True(t, strings.Contains(string(page), row), "docs/limits.md: %s", row)
}

// What a policy leaves to a default is filled in when the run records its Spec: a later build with other
// defaults decides as this one does. The author's own values stay as they are.
func TestDefaultsOfPoliciesAreRecorded(t *testing.T) {
	own := Recovery{FailureToolError: {Do: RecoverRetry}, FailureRefusal: {Do: RecoverHandoff}, FailureBadOutput: {Do: RecoverCorrect, Times: 3, Then: RecoverAsk}}
	d := Definition{Recovery: own, SkillMatch: &SkillMatch{}}.WithDefaults()
	require.Equal(t, Recovery{
		FailureToolError: {Do: RecoverRetry, Times: 1, Then: RecoverFail}, FailureRefusal: {Do: RecoverHandoff}, FailureBadOutput: {Do: RecoverCorrect, Times: 3, Then: RecoverAsk},
	}, d.Recovery)
	require.Equal(t, Remedy{Do: RecoverRetry}, own[FailureToolError])
	sticky := true
	require.Equal(t, &SkillMatch{Strategy: SkillsByMetadata, TopN: 1, Sticky: &sticky}, d.SkillMatch)
	require.Nil(t, Definition{}.WithDefaults().Recovery)
}
