package e2e

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A run with hooks before calls and after turns, whose worker dies before, in and after each of its
// steps, comes to the same end every time: a call that a check has vetoed is never made, and a
// decision counts once.
func TestEveryCrashOfHooks(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c, how := dial(t, shared(t)), connection(slog.DiscardHandler)
	testsuite.EveryCrash(t, func(t testing.TB, crash *testsuite.Crash) any {
		firm := &worker.Options{
			Tools: []tool.Tool{
				tool.New("add", "adds", func(_ context.Context, _ *tool.Call, in struct{ A int }) (int, error) {
					if in.A == 0 {
						t.Error("a call was made that a check had vetoed")
					}
					return in.A + 1, nil
				}, &tool.Options{ReadOnly: true, Attempts: 5}),
				tool.New("plan", "looks at calls", func(_ context.Context, _ *tool.Call, p agent.ProposedCalls) (string, error) {
					if string(p.Calls[0].Arguments) == `{"A":0}` {
						return "not zero", nil
					}
					return "", nil
				}, readOnly),
				tool.New("look", "looks at a turn", func(_ context.Context, _ *tool.Call, r agent.TurnReport) (agent.TurnDecision, error) {
					if r.Turn == 1 {
						return agent.TurnDecision{Message: "try one"}, nil
					}
					return agent.TurnDecision{Action: agent.TurnExtend, By: 1, Reason: "it gets on"}, nil
				}, readOnly),
			},
			Agents: []agent.Definition{{Name: "lead", Model: "m", Tools: []string{"add"}, Limits: agent.Limits{Adaptive: &agent.AdaptiveLimit{Initial: 2, Max: 4}}, Hooks: agent.Hooks{
				BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "plan", Tool: "plan"}}},
				AfterTurn:   agent.TurnHooks{Checks: []agent.Check{{Name: "look", Tool: "look"}}},
			}}},
		}
		add := func(a int) []testsuite.Call {
			return []testsuite.Call{{Tool: "add", Arguments: map[string]any{"A": a}}}
		}
		s := testsuite.New(t, &testsuite.Options{Worker: firm, Server: c, Connection: how, Crash: crash, Model: testsuite.NewScript(
			testsuite.Reply{Match: "^begin", Calls: add(0)},
			testsuite.Reply{Match: "try one", Calls: add(1)},
			testsuite.Reply{Match: "^2$", Text: "two"},
		)})
		lead := s.Start("lead", "begin", nil)
		o := lead.Completed()
		require.Equal(t, 3, o.AdaptiveBudget.FinalLimit)
		return map[string]any{"text": o.Text, "turns": o.Turns, "moves": o.AdaptiveBudget.ExtensionsUsed, "said": said(lead)}
	})
}
