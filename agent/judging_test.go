package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only judges are skipped and have a cadence, at the points where these mean something, within bounds. A
// tool may skip checks after it.
func TestWhenAJudgeIsAsked(t *testing.T) {
	judge := &Judge{}
	verify := func(c ...Check) Definition { return Definition{Verify: Verify{Checks: c}} }
	calls := func(c ...Check) Definition { return Definition{Hooks: Hooks{BeforeCalls: CallHooks{Checks: c}}} }
	check := func(d Definition) error {
		d.Name, d.Model = "a", "m"
		return d.Check()
	}
	require.NoError(t, check(verify(Check{Name: "t", Tool: "x", MaySkip: []string{"c"}}, Check{Name: "c", Judge: judge, Cadence: Cadence{Every: 2, AfterTurns: 1, MaxInvocations: 3, When: CadenceAlways}})))
	require.NoError(t, check(calls(Check{Name: "c", Judge: judge, Skip: Skip{Stalled: true, LastTurns: 1, Attempts: 2}})))
	stalled := Cadence{When: CadenceStalled}
	output := verify(Check{Name: "c", Judge: judge, Cadence: stalled})
	output.Output = []byte(`{"type":"object"}`)
	for want, d := range map[string]Definition{
		"agent a: verify.checks[0].skip: only a judge of hooks.before_calls is skipped; a judge of verify has cadence":                verify(Check{Name: "c", Judge: judge, Skip: Skip{Stalled: true}}),
		"checks[0].skip: only a judge of hooks.before_calls is skipped":                                                               calls(Check{Name: "c", Tool: "x", Skip: Skip{LastTurns: 1}}),
		"agent a: hooks.before_calls.checks[0].cadence: only a judge of verify has a cadence; a judge of hooks.before_calls has skip": calls(Check{Name: "c", Judge: judge, Cadence: Cadence{Every: 2}}),
		"checks[0].cadence: only a judge of verify has a cadence":                                                                     verify(Check{Name: "c", Command: "x", Cadence: Cadence{Every: 2}}),
		`agent a: verify.checks[0].cadence.when: must be always or stalled, not "often"`:                                              verify(Check{Name: "c", Judge: judge, Cadence: Cadence{When: "often"}}),
		"accept would complete a run that nobody has judged":                                                                          verify(Check{Name: "c", Judge: judge, Cadence: stalled, OnError: CheckErrorAccept}),
		"a judge of a stalled run vetoes no answer":                                                                                   verify(Check{Name: "c", Judge: judge, Cadence: stalled, Max: 2}),
		"agent a: verify.checks[0].cadence.every: must be a number up to 1000, or left out, not -1":                                   verify(Check{Name: "c", Judge: judge, Cadence: Cadence{Every: -1}}),
		"checks[0].skip.last_turns: must be a number up to 1000":                                                                      calls(Check{Name: "c", Judge: judge, Skip: Skip{LastTurns: 1001}}),
		"has no output": output,
		"agent a: verify.checks[0].may_skip: only a tool of verify or hooks.before_calls may skip": verify(Check{Name: "c", Judge: judge, MaySkip: []string{"d"}}, Check{Name: "d", Judge: judge}),
		`may_skip names "t", which is no check after it`:                                           verify(Check{Name: "t", Tool: "x", MaySkip: []string{"t"}}),
		"before a run a tool, a command or a judge looks":                                          {Hooks: Hooks{BeforeRun: RunHooks{Checks: []Check{{Name: "c", Agent: "b", Task: "look"}}}}},
	} {
		err := check(d)
		require.ErrorIs(t, err, CodeInvalidInput, want)
		require.ErrorContains(t, err, want)
	}
}
