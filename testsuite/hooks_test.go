package testsuite_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A judge looks at calls before they are made: with replace they are not made, with retain they are,
// and the model reads why (HA-79). A Go function looks at each turn: it offers no tools once it has seen
// enough, and the model reads its message. It is called once per turn (HA-69).
func TestHooksLookAtCallsAndTurns(t *testing.T) {
	for _, on := range []agent.VetoAction{agent.VetoReplace, agent.VetoRetain} {
		var made []string
		calls := func(of string) testsuite.Reply {
			return testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"of": of}}}}
		}
		script := testsuite.NewScript(
			testsuite.Reply{Match: `"of":"secrets"`, Text: `{"verdict":"veto","reasoning":"secrets are not asked for"}`},
			testsuite.Reply{Match: "May these calls be made", Text: `{"verdict":"accept","reasoning":"fine"}`},
			calls("secrets"), calls("notes"), testsuite.Reply{Text: "Three notes."},
		)
		read := func(_ context.Context, _ *tool.Call, in struct {
			Of string `json:"of"`
		}) (string, error) {
			made = append(made, in.Of)
			return "three", nil
		}
		var seen []agent.TurnReport
		look := func(_ context.Context, _ *tool.Call, r agent.TurnReport) (agent.TurnDecision, error) {
			seen = append(seen, r)
			if r.Turn < 2 {
				return agent.TurnDecision{}, nil
			}
			return agent.TurnDecision{Message: "You have it. Answer now.", Next: &agent.NextTurn{Tools: []string{}}}, nil
		}
		s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{Tools: []tool.Tool{
			tool.New("read", "Reads.", read, nil), tool.New("look", "Looks at a turn.", look, &tool.Options{ReadOnly: true}),
		}, Agents: []agent.Definition{{Name: "reader", Model: "anthropic/claude-sonnet-5", Tools: []string{"read"}, Hooks: agent.Hooks{
			BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "plan", Judge: &agent.Judge{}}}, OnVeto: on},
			AfterTurn:   agent.TurnHooks{Checks: []agent.Check{{Name: "look", Tool: "look"}}},
		}}}}})
		run := s.Start("reader", "Count the notes", nil)
		require.Equal(t, "Three notes.", run.Completed().Text)
		want, status := []string{"notes"}, agent.CallRejected
		if on == agent.VetoRetain {
			want, status = []string{"secrets", "notes"}, agent.CallOK
		}
		require.Equal(t, want, made)
		require.Len(t, seen, 2)
		require.Equal(t, status, seen[0].Results[0].Status)
		require.Equal(t, "three", seen[1].Results[0].Text)
		requests := script.Requests()
		last := requests[len(requests)-1]
		require.Len(t, last.Tools, 1)
		require.Equal(t, agent.AwaitResumptionTool, last.Tools[0].Name, "the runtime's own tools stay")
		require.Contains(t, last.Messages[len(last.Messages)-1].Text(), "Answer now")
	}
}

// Each form of what a tool returns after a turn: nothing, a text for the model, true, an object with a
// message, with a stop and its reason, and with options of the next turn, which are those of one turn
// (HA-88).
func TestWhatAHookOfATurnReturns(t *testing.T) {
	cold := 0.25
	for name, tt := range map[string]struct {
		returns any
		reason  string // of a stop; empty if the run goes on
		reads   string // what the model reads after the turn
		next    *agent.NextTurn
	}{
		"nothing":             {returns: nil},
		"false":               {returns: false},
		"a text":              {returns: "Be short.", reads: "Be short."},
		"true":                {returns: true, reason: agent.ReasonPostTurn},
		"a message":           {returns: agent.TurnDecision{Message: "Be kind."}, reads: "Be kind."},
		"a stop":              {returns: agent.TurnDecision{Action: agent.TurnStop}, reason: agent.ReasonPostTurn},
		"a stop for a reason": {returns: agent.TurnDecision{Action: agent.TurnStop, Reason: "enough"}, reason: "enough"},
		"options": {returns: agent.TurnDecision{Next: &agent.NextTurn{Tools: []string{}, Model: "anthropic/claude-opus-4-8", MaxOutputTokens: 99, Temperature: &cold, Reasoning: agent.ReasoningLow}},
			next: &agent.NextTurn{Tools: []string{}, Model: "anthropic/claude-opus-4-8", MaxOutputTokens: 99, Temperature: &cold, Reasoning: agent.ReasoningLow}},
		"one option": {returns: agent.TurnDecision{Next: &agent.NextTurn{Reasoning: agent.ReasoningHigh}}, next: &agent.NextTurn{Reasoning: agent.ReasoningHigh}},
	} {
		t.Run(name, func(t *testing.T) {
			read := testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{}}}}
			script := testsuite.NewScript(testsuite.Reply{Match: "handoff|summar", Text: "so far"}, read, read, testsuite.Reply{Text: "Done."})
			look := func(_ context.Context, _ *tool.Call, r agent.TurnReport) (any, error) {
				if r.Turn > 1 {
					return nil, nil
				}
				return tt.returns, nil
			}
			s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{Tools: []tool.Tool{
				tool.New("read", "Reads.", func(context.Context, *tool.Call, struct{}) (string, error) { return "three", nil }, nil),
				tool.New("look", "Looks at a turn.", look, &tool.Options{ReadOnly: true}),
			}, Agents: []agent.Definition{{Name: "reader", Model: "anthropic/claude-sonnet-5", Fallbacks: []string{"anthropic/claude-opus-4-8"}, Tools: []string{"read"}, MaxOutputTokens: 500, Hooks: agent.Hooks{
				AfterTurn: agent.TurnHooks{Checks: []agent.Check{{Name: "look", Tool: "look"}}},
			}}}}})
			out := s.Start("reader", "Read", nil).Ended()
			requests := script.Requests()
			if tt.reason != "" {
				require.Equal(t, agent.StatusStopped, out.Status)
				require.Equal(t, tt.reason, out.Reason)
				return
			}
			require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
			require.Len(t, requests, 3)
			second, third := requests[1], requests[2]
			require.Contains(t, second.Messages[len(second.Messages)-1].Text(), tt.reads)
			if tt.next == nil {
				tt.next = &agent.NextTurn{}
			}
			require.Equal(t, cmp.Or(tt.next.Model, "anthropic/claude-sonnet-5"), second.Model)
			require.Equal(t, cmp.Or(tt.next.MaxOutputTokens, 500), second.MaxOutputTokens)
			require.Equal(t, tt.next.Temperature, second.Temperature)
			require.Equal(t, tt.next.Reasoning, second.Reasoning)
			offers := func(r model.Request) bool {
				return slices.ContainsFunc(r.Tools, func(o agent.ToolSpec) bool { return o.Name == "read" })
			}
			require.Equal(t, tt.next.Tools == nil, offers(second))
			require.True(t, offers(third), "the turn after it is as usual")
			require.Equal(t, []any{"anthropic/claude-sonnet-5", 500, (*float64)(nil), agent.Reasoning("")}, []any{third.Model, third.MaxOutputTokens, third.Temperature, third.Reasoning})
		})
	}
}

// A guard looks at the calls of every run of a session: their ids begin again in each. It is a function that
// decides by the arguments (HA-116).
func TestAGuardLooksAtEveryRun(t *testing.T) {
	for _, carry := range []agent.Carry{"", agent.CarryReset} {
		var made []string
		call := func(task, of string) testsuite.Reply {
			return testsuite.Reply{Match: `\A` + task, Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"of": of}}}}
		}
		read := func(_ context.Context, _ *tool.Call, in struct {
			Of string `json:"of"`
		}) (string, error) {
			made = append(made, in.Of)
			return "three", nil
		}
		guard := func(_ context.Context, _ *tool.Call, p agent.ProposedCalls) (string, error) {
			for _, c := range p.Calls {
				if string(c.Arguments) == `{"of":"secrets"}` {
					return "no secrets", nil
				}
			}
			return "", nil
		}
		s := testsuite.New(t, &testsuite.Options{
			Model: testsuite.NewScript(call("Count", "notes"), call("Open", "secrets"), testsuite.Reply{Match: ".*", Text: "done"}),
			Worker: &worker.Options{
				Tools: []tool.Tool{tool.New("read", "Reads.", read, nil), tool.New("guard", "Looks.", guard, &tool.Options{ReadOnly: true})},
				Agents: []agent.Definition{{Name: "reader", Model: "anthropic/claude-sonnet-5", Tools: []string{"read"}, Hooks: agent.Hooks{
					BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "guard", Tool: "guard"}}},
				}}},
			},
		})
		s.Start("reader", "Count the notes", &client.StartOptions{Session: "s"}).Completed()
		s.Start("reader", "Open it", &client.StartOptions{Session: "s", Carry: carry}).Completed()
		require.Equal(t, []string{"notes"}, made, "carry %q", carry)
	}
}
