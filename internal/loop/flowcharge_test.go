package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// prompt has 24 bytes, so 8 tokens. They cost 16 millionths of a dollar, and the replies below 1,300.
const prompt = `{"text":"What is this?"}`

const (
	generating = `opened {"flow":true,"fallbacks":["other","m"],"prices":[{"input":7},{"input":2,"output":5}]`
	generated  = ` ok {"input_tokens":400,"output_tokens":100} late`
)

// askM returns the steps of a flow that asks the model m so many times at once.
func askM(n int, prompt string) string {
	steps := ""
	for i := range n {
		steps += []string{"steps ", " | "}[min(i, 1)] + "x." + string(rune('1'+i)) + "/g generate " + prompt
	}
	return steps
}

// A flow's model calls that nobody waits for any more were paid: the run charges an estimate for each,
// and what a late result has used beyond that.
func TestAFlowIsChargedForLostModelCalls(t *testing.T) {
	const prompt = `{"text":"What?","model":"m"}` // 28 bytes, so 10 tokens
	for name, over := range map[string][]string{
		"the run ends": {`flow {"done":true}`}, "a grace ends": {"flow {}", "interrupt {}", "after 5s", "timer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			p.lines("begin go", generating+"}", askM(3, prompt), "generated t1.1"+generated)
			p.lines(over...)
			require.Equal(t, agent.Usage{Input: 420, Output: 100}, p.state.Budget.Usage)
			require.EqualValues(t, 1300+2*20, p.state.Budget.Cost)
			require.Equal(t, agent.Estimate{Tokens: 20, Cost: 40}, p.state.Budget.Estimated)
			p.lines("generated t1.2" + generated)
			require.Equal(t, agent.Usage{Input: 810, Output: 200}, p.state.Budget.Usage)
			require.EqualValues(t, 2*1300+20, p.state.Budget.Cost)
			p.lines(`lost t1.3 [{"estimated":true}]`)
			require.Equal(t, agent.Usage{Input: 810, Output: 200}, p.state.Budget.Usage, "its estimate is charged")
			require.EqualValues(t, 2*1300+20, p.state.Budget.Cost)
			p.line("result t1.3 ok late")
			require.Equal(t, agent.CodeStale, agent.CodeOf(p.wrong))
			if p.state.Phase != RunEnding {
				return
			}
			p.lines("sealed")
			require.Equal(t, agent.Usage{Input: 810, Output: 200}, p.state.End.Outcome.Usage)
			p.line("generated t1.2" + generated)
			require.Equal(t, agent.CodeStale, agent.CodeOf(p.wrong), "nothing leaves an end")
		})
	}
}

// What one late result has used is not subtracted from the estimate of another call, which may never
// come back.
func TestALateResultHasItsOwnEstimate(t *testing.T) {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines("begin go", generating+"}", askM(2, `{"text":"What?","model":"m"}`), "interrupt {}", "after 5s", "timer", "generated t1.1"+generated)
	require.Equal(t, agent.Usage{Input: 410, Output: 100}, p.state.Budget.Usage)
	require.EqualValues(t, 1320, p.state.Budget.Cost)
}

// The worker of a model call is lost. What its attempts have left is charged with the price of the
// model that the prompt names; for one that left nothing, the prompt is.
func TestALostModelCallOfAFlowHasACost(t *testing.T) {
	for _, c := range []struct {
		name, prompt, charges string
		used                  agent.Usage
		cost                  agent.USD
	}{
		{"nothing is known", `{"text":"What?","model":"m"}`, `[{"estimated":true}]`, agent.Usage{Input: 10}, 20},
		{"two attempts", `{"text":"What?","model":"m"}`, `[{"estimated":true},{"estimated":true}]`, agent.Usage{Input: 20}, 40},
		{"a heartbeat", `{"text":"What?","model":"m"}`, `[{"usage":{"input_tokens":50,"output_tokens":4},"estimated":true}]`, agent.Usage{Input: 50, Output: 4}, 120},
		{"the first model", `{"text":"What is this?"}`, `[{"estimated":true}]`, agent.Usage{Input: 8}, 56},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			p.lines("begin go", generating+"}", askM(1, c.prompt), "lost t1.1 "+c.charges)
			require.Equal(t, c.used, p.state.Budget.Usage)
			require.Equal(t, c.cost, p.state.Budget.Cost)
			require.Equal(t, agent.Estimate{Tokens: c.used.Total(), Cost: c.cost}, p.state.Budget.Estimated)
		})
	}
}

// A model call has no effect that somebody would have to look for.
func TestALostModelCallIsNoUnknownEffect(t *testing.T) {
	for name, over := range map[string][]string{
		"the run ends":          {`flow {"done":true}`},
		"it is cancelled":       {"flow {}", "cancelled", "after 5s", "timer"},
		"it is cancelled twice": {"flow {}", "cancelled", "cancelled"},
		"it is stopped":         {"flow {}", "stop {}", "after 15s", "timer", "after 5s", "timer"},
		"its worker, stopping":  {"flow {}", "stop {}", `lost t1.1 [{"estimated":true}]`},
		"dropped":               {"drops x.1/g", `lost t1.1 [{"estimated":true}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			p.lines("begin go", generating+"}", askM(1, prompt)+" | y do", "result t1.2 ok done")
			p.lines(over...)
			require.Equal(t, -1, p.state.Calls.findRunning("t1.1"))
			require.Empty(t, p.state.Calls.Unknown)
			require.Equal(t, []agent.ToolCount{{Tool: "y", Calls: 1, OK: 1}, {Tool: agent.GenerateTool, Calls: 1, Skipped: 1}}, p.state.Calls.Counts)
		})
	}
}

// Model calls begin as long as something is left of a limit if those in flight use what they may. The
// others begin when these have returned.
func TestModelCallsInFlightReserveWhatTheyMayUse(t *testing.T) {
	const prompt = `{"text":"What?","model":"m","max_output_tokens":100}` // 52 bytes, so 18 tokens; it costs 536
	for limits, most := range map[string]int{
		`{}`: 9, `{"tokens":100000,"cost_usd":1}`: 9, `{"tokens":236}`: 2, `{"tokens":237}`: 3, `{"cost_usd":0.001072}`: 2, `{"cost_usd":0.001073}`: 3, `{"tokens":1}`: 1,
	} {
		t.Run(limits, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			p.lines("begin go", generating+`,"parallel_tools":64,"limits":`+limits+"}", askM(9, prompt))
			require.Equal(t, most, p.state.Calls.runningCount())
			p.lines(`generated t1.1 ok {"input_tokens":0,"output_tokens":0} late`, "flow {}") // it was free
			require.Equal(t, min(most, 8), p.state.Calls.runningCount())
		})
	}
}

// A flow that its parent has granted some tokens asks for more when they are used, also while one of its
// steps stays open. It goes on with a grant, and without one it is suspended until it gets one.
func TestAFlowKeepsToItsGrantWhileAStepWaits(t *testing.T) {
	const ask = `{"text":"a","model":"m"}`
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines(`begin-child {"parent":{"session":"s","run":"p"},"depth":1,"max_depth":2,"grant":{"tokens":400,"agents":1,"cost_usd":-1,"turns":-1,"wall_clock":-1}}`,
		generating+`,"toolset":[{"name":"ask_user"}]}`, `steps w ask_user {"question":"x"} | g1 generate `+ask, "generated t1.2"+generated)
	require.Contains(t, p.out.String(), "asks for 500 tokens")
	require.Equal(t, 1, p.state.Turn.N, "it is not asked for more")
	p.lines("sealed")
	require.Equal(t, agent.StatusSuspended, p.state.Status())
	require.Equal(t, agent.SuspensionAwaitingBudget, p.state.Suspension().Kind)
	p.lines(`granted {"granted":{"tokens":1000,"agents":1,"cost_usd":-1,"turns":-1,"wall_clock":-1}}`, "steps g2 generate "+ask)
	require.Equal(t, 1, p.state.Calls.runningCount())
}
