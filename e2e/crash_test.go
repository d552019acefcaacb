package e2e

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// cashbook is a tool's effect on the world: a call that is made again has none.
type cashbook struct {
	mu      sync.Mutex
	entries map[string]int // by key
}

func (b *cashbook) pay(_ context.Context, c *tool.Call, in struct{ EUR int }) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries[c.Key] = in.EUR
	return "paid", nil
}

// A story with agents below agents, a question, an approval and a hold on the whole
// tree, whose worker dies before, in and after each of its steps, comes to the same
// end every time.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c, how := dial(t, shared(t)), connection(slog.DiscardHandler)
	testsuite.EveryCrash(t, func(t testing.TB, crash *testsuite.Crash) any {
		book := &cashbook{entries: map[string]int{}}
		firm := &worker.Options{
			Tools: []tool.Tool{tool.New("pay", "pays an amount", book.pay, &tool.Options{Attempts: 5})},
			Agents: []agent.Definition{
				{Name: "lead", Model: "m", Tools: []string{"pay", agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "clerk"}}},
				{Name: "clerk", Model: "m", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}},
			},
		}
		s := testsuite.New(t, &testsuite.Options{Worker: firm, Server: c, Connection: how, Crash: crash, Model: testsuite.NewScript(
			testsuite.Reply{Match: "^book", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "From which account?"}}}},
			testsuite.Reply{Match: "^the main one", Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "pay the hotel"}}}},
			testsuite.Reply{Match: "^pay", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 800}}}},
			testsuite.Reply{Match: "^paid", Text: "It is settled."},
			testsuite.Reply{Match: "settled", Text: "All is booked."},
		)})
		lead := s.Start("lead", "book", nil)
		lead.Answer("the main one")
		require.Equal(t, agent.SuspensionAwaitingChildren, lead.Suspended().Kind)
		lead.Pause()
		clerk := s.Run(lead.Session + "/clerk-1")
		clerk.Approve()
		lead.Resume()
		o := lead.Completed()
		return map[string]any{
			"text": o.Text, "turns": o.Turns, "paid": len(book.entries), "lead": said(lead), "clerk": said(clerk),
		}
	})
}

// A flow with a fan-out, an agent, an approval and a step that may not be made again, whose worker
// dies before, in and after each of its steps, comes to the same end every time. What may be made
// again is (OA-102). Whether the other had its effect, a person is asked, who looks.
func TestEveryCrashOfAFlow(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c, how := dial(t, shared(t)), connection(slog.DiscardHandler)
	var unknown atomic.Int32
	testsuite.EveryCrash(t, func(t testing.TB, crash *testsuite.Crash) any {
		book, charged := &cashbook{entries: map[string]int{}}, &counts{}
		s := testsuite.New(t, &testsuite.Options{
			Worker: &worker.Options{
				Flows:  []flow.Flow{trip(book, charged)},
				Tools:  []tool.Tool{tool.New("pay", "pays an amount", book.pay, &tool.Options{Attempts: 5})},
				Agents: []agent.Definition{{Name: "clerk", Model: "m", Tools: []string{"pay"}}},
			},
			Server: c, Connection: how, Crash: crash, Model: testsuite.NewScript(
				testsuite.Reply{Match: "^settle", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 800}}}},
				testsuite.Reply{Match: "^paid", Text: "It is settled."},
			),
		})
		run := s.Start("trip", "book", nil)
		for {
			o := run.Wait()
			if o.Status != agent.StatusSuspended {
				require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
				return map[string]any{"text": o.Text, "booked": len(book.entries), "charged": charged.n["charge"]}
			}
			require.Len(t, o.Suspension.Requests, 1)
			switch r := o.Suspension.Requests[0]; {
			case r.Step == "approve":
				run.Approve()
			default: // it died in the step that may not be made again
				require.Equal(t, "charge", r.Step)
				unknown.Add(1)
				run.Answer(map[bool]string{true: "done", false: "again"}[charged.len() > 0])
			}
		}
	})
	require.Positive(t, unknown.Load(), "a person was asked")
}

// trip is the flow that crashes.
func trip(book *cashbook, charged *counts) flow.Flow {
	return flow.New("trip", func(c flow.Context, _ string) (string, error) {
		stops, err := flow.Map(c, "stop", []string{"Ulm", "Bern", "Genoa", "Pisa"}, func(c flow.Context, stop string) (string, error) {
			return flow.Do(c, "book", func(ctx context.Context, k *tool.Call) (string, error) {
				_, err := book.pay(ctx, k, struct{ EUR int }{10})
				return stop, err
			}, &flow.StepOptions{Attempts: 5})
		}, &flow.MapOptions{Width: 2})
		if err != nil {
			return "", err
		}
		settled, err := flow.Agent[string](c, "clerk", "settle it", nil)
		if err != nil {
			return "", err
		}
		if d, err := flow.Approve(c, "Charge it?", stops, nil); err != nil || !d.Approved {
			return "", err
		}
		if _, err := flow.Do(c, "charge", func(context.Context, *tool.Call) (int, error) { return charged.add("charge"), nil }, nil); err != nil {
			return "", err
		}
		return strings.Join(flow.Values(stops), " ") + ": " + settled, nil
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "clerk"}}})
}

// tokens are what a sub-agent has used: more if an attempt at a model call was lost.
var tokens = regexp.MustCompile(`"tokens_used":\d+`)

// said are the lines of a story that the model knows; whether a run heard first that
// one below it goes on, or that it has ended, is nobody's business.
func said(r *testsuite.Run) (lines []string) {
	for line := range strings.Lines(r.Story()) {
		for _, head := range []string{"user", "assistant", "  t", "turn"} {
			if strings.HasPrefix(line, head) {
				lines = append(lines, tokens.ReplaceAllString(line, ""))
			}
		}
	}
	return lines
}
