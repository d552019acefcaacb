package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The origin keeps what the beginning needs until the run has opened, and of a start that
// can't be meant only a name that could be one.
func TestWhatAnOriginKeeps(t *testing.T) {
	for name, kept := range map[string]string{"reviewer": "reviewer", "no name\n": ""} {
		o := Origin{}
		o.refuseStart(agent.Start{Agent: name, Input: agent.Input{Text: "secret"}})
		require.Equal(t, agent.Start{Agent: kept}, *o.Start)
	}
	o := Origin{}
	o.setStart(agent.Start{Input: agent.Input{Text: "go"}, Labels: map[string]string{"a": "b"}}, "brief")
	o.located(Located{Unrecovered: "gone"})
	o.located(Located{Head: "h"})
	require.Equal(t, []string{"h", "gone"}, []string{o.StartPoint.Head, o.StartPoint.Unrecovered})
	o.dropStart()
	require.Equal(t, Origin{Task: "go", Labels: map[string]string{"a": "b"}}, o)
}

// A limit of cost needs the prices of all models that may be asked. A flow has no model of its own: those
// that its function may call count.
func TestACostLimitNeedsPrices(t *testing.T) {
	for _, c := range []struct {
		spec  string
		fails bool
	}{
		{`{"price":{"input":1},"limits":{"cost_usd":1}}`, false},
		{`{"limits":{"cost_usd":1}}`, true},
		{`{"limits":{"tokens":1}}`, false},
		{`{"flow":true,"limits":{"cost_usd":1}}`, false},
		{`{"flow":true,"fallbacks":["m"],"limits":{"cost_usd":1}}`, false},
		{`{"flow":true,"fallbacks":["m"],"unpriced":["m"],"limits":{"cost_usd":1}}`, true},
		{`{"flow":true,"fallbacks":["m"],"unpriced":["m"]}`, false},
	} {
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		p.lines("begin go", "opened "+c.spec)
		require.Equal(t, c.fails, p.state.End.Outcome != nil, c.spec)
		if c.fails {
			require.Equal(t, agent.CodeInvalidInput, p.state.End.Outcome.Error.Code)
		}
	}
}

// A retry without a message has the task of the run before it, in listings and in a handoff. Its own
// message is the task if it has one. The task of another agent, or of one that hides it, is not listed.
func TestARetryHasTheFormerTask(t *testing.T) {
	for _, tt := range []struct{ input, of, want string }{
		{``, "a", "Pay invoice 118"},
		{`,"input":{"text":"Pay by card"}`, "a", "Pay by card"},
		{``, "b", ""},
		{``, "", ""},
	} {
		p := played(t, `started {"from":{"checkpoint":"cp-12","retry":"r0"}`+tt.input+`}`, `opened-old`)
		p.lines(`located {"Task":"Pay\ninvoice 118","TaskOf":"` + tt.of + `","Forked":{"session":"s","run":"r0","checkpoint":"cp-12","retry":true},"Turn":2}`)
		require.Equal(t, tt.want, p.state.Memo().Task)
		require.Equal(t, tt.want, p.state.Origin.Task, "the handoff has it")
		require.Empty(t, p.state.Checks.Asked, "no agent looks at its answer")
	}
}
