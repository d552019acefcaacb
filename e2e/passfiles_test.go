package e2e

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// draws shows a document.
func draws() tool.Tool {
	return tool.New("draw", "draws", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		return "drawn", c.AddFile(ctx, agent.FileInput{Name: "map.pdf", Data: []byte("%PDF-1.4 canary-4721")})
	}, nil)
}

// gaveWork is a reply that gives work to the agent "reader", with a file.
func gaveWork(file string) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.SubAgentPrefix + "reader", Arguments: map[string]any{"task": "Read it.", "files": []string{file}}}}}
}

// chunksOf returns how many chunks sessions have in the store.
func (s *stage) chunksOf(t *testing.T, sessions ...string) (n int) {
	t.Helper()
	for _, session := range sessions {
		for _, err := range s.store.Chunks(t.Context(), store.ChunkPrefix(session)) {
			require.NoError(t, err)
			n++
		}
	}
	return n
}

// A sub-agent gets an image of its parent as a copy of its own, and gives a document back; also in a
// fork, whose image is another session's. No history has the bytes, and they go with the tree.
func TestFilesOfATree(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	lead := testsuite.NewScript(gaveWork("chart.png"), testsuite.Reply{Text: "Read."}, gaveWork("chart.png"), testsuite.Reply{Text: "Read again."})
	reader := testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "draw"}}}, testsuite.Reply{Text: "A chart. I drew map.pdf."})
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Tools: []tool.Tool{draws()},
		Agents: []agent.Definition{
			{Name: "lead", Model: "lead", Agents: []agent.SubAgent{{Agent: "reader", Tools: []string{"draw"}}}},
			{Name: "reader", Model: "reader", Tools: []string{"draw"}},
		},
		Models: map[string]model.Model{"lead": lead, "reader": reader},
	})
	chart := client.FileInput{Name: "chart.png", Text: "canary-4722", Data: append(standin.Picture(), "canary-4723"...)}
	run, err := s.Start(t.Context(), "lead", "What is this?", &client.StartOptions{Session: "tree", Files: []client.FileInput{chart}})
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Read.", out.Text, "%v", out.Err())

	shows := func(asked model.Request, session, name string, data []byte) *agent.File {
		t.Helper()
		files := asked.Messages[len(asked.Messages)-1].Files()
		require.Len(t, files, 1)
		require.Equal(t, session, files[0].Session)
		require.Equal(t, name, files[0].Name)
		require.Equal(t, data, asked.Files[files[0].Digest])
		return files[0]
	}
	given := shows(reader.Requests()[0], "tree/reader-1", "chart.png", chart.Data)
	shows(lead.Requests()[1], "tree", "map.pdf", []byte("%PDF-1.4 canary-4721"))
	child, err := s.Get(t.Context(), "tree/reader-1")
	require.NoError(t, err)
	for _, r := range []*client.Run{run, child} {
		raw, err := json.Marshal(s.history(t, r.Session, r.ID))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "canary-4721")
		require.NotContains(t, string(raw), "canary-4723")
	}

	anew, err := s.Fork(t.Context(), "tree", &client.ForkOptions{NewSession: true, Session: "tree-2", Text: "Once more."})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	out, err = fork.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Read again.", out.Text, "%v", out.Err())
	again := shows(reader.Requests()[2], "tree-2/reader-2", "chart.png", chart.Data)

	_, err = s.Delete(t.Context(), "tree")
	require.NoError(t, err)
	require.Zero(t, s.chunksOf(t, "tree/reader-1"))
	_, err = s.log().File(t.Context(), given)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	_, err = s.log().File(t.Context(), again)
	require.NoError(t, err)
	_, err = s.Delete(t.Context(), "tree-2")
	require.NoError(t, err)
	require.Zero(t, s.chunksOf(t, "tree", "tree/reader-1", "tree-2", "tree-2/reader-2"))
}

// A flow passes files of its input to an agent, and returns those that come back; a fork that makes the
// step again has the same files.
func TestFilesOfAFlow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []*model.Request
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r)
		if r.Messages[len(r.Messages)-1].Role == agent.RoleUser {
			return callsTool("draw", `{}`)
		}
		return saysText("I drew map.pdf.")
	})
	f := flow.New("relay", func(c flow.Context, in flow.WithFiles[string]) (flow.WithFiles[string], error) {
		got, err := flow.Agent[flow.WithFiles[string]](c, "reader", in.Value, &flow.AgentOptions{Files: in.Files})
		got.Files = append(in.Files, got.Files...)
		return got, err
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reader"}}})
	s, _ := flows(t, f, m, []tool.Tool{draws()}, agent.Definition{Name: "reader", Tools: []string{"draw"}})
	photo := client.FileInput{Name: "photo.md", Data: []byte("canary-4724")}
	run, err := s.Start(t.Context(), "relay", "Read it.", &client.StartOptions{Session: "relay", Files: []client.FileInput{photo}})
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	fork, err := s.Fork(t.Context(), "relay", &client.ForkOptions{NewSession: true, Session: "relay-2", Redo: []string{"reader"}})
	require.NoError(t, err)
	second, err := fork.Start(t.Context())
	require.NoError(t, err)
	other, err := second.Result(t.Context())
	require.NoError(t, err)

	for session, o := range map[string]*agent.Outcome{"relay": out, "relay-2": other} {
		require.Equal(t, "I drew map.pdf.", o.Text, "%v", o.Err())
		require.Len(t, o.Files, 2)
		for i, want := range []string{"canary-4724", "%PDF-1.4 canary-4721"} {
			require.Equal(t, session, o.Files[i].Session)
			data, err := s.File(t.Context(), &o.Files[i])
			require.NoError(t, err)
			require.Equal(t, want, string(data))
		}
	}
	require.Len(t, asked, 4)
	for _, i := range []int{0, 2} {
		require.Contains(t, asked[i].Messages[0].Text(), "Read it.[photo.md#")
		require.Contains(t, asked[i].Messages[0].Text(), "canary-4724")
	}
	raw, err := json.Marshal(s.history(t, run.Session, run.ID))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "canary-47")
}
