package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// shipping are two skills of a directory. The words of both are those of an edition.
func shipping(t *testing.T, edition string) []*skill.Skill {
	t.Helper()
	dir := t.TempDir()
	for name, front := range map[string]string{
		"ship": "description: Deploy a release to production.\nallowed-tools: deploy ask_user\n",
		"pdf":  "description: Extract text from PDF documents.\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("---\nname: "+name+"\n"+front+"---\nThe "+edition+" words of "+name+".\n"), 0o600))
	}
	all, err := skill.ReadDirs(dir)
	require.NoError(t, err)
	return all
}

// skilled starts a worker with skills.
func (s *stage) skilled(t *testing.T, script *testsuite.Script, skills []*skill.Skill) *worker.Worker {
	t.Helper()
	plain := func(name, text string) tool.Tool {
		return tool.New(name, name+"s", func(context.Context, *tool.Call, struct{}) (string, error) { return text, nil }, nil)
	}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"script": script}, Skills: skills, Tools: []tool.Tool{plain("deploy", "deployed"), plain("look", "seen")},
		Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{"deploy", "look", agent.AskUserTool}, Skills: []string{"*"}, SkillMatch: &agent.SkillMatch{}}},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return w
}

// offered are the names of a request's tools.
func offered(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// updates are what happened to skills, as type name cause.
func (s *stage) updates(t *testing.T, session string) (all []string) {
	t.Helper()
	view := s.view(t, session)
	for _, e := range view.Events() {
		if e.Skill != nil {
			all = append(all, string(e.Type)+" "+e.Skill.Name+" "+string(e.Skill.Cause))
		}
	}
	return all
}

// An active skill is kept over a restart of the worker by a build with other files, whose words the run
// never sees, then over a fork, a compaction and the session's next run, which takes the new words (HA-128, HA-130).
func TestSkillsOverBuildsRunsAndForks(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^Deploy the release", Calls: call("deploy", nil)},
		testsuite.Reply{Match: "^deployed", Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})},
		testsuite.Reply{Match: "the document", Calls: call(agent.SkillTool, map[string]any{"name": "pdf"})},
		testsuite.Reply{Match: "skill_changed", Text: "Done without."},
		testsuite.Reply{Match: "again", Text: "Done again."},
	)
	s := on(t, shared(t))
	first := s.skilled(t, script, shipping(t, "old"))
	run, err := s.Start(t.Context(), "tester", "Deploy the release to production", &client.StartOptions{Session: "skilled"})
	require.NoError(t, err)
	waiting := s.suspended(t, run)
	asked := script.Requests()[0]
	require.Contains(t, asked.Instructions, "> pdf: Extract text from PDF documents.")
	require.Contains(t, asked.Instructions, "The old words of ship.")
	require.NotContains(t, asked.Instructions, "words of pdf")
	require.Equal(t, []string{"deploy", "ask_user", "await_resumption", "skill"}, offered(asked))
	first.Stop()

	s.skilled(t, script, shipping(t, "new"))
	_, err = s.Send(t.Context(), "skilled", "and the document", &client.SendOptions{Skills: []string{"pdf"}})
	require.NoError(t, err)
	_, err = s.Answer(t.Context(), waiting.Requests[0], "yes", nil)
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Done without.", out.Text, "%v", out.Err())
	for _, r := range script.Requests() {
		require.NotContains(t, r.Instructions, "new words", "the run began with other files")
		require.Contains(t, r.Instructions, "The old words of ship.")
	}
	require.Equal(t, []string{"skill.activated ship matched", "skill.failed pdf "}, s.updates(t, "skilled"))

	bad, err := s.Send(t.Context(), "skilled", "again", &client.SendOptions{Skills: []string{"none"}})
	require.NoError(t, err) // only the run knows its skills
	refused, err := bad.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.CodeNotFound, refused.Error.Code)
	_, next := s.run(t, "again", &client.StartOptions{Session: "skilled", Carry: agent.CarryCompact})
	require.Equal(t, "Done again.", next.Text, "%v", next.Err())
	last := script.Requests()[len(script.Requests())-1]
	require.Contains(t, last.Instructions, "The new words of ship.")
	require.NotContains(t, offered(last), "look")
	prepared, err := s.Fork(t.Context(), "skilled", &client.ForkOptions{Text: "and again", NewSession: true, Session: "forked"})
	require.NoError(t, err)
	fork, err := prepared.Start(t.Context())
	require.NoError(t, err)
	_, err = fork.Result(t.Context())
	require.NoError(t, err)
	last = script.Requests()[len(script.Requests())-1]
	require.Contains(t, last.Instructions, "The new words of ship.")
	require.NotContains(t, offered(last), "look")
	_, out = s.run(t, "again", &client.StartOptions{Session: "skilled", Carry: agent.CarryReset})
	require.Equal(t, agent.StatusCompleted, out.Status)
	last = script.Requests()[len(script.Requests())-1]
	require.NotContains(t, last.Instructions, "words of ship")
	require.Contains(t, offered(last), "look")
}
