package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// stream is a model that says how it says it.
type stream func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error)

func (stream) Info(string) model.Info { return model.Info{} }

func (m stream) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	return m(ctx, req, emit)
}

// staff starts a worker with whatever it is given.
func (s *stage) staff(t *testing.T, m model.Model, tools []tool.Tool, agents ...agent.Definition) *worker.Worker {
	t.Helper()
	for i := range agents {
		agents[i].Model = "brain"
		waits(&agents[i])
	}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: agents, Tools: tools, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Live: s.hub,
		Models: map[string]model.Model{"brain": m},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

const fiveMB = 5 << 20

// monsters are what a model says first; then it says "done".
var monsters = map[string]func() *model.Reply{
	"long text": func() *model.Reply { return saysText(strings.Repeat("x", fiveMB)) },
	"long arguments": func() *model.Reply {
		return asksFor(model.CallPart("", "note", `{"text":"`+strings.Repeat("x", fiveMB)+`"}`))
	},
	"500 calls": func() *model.Reply { return asksFor(many(500, "note")...) },
	"tools that nobody has": func() *model.Reply {
		var parts []agent.Part
		for i := range 1000 {
			parts = append(parts, model.CallPart("", fmt.Sprintf("invented_%d", i), "{}"))
		}
		return asksFor(parts...)
	},
	"deep": func() *model.Reply {
		var parts []agent.Part
		for _, depth := range []int{100, 200, 9_998, 10_000, 50_000} {
			parts = append(parts, model.CallPart("", "note", `{"text":"x","more":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`))
		}
		return asksFor(parts...)
	},
	"names": func() *model.Reply {
		return asksFor(
			model.CallPart(strings.Repeat("i", 1<<20), "note", `{"text":"1"}`),
			model.CallPart("", strings.Repeat("n", 10_000), "{}"), model.CallPart("", "no\x00te\x1b[2J", "{}"), model.CallPart("", "nöte", "{}"), model.CallPart("", "", "{}"),
			model.CallPart("same", "note", "{\"text\":\"\xff\xfe\"}"), model.CallPart("same", "note", `{"text":"a\u0000b"}`), model.CallPart("same", "note", `{"text":"\ud800"}`),
		)
	},
	"no text": func() *model.Reply { return saysText("a\x00b\xff\x1b[2Jc") },
}

// many are calls that differ, with one id.
func many(n int, name string) (parts []agent.Part) {
	for i := range n {
		parts = append(parts, model.CallPart("same", name, fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	return parts
}

// monster is a model that says what its task names.
func monster(_ context.Context, req *model.Request) *model.Reply {
	if say := monsters[req.Messages[0].Text()]; say != nil && len(req.Messages) == 1 {
		return say()
	}
	return saysText("done")
}

// Whatever a model says, the run goes on or ends with a code, every call has its
// result, and the session can be gone on with.
func TestHostileModel(t *testing.T) {
	t.Parallel()
	s, notes := hostile(t), &tally{calls: map[string]int{}}
	s.startWorker(t, monster, []tool.Tool{notes.tool("note")}, agent.Definition{Name: "tester", Tools: []string{"note"}})
	runs := map[string]*client.Run{}
	for what := range monsters {
		runs[what] = s.begin(t, what, nil)
	}
	for _, what := range []string{"long text", "long arguments"} {
		out, _ := s.ends(t, runs[what], agent.StatusFailed)
		require.Equal(t, string(agent.CodeBadOutput), out.Reason, what)
		next, err := s.Send(t.Context(), runs[what].Session, "and now?", &client.SendOptions{Agent: "tester"})
		require.NoError(t, err)
		require.Equal(t, "done", s.rest(t, next).Text)
	}
	for what, asked := range map[string]int{"500 calls": 128, "tools that nobody has": 128, "deep": 5, "names": 8} {
		out, count := s.ends(t, runs[what], agent.StatusCompleted)
		require.Equal(t, asked, count[agent.EventCallRequested], what)
		results := s.results(t, runs[what])
		require.Len(t, results, asked, what)
		require.LessOrEqual(t, len(out.Tools), 130, what)
		ok := 0
		for _, r := range results {
			if r.Status == agent.CallOK {
				ok++
			}
		}
		require.Equal(t, map[string]int{"500 calls": 64, "names": 4}[what], ok, what)
	}
	deep := s.results(t, runs["deep"])
	require.Contains(t, deep[0].Text, "more", "what is not too deep reaches the tool, which knows no such field")
	require.Contains(t, deep[1].Text, "nested more than 128 levels deep")
	messages, err := s.Transcript(t.Context(), runs["names"].Session)
	require.NoError(t, err)
	for _, c := range messages[1].ToolCalls() {
		require.NoError(t, agent.CheckTool(c.Tool), "a provider takes it back")
		require.Less(t, len(c.ProviderID), 300)
		require.NoError(t, json.Unmarshal(c.Arguments, &map[string]any{}))
	}
	out, _ := s.ends(t, runs["no text"], agent.StatusCompleted)
	require.Equal(t, "a\x00b\uFFFD\x1b[2Jc", out.Text)
}

// results lists a run's results, in the order of its calls.
func (s *stage) results(t *testing.T, run *client.Run) (list []*agent.ToolResult) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				list = append(list, p.Result)
			}
		}
	}
	return list
}

// A model that streams without end is given up for its length, or for its time; one
// that streams 200,000 signs of life and then answers is heard.
func TestHostileStream(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s := hostile(t)
	s.staff(t, stream(func(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		switch req.Messages[len(req.Messages)-1].Text() {
		case "talk":
			for piece := strings.Repeat("x", 1<<10); ctx.Err() == nil; {
				emit(model.Delta{Text: piece})
			}
			return nil, ctx.Err()
		case "hum":
			for ctx.Err() == nil {
				emit(model.Delta{})
			}
			return nil, ctx.Err()
		case "breathe":
			for range 200_000 {
				emit(model.Delta{})
			}
		}
		return saysText("done"), ctx.Err()
	}), nil, agent.Definition{Name: "tester", ModelAttempts: 1, ModelTimeout: agent.Duration(3 * time.Second)})
	for task, reason := range map[string]agent.Code{"talk": agent.CodeBadOutput, "hum": agent.CodeProviderError} {
		run := s.begin(t, task, nil)
		out, _ := s.ends(t, run, agent.StatusFailed)
		require.Equal(t, string(reason), out.Reason, task)
		next, err := s.Send(t.Context(), run.Session, "and now?", &client.SendOptions{Agent: "tester"})
		require.NoError(t, err)
		require.Equal(t, "done", s.rest(t, next).Text)
	}
	s.ends(t, s.begin(t, "breathe", nil), agent.StatusCompleted)
}

// An output, the text beside it and a child's answer that are each as long as may be
// fit into one result.
func TestHostileOutputs(t *testing.T) {
	t.Parallel()
	s := hostile(t)
	long := strings.Repeat("<", 230<<10) // six bytes each in JSON
	s.startWorker(t, func(_ context.Context, req *model.Request) *model.Reply {
		switch {
		case req.Messages[0].Text() == "long":
			return saysText(strings.Repeat("x", 1400<<10))
		case req.Messages[0].Text() == "hand on" && len(req.Messages) == 1:
			return asksFor(model.CallPart("", "subagent__talker", `{"task":"long"}`))
		case len(req.Messages) > 2:
			return asksFor(model.CallPart("", agent.FinishTool, `{"out":"`+long[:100<<10]+`"}`))
		}
		return saysText(long)
	}, nil,
		agent.Definition{Name: "tester", Completion: agent.CompletionTool, Output: json.RawMessage(`{"type":"object","properties":{"out":{"type":"string"}}}`), Agents: []agent.SubAgent{{Agent: "talker"}}},
		agent.Definition{Name: "talker"})
	out, _ := s.ends(t, s.begin(t, "go", nil), agent.StatusCompleted)
	said := map[string]string{}
	require.NoError(t, json.Unmarshal(out.Output, &said))
	require.Len(t, said["out"], 100<<10)
	require.Contains(t, out.Text, "[cut here: the result has 235520 bytes")
	run := s.begin(t, "hand on", nil)
	s.ends(t, run, agent.StatusCompleted)
	told := s.results(t, run)[0]
	require.Equal(t, agent.CallOK, told.Status)
	require.Contains(t, told.Text, "[cut here: the result has")
	require.Less(t, len(told.Text), 257<<10)
}
