package testsuite_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// asked is what a model was asked for, and the level of reasoning in the request.
type asked struct{ what, level string }

// thoughts returns the levels of a script's requests, in their order.
func thoughts(script *testsuite.Script, what func(r model.Request) string) (list []asked) {
	for _, r := range script.Requests() {
		list = append(list, asked{what(r), string(r.Reasoning)})
	}
	return list
}

// A policy chooses how much a model thinks, by the scale of the work and by what a call is for: a turn, a
// judge, or a summary (HA-50).
func TestReasoningPolicyChoosesALevel(t *testing.T) {
	policy := func(s agent.ReasoningScale, task agent.ReasoningTask) *agent.ReasoningPolicy {
		return &agent.ReasoningPolicy{Scale: s, Task: task}
	}
	for name, tt := range map[string]struct {
		policy               *agent.ReasoningPolicy
		turn, judge, summary string
	}{
		"defaults":       {policy("", ""), "medium", "medium", "minimal"},
		"small":          {policy("small", ""), "low", "low", "minimal"},
		"large":          {policy("large", ""), "high", "high", "low"},
		"code":           {policy("", "code"), "high", "medium", "minimal"},
		"code and large": {policy("large", "code"), "xhigh", "high", "low"},
		"chat":           {policy("small", "chat"), "minimal", "low", "minimal"},
	} {
		t.Run(name, func(t *testing.T) {
			read := testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{}}}}
			script := testsuite.NewScript(
				testsuite.Reply{Match: "Is the work done", Text: accepts, Repeat: 2},
				testsuite.Reply{Match: "Sum up this conversation", Text: "so far"}, read, testsuite.Reply{Text: "Three."})
			s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{
				Tools: []tool.Tool{tool.New("read", "Reads.", func(context.Context, *tool.Call, struct{}) (string, error) { return "three", nil }, nil)},
				Agents: []agent.Definition{
					{Name: "reader", Model: "anthropic/claude-sonnet-5", Tools: []string{"read"}, ReasoningPolicy: tt.policy, Verify: agent.Verify{Checks: []agent.Check{
						{Name: "rubric", Judge: &agent.Judge{}},
					}}},
				},
			}})
			run := s.Start("reader", "Count the notes", &client.StartOptions{Session: "s"})
			run.Completed()
			s.Start("reader", "Again", &client.StartOptions{Session: "s", Carry: agent.CarryCompact}).Completed()
			what := func(r model.Request) string {
				switch {
				case r.NoCalls:
					return "summary"
				case len(r.Tools) == 0:
					return "judge"
				}
				return "turn"
			}
			require.Equal(t, []asked{
				{"turn", tt.turn}, {"turn", tt.turn}, {"judge", tt.judge},
				{"summary", tt.summary}, {"turn", tt.turn}, {"turn", tt.turn}, {"judge", tt.judge},
			}, thoughts(script, what))
			task := tt.policy.Task
			if task == "" {
				task = agent.ReasoningAgent
			}
			spec := run.Events()[0].Started.Spec
			require.Equal(t, task, spec.ReasoningPolicy.Task, "the log has what was inferred")
			require.NotEmpty(t, spec.ReasoningPolicy.Scale)
		})
	}
}

// A level that is named wins over the policy, also off: that of the agent, of its role, and of a hook for
// the next turn (HA-50).
func TestANamedReasoningWins(t *testing.T) {
	readOnly := &tool.Options{ReadOnly: true}
	policy := &agent.ReasoningPolicy{Scale: agent.ReasoningLarge, Task: agent.ReasoningCode}
	rubric := agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}}}}
	looks := agent.Hooks{AfterTurn: agent.TurnHooks{Checks: []agent.Check{{Name: "look", Tool: "look"}}}}
	for name, tt := range map[string]struct {
		def    agent.Definition
		next   agent.NextTurn
		levels []asked
	}{
		"the agent":                   {agent.Definition{Reasoning: agent.ReasoningLow, Verify: rubric}, agent.NextTurn{}, []asked{{"", "low"}, {"", "low"}, {"", "low"}}},
		"off":                         {agent.Definition{Reasoning: agent.ReasoningOff, Verify: rubric}, agent.NextTurn{}, []asked{{"", "off"}, {"", "off"}, {"", "off"}}},
		"the role":                    {agent.Definition{Role: "researcher"}, agent.NextTurn{}, []asked{{"", "medium"}, {"", "medium"}}},
		"a hook":                      {agent.Definition{Hooks: looks, Verify: rubric}, agent.NextTurn{Reasoning: agent.ReasoningMinimal}, []asked{{"", "xhigh"}, {"", "minimal"}, {"", "high"}}},
		"a hook about something else": {agent.Definition{Hooks: looks, Verify: rubric}, agent.NextTurn{MaxOutputTokens: 99}, []asked{{"", "xhigh"}, {"", "xhigh"}, {"", "high"}}},
		"nobody":                      {agent.Definition{Verify: rubric}, agent.NextTurn{}, []asked{{"", "xhigh"}, {"", "xhigh"}, {"", "high"}}},
	} {
		t.Run(name, func(t *testing.T) {
			script := testsuite.NewScript(testsuite.Reply{Match: "Is the work done", Text: accepts},
				testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{}}}}, testsuite.Reply{Text: "Three."},
			).WithInfo(model.Info{Reasoning: []agent.Reasoning{agent.ReasoningLow, agent.ReasoningHigh}})
			look := func(context.Context, *tool.Call, agent.TurnReport) (any, error) {
				return agent.TurnDecision{Next: &tt.next}, nil
			}
			tt.def.Name, tt.def.Model, tt.def.Tools, tt.def.ReasoningPolicy = "reader", "anthropic/claude-sonnet-5", []string{"read"}, policy
			s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{Agents: []agent.Definition{tt.def}, Tools: []tool.Tool{
				tool.New("read", "Reads.", func(context.Context, *tool.Call, struct{}) (string, error) { return "three", nil }, readOnly), tool.New("look", "Looks.", look, readOnly),
			}}})
			s.Start("reader", "Count the notes", nil).Completed()
			require.Equal(t, tt.levels, thoughts(script, func(model.Request) string { return "" }))
			for _, r := range script.Requests() {
				if judges := len(r.Tools) == 0; judges {
					require.Equal(t, map[bool]int{true: 8192, false: 1024}[tt.def.Reasoning == ""], r.MaxOutputTokens, "what a policy lets a judge think has room")
				}
			}
		})
	}
}
