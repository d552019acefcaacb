package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// threeLevels is a lead whose question comes after the approval of an agent two levels below.
func threeLevels(t *testing.T) *stage {
	s := on(t, shared(t))
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Temporal: stopsSoon,
		Tools: []tool.Tool{tool.New("pay", "Pays.", func(context.Context, *tool.Call, struct{ EUR int }) (string, error) { return "paid", nil }, &tool.Options{Approval: &agent.ToolApproval{}})},
		Agents: []agent.Definition{
			{Name: "tester", Model: "script", Tools: []string{agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "clerk", Tools: []string{"*"}}}},
			{Name: "clerk", Model: "script", Agents: []agent.SubAgent{{Agent: "payer", Tools: []string{"*"}}}, Tools: []string{"pay"}},
			{Name: "payer", Model: "script", Tools: []string{"pay"}},
		},
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Match: "^go$", Calls: call("subagent__clerk", map[string]any{"task": "book"})},
			testsuite.Reply{Match: "^book$", Calls: call("subagent__payer", map[string]any{"task": "settle"})},
			testsuite.Reply{Match: "^settle$", Calls: call("pay", map[string]any{"EUR": 80})},
			testsuite.Reply{Match: "^paid$", Text: "settled"},
			testsuite.Reply{Match: `"settled"`, Text: "booked"},
			testsuite.Reply{Match: `"booked"`, Calls: call(agent.AskUserTool, map[string]any{"question": "And now?"})},
			testsuite.Reply{Match: "^home$", Text: "done"},
		)},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return s
}

// One loop answers whatever a tree asks, each request once and with its arguments.
func TestOneCallYieldsTheRequestsOfATree(t *testing.T) {
	t.Parallel()
	s := threeLevels(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := s.begin(t, "go", nil)
	var got []string
	for q, err := range s.Requests(ctx, run.Session) {
		require.NoError(t, err)
		if q.Type == agent.RequestApproval {
			got = append(got, fmt.Sprintf("%s %s %s", q.Agent, q.Type, q.Call.Arguments))
			_, err = s.Approve(ctx, q, nil)
		} else {
			got = append(got, fmt.Sprintf("%s %s %s", q.Agent, q.Type, q.Text))
			_, err = s.Answer(ctx, q, "home", nil)
		}
		require.NoError(t, err)
	}
	require.Equal(t, []string{`payer approval {"EUR":80}`, "tester question And now?"}, got)
	require.Equal(t, "done", s.rest(t, run).Text)
	for range s.Requests(ctx, run.Session) {
		t.Error("a run that has ended asks nothing")
	}
}

// The events of a tree are those of its runs, each once, whoever comes back and where.
func TestEventsOfATree(t *testing.T) {
	t.Parallel()
	s := threeLevels(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := s.begin(t, "go", nil)
	go func() {
		for q, err := range s.Requests(ctx, run.Session) {
			if err == nil && q.Type == agent.RequestApproval {
				_, err = s.Approve(ctx, q, nil)
			} else if err == nil {
				_, err = s.Answer(ctx, q, "home", nil)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	read := func(o client.EventsOptions, most int) (got []client.Event) {
		o.Tree = true
		for e, err := range s.Events(ctx, run.Session, &o) {
			require.NoError(t, err)
			if got = append(got, e); len(got) == most {
				break
			}
		}
		return got
	}
	whole := read(client.EventsOptions{Follow: true, UntilEnd: true}, 0)
	want := map[string]int64{}
	for _, e := range whole {
		require.Equal(t, want[e.Session]+1, e.Seq, "event %d of %s comes once, in its order", e.Seq, e.Session)
		want[e.Session] = e.Seq
		if e.Type == agent.EventChildEnded {
			require.NotZero(t, want[e.Child.Session], "a child's events come before its end")
		}
	}
	require.Len(t, want, 3)
	require.Equal(t, agent.EventRunCompleted, whole[len(whole)-1].Type)
	for at := range whole { // by what is stored, from every cursor
		seen := map[string]int64{}
		for _, e := range whole[:at+1] {
			seen[e.Session] = e.Seq
		}
		for _, e := range read(client.EventsOptions{After: whole[at].Cursor()}, 0) {
			require.Equal(t, seen[e.Session]+1, e.Seq, "behind event %d", at)
			seen[e.Session] = e.Seq
		}
		require.Equal(t, want, seen, "behind event %d", at)
	}
	require.Len(t, read(client.EventsOptions{Follow: true}, 3), 3, "who has enough, leaves")
	for _, e := range s.Events(ctx, run.Session, &client.EventsOptions{Tree: true, After: "118"}) {
		require.ErrorIs(t, e, agent.CodeInvalidInput)
	}
}
