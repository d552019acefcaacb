package e2e

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/worker"
)

// A start can add a judge: the run works until that accepts, and by default it is asked once. The
// agent's own checks stay, and come first. The next run has no judge (HA-11).
func TestAJudgeOfOneRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		last := r.Messages[len(r.Messages)-1].Text()
		switch {
		case strings.HasPrefix(r.Instructions, "You judge") && strings.Contains(r.Instructions, "Each risk has a number."):
			asked = append(asked, "start")
			if strings.Contains(last, `"answer":{"text":"risks"}`) {
				return saysText(`{"reasoning":"no numbers","verdict":"veto","next_step":"number them"}`)
			}
			return saysText(`{"reasoning":"numbered","verdict":"accept"}`)
		case strings.HasPrefix(r.Instructions, "You judge"):
			asked = append(asked, "own")
			return saysText(`{"reasoning":"fine","verdict":"accept"}`)
		case strings.Contains(last, "number them"):
			return saysText("1. risks")
		}
		return saysText("risks")
	})
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{Instructions: "Be kind."}}}}, m)
	run, out := s.run(t, "Sum up the risks", &client.StartOptions{Judge: &agent.Judge{Instructions: "Each risk has a number."}})
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "1. risks", out.Text)
	require.Equal(t, []string{"own", "start", "own", "start"}, asked)
	done := checksOf(t, s, run.Session)
	require.Equal(t, agent.StartJudge, done[3].Name)

	asked = nil
	_, out = s.run(t, "1. again", &client.StartOptions{Session: run.Session})
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, []string{"own"}, asked, "the next run has the agent's own checks alone")

	asked = nil
	_, out = s.run(t, "Sum them up, and number them", &client.StartOptions{Judge: &agent.Judge{Instructions: "Each risk has a number."}})
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, []string{"own", "start"}, asked, "one that accepts is asked once")

	for _, j := range []agent.Judge{{Instructions: strings.Repeat("x", 20<<10)}, {MaxOutputTokens: 1 << 14}} {
		_, err := s.Start(t.Context(), "tester", "x", &client.StartOptions{Judge: &j})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
}

// A judge reads the conversation, so a start may name only models that the agent's author has chosen.
func TestAStartsJudgeHasAModelOfTheAgent(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	own := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if strings.HasPrefix(r.Instructions, "You judge") {
			return saysText(`{"reasoning":"fine","verdict":"accept"}`)
		}
		return saysText("private")
	})
	other := modelFunc(func(context.Context, *model.Request) *model.Reply {
		elsewhere.Add(1)
		return saysText(`{"reasoning":"fine","verdict":"accept"}`)
	})
	s := on(t, shared(t))
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"local": own, "spare": own, "looks": own, "cloud": other}, Temporal: stopsSoon,
		Agents: []agent.Definition{
			{Name: "private", Model: "local/m", Fallbacks: []string{"spare/m"}, Tools: []string{}, Verify: agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{Model: "looks/m"}}}}},
			{Name: "public", Model: "cloud/m", Tools: []string{}},
		},
	})
	for _, name := range []string{"cloud/m", "local/larger", "nobody/knows"} {
		run, err := s.Start(t.Context(), "private", "x", &client.StartOptions{Judge: &agent.Judge{Model: name}})
		require.NoError(t, err)
		out, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusFailed, out.Status)
		require.Equal(t, agent.CodeDenied, out.Error.Code)
		require.Equal(t, "judge.model", out.Error.Path)
		require.Zero(t, out.Turns)
	}
	require.Zero(t, elsewhere.Load())
	for _, name := range []string{"", "local/m", "spare/m", "looks/m"} {
		run, err := s.Start(t.Context(), "private", "x", &client.StartOptions{Judge: &agent.Judge{Model: name}})
		require.NoError(t, err)
		out, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, out.Status, "%s: %+v", name, out.Error)
	}
}

// Reminders end each request. Those for all go down the tree, those of a session to the agents that the
// agent itself starts, and others nowhere. A log names an inherited one's source and agent (HA-110).
func TestRemindersGoDownByTheirOwnRules(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	reminded := map[string]string{}
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		last := r.Messages[len(r.Messages)-1]
		name, _, _ := strings.Cut(r.Instructions, "\n")
		reminded[name] = last.Text()
		for _, next := range r.Tools {
			if below, is := strings.CutPrefix(next.Name, agent.SubAgentPrefix); is && r.Messages[len(r.Messages)-2].Role == agent.RoleUser {
				return asksFor(agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: next.Name, Arguments: []byte(`{"task":"help ` + below + `"}`)}})
			}
		}
		return saysText("done")
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
		Agents: []agent.Definition{
			{Name: "tester", Model: "script/m", Instructions: "top", Agents: []agent.SubAgent{{Agent: "middle"}}, Reminders: []agent.Reminder{
				{Text: "Never push.", Propagate: agent.PropagateAll}, {Text: "Be quick.", Propagate: agent.PropagateSession}, {Text: "Keep the plan.", Propagate: agent.PropagateNone},
			}},
			{Name: "middle", Model: "script/m", Instructions: "middle", Agents: []agent.SubAgent{{Agent: "bottom"}}, Reminders: []agent.Reminder{{Text: "Say why.", Propagate: agent.PropagateSession}}},
			{Name: "bottom", Model: "script/m", Instructions: "bottom"},
		},
	})
	run, out := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	const begins = "Reminders, which hold for all of your work:\n- "
	require.Equal(t, map[string]string{
		"top":    begins + "Never push.\n- Be quick.\n- Keep the plan.",
		"middle": begins + "Never push. (from the agent tester)\n- Be quick. (from the agent tester)\n- Say why.",
		"bottom": begins + "Never push. (from the agent tester)\n- Say why. (from the agent middle)",
	}, reminded)
	view := s.view(t, run.Session+"/middle-1/bottom-1")
	require.Equal(t, []agent.InheritedReminder{
		{Reminder: agent.Reminder{Text: "Never push.", Propagate: agent.PropagateAll}, Source: agent.ReminderInherited, OriginatingAgent: "tester"},
		{Reminder: agent.Reminder{Text: "Say why.", Propagate: agent.PropagateSession}, Source: agent.ReminderInherited, OriginatingAgent: "middle"},
	}, view.Spec().InheritedReminders)
}

// A program leads a chat: it keeps a state between turns, ends with a reason of its own, and answers
// what the agent asks. Where the model hands over, its next input continues the run (HA-154, HA-119).
func TestAChatKeepsStateAndSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		ask := func(tool, arguments string) *model.Reply {
			return asksFor(agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: tool, Arguments: []byte(arguments)}})
		}
		last := lastSaid(r)
		if last.Role == agent.RoleTool {
			return saysText("So it is " + last.Parts[0].Result.Text)
		}
		switch last.Text() {
		case "draft":
			return ask(agent.WaitForUserTool, `{}`)
		case "ask":
			return ask(agent.AskUserTool, `{"question":"Which?"}`)
		}
		return saysText("heard " + last.Text())
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "tester", Model: "script/m", Tools: []string{agent.WaitForUserTool, agent.AskUserTool}}},
	})
	lines := []string{"draft", "looks good", "ask", "the red one", "/bye"}
	var heard []string
	end, err := client.Chat[int]{
		Agent: "tester", By: "ana",
		Input: func(_ context.Context, n int, last *agent.Outcome) (client.ChatInput, error) {
			if last != nil {
				said := string(last.Status) + " " + last.Text
				if last.Suspension != nil {
					said = string(last.Status) + " " + last.Suspension.Cause
				}
				heard = append(heard, said)
			}
			if reason, leaves := strings.CutPrefix(lines[n], "/"); leaves {
				return client.ChatInput{Exit: reason}, nil
			}
			return client.ChatInput{Text: lines[n]}, nil
		},
		Turned: func(_ context.Context, n int, _ *agent.Outcome) (int, error) { return n + 1, nil },
	}.Run(t.Context(), s.Client)
	require.NoError(t, err)
	require.Equal(t, "bye", end.Reason)
	require.Equal(t, 4, end.State)
	require.Equal(t, []string{"suspended wait_for_user", "completed heard looks good", "suspended question", "completed So it is the red one"}, heard)
}
