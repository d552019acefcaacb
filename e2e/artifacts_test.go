package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// drafts saves a text as report.md. Its first attempt saves another text, and fails.
func drafts() tool.Tool {
	type in struct {
		Text string `json:"text"`
	}
	return tool.New("draft", "drafts", func(ctx context.Context, c *tool.Call, in in) (string, error) {
		if c.Attempt == 1 {
			return "", errors.Join(c.SaveArtifact(ctx, agent.FileInput{Name: "report.md", Data: []byte("lost canary-4714")}), errors.New("once more"))
		}
		return "drafted", c.SaveArtifact(ctx, agent.FileInput{Name: "report.md", Data: []byte("canary-4714 " + in.Text)})
	}, &tool.Options{Attempts: 2})
}

// A stopped run hands over what it and its sub-agents have saved, each in its own part, and its
// outcome lists all (HA-30).
func TestArtifactsInAHandoff(t *testing.T) {
	t.Parallel()
	saves := func(task, content string) testsuite.Reply {
		return testsuite.Reply{Match: task, Calls: call(agent.SaveArtifactTool, map[string]any{"name": "report.md", "content": content})}
	}
	lead := testsuite.NewScript(
		testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"Half."}`}, saves("^Lead it", "# Mine"),
		testsuite.Reply{Match: "report.md version 1", Calls: call("subagent__writer", map[string]any{"task": "Write it."})},
		testsuite.Reply{Match: "Written", Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})},
	)
	writer := testsuite.NewScript(saves("^Write it", "# Theirs"), testsuite.Reply{Match: "report.md version 1", Text: "Written."})
	s := on(t, shared(t))
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"lead": lead, "writer": writer},
		Agents: []agent.Definition{
			{Name: "tester", Model: "lead", Tools: []string{agent.SaveArtifactTool, agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "writer"}}},
			{Name: "writer", Model: "writer", Tools: []string{agent.SaveArtifactTool}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run, err := s.Start(t.Context(), "tester", "Lead it.", &client.StartOptions{Session: "handed"})
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, s.rest(t, run).Status)
	_, err = run.Stop(t.Context(), "enough", nil)
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.NotNil(t, out.Handoff, "%v", out.Err())
	require.Equal(t, []string{"handed", "handed/writer-1"}, []string{out.Artifacts[0].Session, out.Artifacts[1].Session})
	require.Equal(t, out.Artifacts[:1], out.Handoff.Artifacts)
	require.Equal(t, out.Artifacts[1:], out.Handoff.Children[0].Artifacts)
	require.Equal(t, []string{"report.md 1: # Theirs"}, s.known(t, "handed/writer-1"))
	require.Contains(t, handoff.Briefing(*out.Handoff), "report.md version 1 (text/markdown, 8 bytes), of session handed/writer-1, call t1.1")
	_, err = s.Delete(t.Context(), "handed")
	require.NoError(t, err)
	_, err = s.log().File(t.Context(), &out.Artifacts[1].File)
	require.ErrorIs(t, err, agent.CodeChunkMissing, "sub-agents' sessions are deleted with it")
}

// draft is what the model says to a text: it drafts it, so many times.
func draft(text string, times int) testsuite.Reply {
	return testsuite.Reply{Match: "^" + text, Calls: slices.Repeat(call("draft", map[string]any{"text": text}), times)}
}

// known are the current artifacts of a session, as name version: content.
func (s *stage) known(t *testing.T, session string) (all []string) {
	t.Helper()
	for a, err := range s.Artifacts(t.Context(), session) {
		require.NoError(t, err)
		if a.Current {
			data, err := s.File(t.Context(), &a.File)
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%s %d: %s", a.Name, a.Version, data))
		}
	}
	return all
}

// Artifacts are versioned over runs, attempts, forks and clusters. No history has their bytes; a collection
// keeps them, and they go with the session.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(draft("one", 2), draft("two", 1), draft("three", 1), draft("four", 1), draft("five", 1), testsuite.Reply{Match: "drafted", Text: "Done."})
	s := setup(t, agent.Definition{}, script, drafts())
	run, out := s.run(t, "one", &client.StartOptions{Session: "drafts"})
	require.Len(t, out.Artifacts, 1, "the lost attempt saved nothing, and neither did the same bytes: %v", out.Err())
	require.Equal(t, []string{"report.md 1: canary-4714 one"}, s.known(t, "drafts"))
	first := out.Artifacts[0]
	require.Equal(t, []any{"report.md", 1, "drafts", run.ID, "tester"}, []any{first.Name, first.Version, first.Session, first.Run, first.Agent})
	require.Regexp(t, `^t1\.[12]$`, first.Call, "the call that came first")
	raw, err := json.Marshal(s.history(t, run.Session, run.ID))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "lost canary-4714")

	next, err := s.Send(t.Context(), "drafts", "two", nil)
	require.NoError(t, err)
	followed, err := next.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, followed.Artifacts[0].Version)
	require.Equal(t, []string{"report.md 2: canary-4714 two"}, s.known(t, "drafts"))
	_, err = s.log().Collect(t.Context(), time.Nanosecond, false)
	require.NoError(t, err)
	_, err = s.File(t.Context(), &first.File)
	require.NoError(t, err, "a collection keeps each version")

	there := elsewhere(t)
	_, err = there.bring(t, s.export(t, "drafts", client.ExportOptions{}))
	require.NoError(t, err)
	require.Equal(t, []string{"report.md 2: canary-4714 two"}, there.known(t, "drafts"))

	// A fork from the first run knows version 1; the one that drops begins with nothing.
	at := ""
	points, err := s.Checkpoints(t.Context(), "drafts", nil)
	require.NoError(t, err)
	for _, p := range points.Items { // the newest first
		if p.Run == run.ID && at == "" {
			at = p.ID
		}
	}
	fork := func(text string, o client.ForkOptions) *agent.Outcome {
		o.Checkpoint, o.Text = at, text
		prepared, err := s.Fork(t.Context(), "drafts", &o)
		require.NoError(t, err)
		run, err := prepared.Start(t.Context())
		require.NoError(t, err)
		out, err := run.Result(t.Context())
		require.NoError(t, err)
		return out
	}
	kept := fork("three", client.ForkOptions{NewSession: true, Session: "drafts-2"})
	require.Equal(t, []any{"drafts-2", 2}, []any{kept.Artifacts[0].Session, kept.Artifacts[0].Version})
	require.Equal(t, []string{"report.md 2: canary-4714 three"}, s.known(t, "drafts-2"))
	beside := fork("four", client.ForkOptions{})
	require.Equal(t, 3, beside.Artifacts[0].Version, "version 2 is another one in this session")
	dropped := fork("five", client.ForkOptions{DropArtifacts: true})
	require.Equal(t, 4, dropped.Artifacts[0].Version)
	require.Equal(t, []string{"report.md 4: canary-4714 five"}, s.known(t, "drafts"))

	var all []client.SessionArtifact
	for a, err := range s.Artifacts(t.Context(), "drafts") {
		require.NoError(t, err)
		all = append(all, a)
	}
	require.Len(t, all, 4)
	_, err = s.Delete(t.Context(), "drafts")
	require.NoError(t, err)
	_, err = s.log().File(t.Context(), &all[3].File)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	_, err = s.log().File(t.Context(), &first.File)
	require.NoError(t, err, "the fork knows it")
	_, err = s.Delete(t.Context(), "drafts-2")
	require.NoError(t, err)
	for _, a := range all {
		_, err = store.NewLog(s.dir).File(t.Context(), &a.File)
		require.ErrorIs(t, err, agent.CodeChunkMissing)
	}
}
