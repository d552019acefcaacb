package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// looks returns text with a number, and as much else as is asked for.
func looks() tool.Tool {
	type in struct {
		N     int `json:"n"`
		Bytes int `json:"bytes"`
	}
	return tool.New("look", "looks", func(_ context.Context, _ *tool.Call, in in) (string, error) {
		return fmt.Sprintf("canary-%d %s", in.N, strings.Repeat("x", in.Bytes)), nil
	}, nil)
}

// notes is a call of the tool notebook.
func notes(change map[string]any) []testsuite.Call { return call(agent.NotebookTool, change) }

func fact(text, source string) []any { return []any{map[string]any{"text": text, "source": source}} }

// recited returns what a request shows of the notebook at its end; empty without one.
func recited(r model.Request) string {
	_, recital := model.SplitRecital(r.Messages)
	if len(recital) > 0 && recital[0].Note == agent.NoteNotebook {
		return recital[0].Text()
	}
	return ""
}

// resultsIn are the results of the tools that a request shows.
func resultsIn(r model.Request) (texts []string) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				texts = append(texts, p.Result.Text)
			}
		}
	}
	return texts
}

// A notebook is recited at the end of every request, and stored nowhere in the transcript (HA-86).
// Facts cite sources that the conversation has; others are refused with those that there are (HA-152).
// A notebook of 17 KiB is refused. The next run of the session has it, and so has a fork from before.
func TestNotebook(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(
		testsuite.Reply{Calls: call("look", map[string]any{"n": 4711})},
		testsuite.Reply{Calls: notes(map[string]any{"goals": []string{"find it"}, "facts": fact("it is 4711", "t1.1")})},
		testsuite.Reply{Calls: notes(map[string]any{"facts": fact("it is 4712", "t9.9")})},
		testsuite.Reply{Calls: notes(map[string]any{"open_items": []string{strings.Repeat("y", 17<<10)}})},
		testsuite.Reply{Calls: notes(map[string]any{"goals": []string{}, "open_items": []string{"tell"}, "refs": []string{"t1.1"}})},
		testsuite.Reply{Text: "It is 4711."},
		testsuite.Reply{Text: "Still 4711."}, testsuite.Reply{Text: "And in a fork."},
	)
	s := setup(t, agent.Definition{Notebook: &agent.NotebookPolicy{}}, script, looks())
	run, out := s.run(t, "Look.", &client.StartOptions{Session: "noted"})
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	asked := script.Requests()
	require.Len(t, asked, 6)
	require.Contains(t, recited(asked[0]), "Your notebook is empty")
	require.Contains(t, recited(asked[1]), `"t1.1#7" ("look")`, "the model learns what it can cite")
	require.Contains(t, recited(asked[2]), "version 1")
	require.Contains(t, recited(asked[2]), `"it is 4711" (source: "t1.1#7")`)
	refused := resultsIn(asked[5])
	require.Contains(t, refused[2], `the fact "it is 4712" cites "t9.9", which is no source of this conversation; the newest sources are: `)
	require.Contains(t, refused[2], `"t1.1#7" ("look")`)
	require.Contains(t, refused[3], "at most 16384 are kept")
	require.Contains(t, refused[4], "The notebook has version 2.")

	want := agent.Notebook{Version: 2, Call: "t5.1", Goals: []string{}, OpenItems: []string{"tell"}, Facts: []agent.Fact{{Text: "it is 4711", Source: "t1.1#7"}}, Refs: []string{"t1.1#7"}}
	n, err := s.Notebook(t.Context(), "noted")
	require.NoError(t, err)
	want.Goals = n.Goals // empty, or nil after it was stored
	require.Empty(t, n.Goals)
	require.Equal(t, want, n)
	view, err := s.log().View(t.Context(), s.head(t, "noted"))
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(view.Messages()), "Your notebook", "it is shown, and not stored")

	_, out = s.run(t, "Once more.", &client.StartOptions{Session: "noted"})
	require.Equal(t, "Still 4711.", out.Text)
	asked = script.Requests()
	require.Contains(t, recited(asked[len(asked)-1]), "version 2")
	first := ""
	points, err := s.Checkpoints(t.Context(), "noted", nil)
	require.NoError(t, err)
	for _, p := range points.Items { // the newest first
		if p.Run == run.ID && p.Turn == 3 {
			first = p.ID
		}
	}
	anew, err := s.Fork(t.Context(), "noted", &client.ForkOptions{NewSession: true, Session: "noted-2", Checkpoint: first})
	require.NoError(t, err)
	forked, err := anew.Start(t.Context())
	require.NoError(t, err)
	out, err = forked.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	n, err = s.Notebook(t.Context(), "noted-2")
	require.NoError(t, err)
	require.Equal(t, 2, n.Version, "the fork knew version 1 and wrote the next one itself")
	before := len(script.Requests())
	_, out = s.run(t, "Begin anew.", &client.StartOptions{Session: "noted", Carry: agent.CarryReset})
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	require.Contains(t, recited(script.Requests()[before]), "Your notebook is empty", "a reset begins a new conversation")
}

// What a notebook cites stays in the request after a compaction, word for word, also after a second
// one (HA-153). The model is reminded of a notebook that it has not changed for long.
func TestANotebookKeepsWhatItCites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script.yaml")
	text := "window: 12000\nreplies:\n" +
		"  - calls: [{tool: look, arguments: {n: 4711, bytes: 400}}]\n" +
		"  - calls: [{tool: notebook, arguments: {facts: [{text: the number, source: t1.1}]}}]\n"
	for i := range 14 {
		text += fmt.Sprintf("  - calls: [{tool: look, arguments: {n: %d, bytes: 6000}}]\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text+"  - text: done\n"), 0o600))
	script, err := testsuite.LoadScript(path)
	require.NoError(t, err)
	s := setup(t, agent.Definition{Notebook: &agent.NotebookPolicy{Remind: 5}, Compaction: agent.CompactionPolicy{KeepLast: 2}}, script, looks())
	_, out := s.run(t, "Look.", &client.StartOptions{Session: "kept"})
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	compactions := 0
	for e, err := range s.Events(t.Context(), "kept", nil) {
		require.NoError(t, err)
		if e.Type == agent.EventCompacted {
			compactions++
		}
	}
	require.Greater(t, compactions, 1)
	asked := script.Requests()
	last, all := asked[len(asked)-1], ""
	for _, m := range last.Messages {
		all += m.Text()
	}
	require.NotContains(t, strings.Join(resultsIn(last), "\n"), "canary-4711", "the result itself is summed up")
	require.Contains(t, all, "[What your notebook cites, word for word:]\nt1.1#8 look:\n| canary-4711 xxx")
	require.Contains(t, recited(last), `"the number" (source: "t1.1#8")`)
	require.Contains(t, recited(last), "bring it up to date now")
	require.NotContains(t, recited(asked[3]), "bring it up to date now")
}

// A notebook stays over a suspension, and moves with an export: the run goes on elsewhere with it.
func TestANotebookMovesWithItsRun(t *testing.T) {
	t.Parallel()
	agentOf := func() (agent.Definition, *testsuite.Script) {
		return agent.Definition{Notebook: &agent.NotebookPolicy{}, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
			testsuite.Reply{Calls: call("look", map[string]any{"n": 4711})},
			testsuite.Reply{Calls: append(notes(map[string]any{"facts": fact("it is 4711", "t1.1")}), call(agent.AskUserTool, map[string]any{"question": "Go on?"})...)},
			testsuite.Reply{Calls: notes(map[string]any{"open_items": []string{"tell"}, "refs": []string{"t1.1"}})},
			testsuite.Reply{Text: "It is 4711."},
		)
	}
	def, script := agentOf()
	s := setup(t, def, script, looks())
	run := s.begin(t, "Look.", &client.StartOptions{Session: "notebook-moves"})
	s.suspended(t, run)
	file := s.export(t, run.Session, client.ExportOptions{})

	there := elsewhere(t)
	def, script = agentOf()
	there.work(t, def, script, looks())
	_, err := there.bring(t, file)
	require.NoError(t, err)
	for _, one := range []*stage{there, s} { // and where it was, too
		moved := one.here(t, run.Session)
		n, err := one.Notebook(t.Context(), run.Session)
		require.NoError(t, err)
		require.Equal(t, 1, n.Version)
		one.say(t, moved, agent.AnswerCommand{Request: one.suspended(t, moved).Requests[0].ID, Text: "yes"})
		out := one.rest(t, moved)
		require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
		n, err = one.Notebook(t.Context(), run.Session)
		require.NoError(t, err)
		require.Equal(t, 2, n.Version)
		require.Equal(t, []agent.Fact{{Text: "it is 4711", Source: "t1.1#7"}}, n.Facts, "only what is named changes")
	}
	require.Contains(t, recited(script.Requests()[0]), `"it is 4711" (source: "t1.1#7")`)
}

// view returns a session's log, as far as it is stored.
func (s *stage) view(t *testing.T, session string) *store.View {
	t.Helper()
	view, err := s.log().View(t.Context(), s.head(t, session))
	require.NoError(t, err)
	return view
}

// head returns the name of the last chunk of a session's log.
func (s *stage) head(t *testing.T, session string) string {
	t.Helper()
	h, err := s.log().Head(t.Context(), session)
	require.NoError(t, err)
	return h.Digest
}
