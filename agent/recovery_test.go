package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every kind has actions, each action is possible for some kind, and what makes no sense for a kind
// is refused with the actions that do (PA-56).
func TestRecoveryTakesWhatMakesSense(t *testing.T) {
	used := map[RecoveryAction]bool{}
	all := []RecoveryAction{RecoverRetry, RecoverCorrect, RecoverCompact, RecoverFallback, RecoverAsk, RecoverFinalize, RecoverHandoff, RecoverFail}
	for _, kind := range FailureKinds() {
		for _, do := range all {
			d := Definition{Name: "a", Model: "m", Fallbacks: []string{"n"}, Completion: CompletionTool, Output: json.RawMessage(`{"type":"object"}`), Recovery: Recovery{kind: {Do: do}}}
			err := d.Check()
			if sensible := kind.Actions(); contains(sensible, do) {
				used[do] = true
				require.NoError(t, err, "%s: %s", kind, do)
				continue
			}
			require.ErrorIs(t, err, CodeInvalidInput, "%s: %s", kind, do)
			require.ErrorContains(t, err, "must be one of "+listed(kind.Actions()))
		}
	}
	require.Len(t, used, len(all))
}

func contains[T comparable](list []T, one T) bool {
	for _, o := range list {
		if o == one {
			return true
		}
	}
	return false
}

// No kind of failure is forgotten, and whatever lets a run go on by itself has a bound: once, then the
// run fails, if nothing else is said (PA-92).
func TestEveryRemedyHasItsBudget(t *testing.T) {
	require.ElementsMatch(t, constants[FailureKind](t, "recovery.go", "FailureKind"), FailureKinds())
	goesOn := []RecoveryAction{RecoverRetry, RecoverCorrect, RecoverCompact, RecoverFallback}
	for _, kind := range FailureKinds() {
		require.NotEmpty(t, kind.Actions(), kind)
		for _, do := range kind.Actions() {
			if !contains(goesOn, do) {
				require.Equal(t, []any{0, do}, []any{Remedy{Do: do}.Attempts(), Remedy{Do: do}.After()}, "%s: %s", kind, do)
				continue
			}
			require.Equal(t, []any{1, RecoverFail}, []any{Remedy{Do: do}.Attempts(), Remedy{Do: do}.After()}, "%s: %s", kind, do)
			more := Remedy{Do: do, Times: 3, Then: RecoverHandoff}
			require.Equal(t, []any{3, RecoverHandoff}, []any{more.Attempts(), more.After()}, "%s: %s", kind, do)
		}
	}
}

// Every kind of a provider's fault either may be tried again or is final (PA-92).
func TestEveryFaultIsFinalOrNot(t *testing.T) {
	again := map[FaultKind]bool{
		FaultRateLimit: true, FaultOverload: true, FaultTransient: true, FaultTimeout: true,
		FaultAuth: false, FaultQuota: false, FaultBadRequest: false, FaultContext: false,
	}
	kinds := constants[FaultKind](t, "error.go", "FaultKind")
	require.Len(t, kinds, len(again))
	for _, kind := range kinds {
		want, known := again[kind]
		require.True(t, known, kind)
		require.Equal(t, want, kind.Retryable(), kind)
	}
}

// What can't be meant is refused, and says what may be written.
func TestRecoveryThatCantBeMeant(t *testing.T) {
	for want, d := range map[string]Definition{
		"the kinds are bad_output, limit_cost":           {Recovery: Recovery{"bad_luck": {Do: RecoverFail}}},
		"times is 101; it may be 1 to 100":               {Recovery: Recovery{FailureRefusal: {Do: RecoverRetry, Times: 101}}},
		"times and then belong to retry":                 {Recovery: Recovery{FailureRefusal: {Do: RecoverHandoff, Times: 1}}},
		"then must be one of ask, handoff, fail":         {Recovery: Recovery{FailureRefusal: {Do: RecoverRetry, Then: RecoverRetry}}},
		"text is the message of correct":                 {Recovery: Recovery{FailureRefusal: {Do: RecoverRetry, Text: "x"}}},
		"fallback needs fallbacks":                       {Recovery: Recovery{FailureRefusal: {Do: RecoverFallback}}},
		"it needs completion: tool":                      {Recovery: Recovery{FailureUnable: {Do: RecoverHandoff}}},
		"it needs completion: tool, or loop_dete":        {Recovery: Recovery{FailureNoProgress: {Do: RecoverHandoff}}},
		"it needs output, the schema":                    {Recovery: Recovery{FailureBadOutput: {Do: RecoverHandoff}}},
		"loop_detection.cycles is 1; it may be 2":        {LoopDetection: LoopDetection{Cycles: 1}},
		"loop_detection.idle is 101; it may be 2":        {LoopDetection: LoopDetection{Idle: 101}},
		`loop_detection.scope is "all"; it may be "run"`: {LoopDetection: LoopDetection{Scope: "all"}},
		"on_loop must be one of fail, ask, not":          {OnLoop: LimitActionFinalize},
		"limits.adaptive.initial is 9, more than":        {Limits: Limits{Adaptive: &AdaptiveLimit{Initial: 9, Max: 8}}},
		"limits.adaptive.extend_by is -1":                {Limits: Limits{Adaptive: &AdaptiveLimit{ExtendBy: -1}}},
		"limits.adaptive belongs to the limits":          {Agents: []SubAgent{{Agent: "b", Limits: Limits{Adaptive: &AdaptiveLimit{}}}}},
	} {
		d.Name, d.Model = "a", "m"
		err := d.Check()
		require.ErrorIs(t, err, CodeInvalidInput, want)
		require.ErrorContains(t, err, want)
	}
	idle := Definition{Name: "a", Model: "m", LoopDetection: LoopDetection{Idle: 2}, Recovery: Recovery{FailureNoProgress: {Do: RecoverAsk}}}
	require.NoError(t, idle.Check(), "a run under completion natural has no progress, too")
}

// A remedy may be written as its action alone, and comes back as it was written.
func TestARemedyInShort(t *testing.T) {
	const written = `{"loop":"handoff","tool_error":{"do":"retry","times":2,"then":"handoff"}}`
	var r Recovery
	require.NoError(t, json.Unmarshal([]byte(written), &r))
	require.Equal(t, Recovery{FailureLoop: {Do: RecoverHandoff}, FailureToolError: {Do: RecoverRetry, Times: 2, Then: RecoverHandoff}}, r)
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, written, string(raw))
	require.Error(t, json.Unmarshal([]byte(`{"loop":3}`), &r))
}

// Lessons are one of each kind, the newest, and five at most: seven kinds leave five (PA-76, PA-91).
func TestLessonsAreFew(t *testing.T) {
	var list []Lesson
	for _, kind := range FailureKinds()[:7] {
		list = AddLesson(list, Lesson{Kind: kind, Text: "first"})
	}
	require.Len(t, list, 5)
	require.Equal(t, FailureKinds()[2], list[0].Kind)
	list = AddLesson(list, Lesson{Kind: FailureKinds()[3], Text: "second"})
	require.Len(t, list, 5)
	require.Equal(t, Lesson{Kind: FailureKinds()[3], Text: "second"}, list[4])
}

// The defaults of a limit that adapts: it begins with a quarter of its most, which is 16, and grows by
// two; a fixed limit is own_turns, 50 if nothing is said (HA-67). Its max wins over own_turns (HA-68).
func TestAdaptiveDefaults(t *testing.T) {
	for _, c := range []struct {
		said, want Limits
	}{
		{Limits{}, Limits{OwnTurns: 50}},
		{Limits{OwnTurns: 7}, Limits{OwnTurns: 7}},
		{Limits{Adaptive: &AdaptiveLimit{}}, Limits{OwnTurns: 16, Adaptive: &AdaptiveLimit{Initial: 4, Max: 16, ExtendBy: 2}}},
		{Limits{OwnTurns: 40, Adaptive: &AdaptiveLimit{}}, Limits{OwnTurns: 40, Adaptive: &AdaptiveLimit{Initial: 10, Max: 40, ExtendBy: 2}}},
		{Limits{OwnTurns: 40, Adaptive: &AdaptiveLimit{Max: 3}}, Limits{OwnTurns: 3, Adaptive: &AdaptiveLimit{Initial: 1, Max: 3, ExtendBy: 2}}},
		{Limits{Turns: 90, Adaptive: &AdaptiveLimit{Max: 8, Initial: 3, ExtendBy: 1, ShrinkBy: 2}}, Limits{Turns: 90, OwnTurns: 8, Adaptive: &AdaptiveLimit{Max: 8, Initial: 3, ExtendBy: 1, ShrinkBy: 2}}},
	} {
		c.want.Agents, c.want.Depth = 10_000, 8
		require.Equal(t, c.want, Definition{Limits: c.said}.WithDefaults().Limits)
	}
}
