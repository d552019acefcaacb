package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A model is offered each tool once: a way to park unless that is turned off, and to look after
// the agents below where it shall (HL-17, HL-18, HL-83, HL-87).
func TestToolsThatAreOffered(t *testing.T) {
	below, off := []agent.SubAgent{{Agent: "scout"}}, false
	for name, c := range map[string]struct {
		def  agent.Definition
		want []string
	}{
		"nothing":           {agent.Definition{}, nil},
		"may park":          {agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, []string{"await_resumption"}},
		"gives work":        {agent.Definition{Agents: below}, []string{"await_resumption", "subagent__scout"}},
		"may not park":      {agent.Definition{Agents: below, AwaitResumption: &off}, []string{"subagent__scout"}},
		"looks after it":    {agent.Definition{Agents: below, Lifecycle: true, AwaitResumption: &off}, []string{"subagent__scout", "subagent_list", "subagent_wait", "subagent_pause", "subagent_resume", "subagent_stop"}},
		"has nobody to see": {agent.Definition{Lifecycle: true}, nil},
	} {
		b := setup(t, c.def, testsuite.NewScript(testsuite.Reply{Text: "done"}))
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		var offered []string
		for _, spec := range b.script.Requests()[0].Tools {
			offered = append(offered, spec.Name)
		}
		require.Equal(t, c.want, offered, name)
	}
}

// A rule asks before each call of a tool, or before those whose arguments fit its
// schema; the others are made at once (HX-53).
func TestRulesAskByArguments(t *testing.T) {
	for name, c := range map[string]struct {
		arguments string
		asks      int
	}{"always": {"", 2}, "over 500": {`{"properties":{"eur":{"exclusiveMinimum":500}},"required":["eur"]}`, 1}} {
		t.Run(name, func(t *testing.T) {
			var paid []int
			type in struct {
				Eur int `json:"eur"`
			}
			pay := tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in in) (string, error) {
				paid = append(paid, in.Eur)
				return "paid", nil
			}, nil)
			both := []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 5}}, {Tool: "pay", Arguments: map[string]any{"eur": 800}}}
			def := agent.Definition{ParallelTools: 1, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, Arguments: json.RawMessage(c.arguments)}}}
			b := setup(t, def, testsuite.NewScript(testsuite.Reply{Calls: both}, testsuite.Reply{Text: "done"}), pay)
			b.after(time.Hour, func() {
				open := b.status(t).Suspension.Requests
				require.Len(t, open, c.asks)
				require.JSONEq(t, `{"eur":800}`, string(open[c.asks-1].Call.Arguments))
				require.Empty(t, paid, "a call that writes waits for the approvals of its reply")
				for _, q := range open {
					b.signal("approve", `{"request":"`+q.ID+`"}`)
				}
			})
			require.Equal(t, agent.StatusCompleted, b.start(t, agent.Start{}).Status)
			require.Equal(t, []int{5, 800}, paid)
		})
	}
}

// A number that no tool can read makes the call fail, and not the run.
func TestANumberOutOfRange(t *testing.T) {
	pay := tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in struct {
		Eur float64 `json:"eur"`
	}) (string, error) {
		return "paid", nil
	}, nil)
	for _, rules := range [][]agent.Rule{nil, {{Do: agent.RulingDeny, Arguments: json.RawMessage(`{"properties":{"eur":{"minimum":1}}}`)}}} {
		b := setup(t, agent.Definition{Rules: rules}, testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": json.Number("1e400")}}}}, testsuite.Reply{Text: "done"}), pay)
		o := b.run(t, "go")
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
		require.Equal(t, 1, o.Tools[0].Rejected+o.Tools[0].Failed, "%+v", o.Tools)
	}
}

// Arguments that do not fit their tool's schema are answered before any rule is asked: nobody
// approves them, and a rule that does not know a name is not passed by it.
func TestArgumentsThatDoNotFitAskNobody(t *testing.T) {
	paid := 0
	pay := tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in struct {
		Eur float64 `json:"eur"`
	}) (string, error) {
		paid++
		return "paid", nil
	}, nil)
	for _, c := range []struct {
		arguments map[string]any
		says      string
	}{
		{map[string]any{"Eur": 800}, `there is no argument "Eur"; eur is meant`},
		{map[string]any{"eur": 800, "note": "x"}, "The arguments are: eur"},
		{map[string]any{"eur": "800"}, `want "number"`},
		{map[string]any{"eur": json.Number("1e400")}, "1e400"},
	} {
		script := testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: c.arguments}}}, testsuite.Reply{Text: "done"})
		b := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk}, {Do: agent.RulingDeny, Arguments: json.RawMessage(`{"properties":{"eur":{"minimum":500}},"required":["eur"]}`)}}}, script, pay)
		o := b.run(t, "go")
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
		require.Equal(t, 1, o.Tools[0].Rejected)
		requests := script.Requests()
		told := requests[len(requests)-1].Messages
		require.Contains(t, told[len(told)-1].Parts[0].Result.Text, c.says)
	}
	require.Zero(t, paid)
}

// A tool that asks by itself asks in an agent without rules, and in one that allows it.
func TestAToolAsksByItself(t *testing.T) {
	for _, rules := range [][]agent.Rule{nil, {{Do: agent.RulingAllow}}} {
		paid, asked := 0, 0
		pay := tool.New("pay", "pays", func(_ context.Context, _ *tool.Call, in struct {
			Eur float64 `json:"eur"`
		}) (string, error) {
			paid++
			return "paid", nil
		}, &tool.Options{Approval: &agent.ToolApproval{Reason: "It moves money."}})
		b := setup(t, agent.Definition{Rules: rules}, testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 8}}}}, testsuite.Reply{Text: "done"}), pay)
		b.after(time.Hour, func() {
			open := b.status(t).Suspension.Requests
			require.Len(t, open, 1)
			asked++
			require.Contains(t, open[0].Text, "It moves money.")
			require.Zero(t, paid)
			b.signal("approve", `{"request":"`+open[0].ID+`"}`)
		})
		require.Equal(t, agent.StatusCompleted, b.start(t, agent.Start{}).Status)
		require.Equal(t, []int{1, 1}, []int{asked, paid})
	}
}

// What no rule allows is denied under default: deny; the runtime's own tools are not.
func TestWhatNoRuleAllowsIsDenied(t *testing.T) {
	done := map[string]int{}
	quick := func(name string) tool.Tool {
		return tool.New(name, name, func(context.Context, *tool.Call, struct{}) (string, error) { done[name]++; return "ok", nil }, nil)
	}
	b := setup(t, agent.Definition{Completion: agent.CompletionTool, Default: agent.RulingDeny, Rules: []agent.Rule{{Do: agent.RulingAllow, Tools: []string{"look"}}}},
		testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "look"}, {Tool: "pay"}}}, testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.FinishTool, Arguments: map[string]any{"summary": "done"}}}}), quick("look"), quick("pay"))
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, map[string]int{"look": 1}, done)
}
