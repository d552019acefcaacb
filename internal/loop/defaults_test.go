package loop

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// byDefault is what a run does about a failure that its agent's recovery does not name.
type byDefault struct {
	spec    string // beside the tools
	failure string // what fails, with # for the turn
	goesOn  int    // after so many failures in a row the run goes on by itself
	then    string // what follows: a code, "asks", or "read" if the model reads each failure
	handoff bool   // the run that fails leaves one
}

const (
	lookedAt  = `"hooks":{"after_turn":{"checks":[{"name":"look","tool":"look_at"}]}}`
	lookFails = `calls add {"a":#}; result t#.1 ok #; result t#.check# ok {"action":"fail","failure":"KIND","reason":"so"}`
	worked    = `calls add {"a":#}; result t#.1 ok #`
	isDenied  = `replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"pay","arguments":{"a":#}}}],"rule_matches":[[0]]}`
)

// defaults are those that docs/recovery.md lists, of each kind.
var defaults = map[agent.FailureKind][]byDefault{
	agent.FailureRefusal:         {{failure: `replies {"finish":"content_filter","parts":[]}`, then: "refusal", handoff: true}},
	agent.FailureProvider:        {{failure: `fails provider_error`, then: "provider_error", handoff: true}},
	agent.FailureNoProgress:      {{spec: `"completion":"tool","nudges":2`, failure: `says hm`, goesOn: 2, then: "stuck"}, {spec: `"loop_detection":{"idle":2}`, failure: `calls add {"a":#}; result t#.1 failed no`, goesOn: 1, then: "stuck"}},
	agent.FailureLoop:            {{failure: `calls add {}; result t#.1 ok 1`, goesOn: 5, then: "loop_detected"}},
	agent.FailureToolError:       {{failure: `calls add {"a":#}; result t#.1 failed no`, then: "read"}},
	agent.FailureTruncated:       {{failure: `replies {"finish":"length","parts":[{"type":"text","text":"too lo"}]}`, goesOn: 1, then: "bad_output"}},
	agent.FailureBadOutput:       {{spec: `"output":{"type":"object"}`, failure: `replies {"parts":[{"type":"text","text":"hm"}],"output_error":"it is not JSON"}`, goesOn: 1, then: "bad_output"}},
	agent.FailurePolicyViolation: {{spec: `"rules":[{"do":"deny","tools":["pay"],"reason":"No payments."}]`, failure: isDenied, then: "read"}, {spec: lookedAt, failure: lookFails, then: "denied", handoff: true}},
	agent.FailureUnable:          {{spec: `"completion":"tool"`, failure: `calls return_unable {"blockers":["key #"],"rationale":"so","next_steps":[]}`, then: "read"}},
	agent.FailureUnclearRequest:  {{spec: lookedAt, failure: lookFails, then: "asks"}},
	agent.FailureScopeTooLarge:   {{spec: lookedAt, failure: lookFails, goesOn: 3, then: "unable"}},
	agent.FailureLimitTurns:      {{spec: `"limits":{"turns":1}`, failure: worked, then: "limit_turns"}},
	agent.FailureLimitTime:       {{spec: `"limits":{"wall_clock":"1m"}`, failure: `after 1m; timer`, then: "limit_time"}},
	agent.FailureLimitTokens:     {{spec: `"limits":{"tokens":10}`, failure: worked, then: "limit_tokens"}},
	agent.FailureLimitCost:       {{spec: `"limits":{"cost_usd":0.001},"price":{"input":100,"output":0}`, failure: worked, then: "limit_cost"}},
}

// Every kind of failure has its default: how often the run goes on by itself, which has a bound, and
// what follows. A kind that is added has none here, and fails the test (PA-92).
func TestEveryFailureHasItsDefault(t *testing.T) {
	require.Len(t, defaults, len(agent.FailureKinds()))
	for _, kind := range agent.FailureKinds() {
		require.NotEmpty(t, defaults[kind], "%s has no default", kind)
		for _, want := range defaults[kind] {
			t.Run(string(kind), func(t *testing.T) { want.holds(t, kind) })
		}
	}
}

// manyFailures is more than any default takes.
const manyFailures = 12

// holds plays the failure again and again, and looks at what the run does.
func (want byDefault) holds(t *testing.T, kind agent.FailureKind) {
	spec := `"toolset":[{"name":"add"},{"name":"pay"}]`
	if want.spec != "" {
		spec += "," + want.spec
	}
	p := played(t, "begin go", "opened {"+spec+"}")
	goesOn := -1
	for s := &p.state; s.Turn.Phase == TurnAsking && s.Phase == RunActive && goesOn < manyFailures; goesOn++ {
		failure := strings.NewReplacer("#", strconv.Itoa(s.Turn.N), "KIND", string(kind)).Replace(want.failure)
		for line := range strings.SplitSeq(failure, "; ") {
			if s.End.Outcome == nil { // the sixth call of a loop is not made
				p.lines(line)
			}
		}
	}
	switch want.then {
	case "read":
		require.Equal(t, manyFailures, goesOn, "the model reads each of them")
		return
	case "asks":
		require.Len(t, p.state.Requests.Open, 1)
		require.Equal(t, want.goesOn, goesOn)
		return
	}
	if p.state.Turn.Phase == TurnSummarizing {
		p.lines("says so far")
	}
	if want.handoff {
		p.lines("handoff-made so far")
	}
	require.NotNil(t, p.state.End.Outcome, "%s: the run is %s", kind, p.state.phaseName())
	require.Equal(t, want.then, string(p.state.End.Outcome.Error.Code))
	require.Equal(t, want.handoff, p.state.End.Outcome.Handoff != nil)
	require.Equal(t, want.goesOn, goesOn)
}
