package e2e

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// threeLines returns a workspace in which a.txt has three lines.
func threeLines(t testing.TB) (w *workspace.Workspace, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o644))
	w, err := workspace.Open(dir, &workspace.Options{Own: filepath.Join(t.TempDir(), "own"), AsRoot: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w, dir
}

// puts writes its line into a.txt where its call works, and says where that is.
func puts(w *workspace.Workspace) tool.Tool {
	return tool.New("put", "puts a line", func(_ context.Context, c *tool.Call, in struct{ Line string }) (string, error) {
		dir, err := w.Dir(c)
		if err != nil {
			return "", err
		}
		return "put: " + filepath.Base(filepath.Dir(dir)) + " " + c.Env["STAGE"], os.WriteFile(filepath.Join(dir, "a.txt"), []byte(in.Line+"\ntwo\nthree\n"), 0o644)
	}, &tool.Options{Attempts: 5})
}

// A sub-agent's model reads that it works in a worktree of its own, and what becomes of that; its
// parent's model reads neither. The tree shows which one was merged and which one has a conflict
// (HA-103).
func TestASubAgentKnowsItsWorktree(t *testing.T) {
	t.Parallel()
	w, _ := threeLines(t)
	var both sync.WaitGroup
	both.Add(2)
	put := puts(w)
	meets := tool.New("put", "puts a line", func(ctx context.Context, c *tool.Call, _ struct{ Line string }) (string, error) {
		both.Done()
		both.Wait() // each copies the files before the other is merged
		return put.Call(ctx, c)
	}, nil)
	gives := func(line string) testsuite.Call {
		return testsuite.Call{Tool: agent.SubAgentPrefix + "coder", Arguments: map[string]any{"task": "put " + line}}
	}
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^both", Calls: []testsuite.Call{gives("uno"), gives("eins")}},
		testsuite.Reply{Match: "^put uno", Calls: call("put", map[string]any{"Line": "uno"})}, testsuite.Reply{Match: "^put eins", Calls: call("put", map[string]any{"Line": "eins"})},
		testsuite.Reply{Match: ".*", Text: "It is there."},
	)
	s := testsuite.New(t, &testsuite.Options{Model: script, Server: dial(t, shared(t)), Connection: connection(slog.DiscardHandler), Worker: &worker.Options{
		Workspaces: w, Tools: []tool.Tool{meets}, Agents: []agent.Definition{
			{Name: "lead", Model: "m", Instructions: "Lead.", Reminders: []agent.Reminder{{Text: "Never push.", Propagate: agent.PropagateAll}}, Agents: []agent.SubAgent{{Agent: "coder", Tools: []string{"put"}, Workspace: &agent.OwnWorkspace{Kind: agent.WorkspaceWorktree, AtEnd: agent.WorkspaceMerge}}}},
			{Name: "coder", Model: "m", Instructions: "Code.", Tools: []string{"put"}},
		},
	}})
	lead := s.Start("lead", "both", nil)
	lead.Completed()
	for _, r := range script.Requests() {
		if r.Call.Agent == "lead" {
			require.NotContains(t, r.Instructions, "worktree")
			continue
		}
		require.Regexp(t, `^Code\.\n\nYou work in a git worktree of your own: .* When the task is done, they are merged into that agent's files\.`, r.Instructions)
		require.True(t, hasNote(agent.NoteReminders, "Never push. (from the agent lead)")(r, policyEnd{}), "%v", r.Messages)
	}
	run, err := client.New(dial(t, shared(t)), nil).Get(t.Context(), lead.Session)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // a listing is late
		nodes, err := run.Tree(t.Context())
		require.NoError(c, err)
		var became []agent.WorkspaceResult
		for _, n := range nodes {
			became = append(became, n.Workspace)
		}
		slices.Sort(became)
		assert.Equal(c, []agent.WorkspaceResult{"", agent.WorkspaceConflict, agent.WorkspaceMerged}, became)
	}, patience, 50*time.Millisecond)
}

// Two sub-agents write one file, each in a worktree of its own with a variable of its own. One is
// merged. The other conflicts and is kept, and their parent reads so. Nothing is lost or merged twice
// whenever the worker is killed (HA-103).
func TestEveryCrashOfWorktrees(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c, how := dial(t, shared(t)), connection(slog.DiscardHandler)
	testsuite.EveryCrash(t, func(t testing.TB, crash *testsuite.Crash) any {
		w, dir := threeLines(t)
		gave := func(line string) testsuite.Call {
			return testsuite.Call{Tool: agent.SubAgentPrefix + "coder", Arguments: map[string]any{"task": "put " + line}}
		}
		put := func(line string) testsuite.Reply {
			return testsuite.Reply{Match: "^put " + line, Calls: []testsuite.Call{{Tool: "put", Arguments: map[string]any{"Line": line}}}}
		}
		s := testsuite.New(t, &testsuite.Options{
			Worker: &worker.Options{
				Workspaces: w, Tools: []tool.Tool{puts(w)},
				Agents: []agent.Definition{
					{Name: "lead", Model: "m", Agents: []agent.SubAgent{{Agent: "coder", Tools: []string{"put"}, Workspace: &agent.OwnWorkspace{
						Kind: agent.WorkspaceWorktree, AtEnd: agent.WorkspaceMerge, Env: map[string]string{"STAGE": "review"},
					}}}},
					{Name: "coder", Model: "m", Tools: []string{"put"}},
				},
			},
			Server: c, Connection: how, Crash: crash, Model: testsuite.NewScript(
				testsuite.Reply{Match: "^both", Calls: []testsuite.Call{gave("uno"), gave("eins")}},
				put("uno"), put("eins"),
				testsuite.Reply{Match: `^put: coder-[0-9a-f]{12} review$`, Text: "It is there."},
				testsuite.Reply{Match: `"conflict"`, Text: "One is on a branch."},
				testsuite.Reply{Match: `"merged"`, Text: "One is on a branch."},
			),
		})
		lead := s.Start("lead", "both", nil)
		o := lead.Completed()
		became := map[agent.WorkspaceResult]int{}
		for _, child := range []string{"coder-1", "coder-2"} {
			at := s.Run(lead.Session + "/" + child).Wait().Workspace
			require.NotNil(t, at)
			became[at.Result]++
			if at.Result == agent.WorkspaceConflict {
				require.Equal(t, []string{"a.txt"}, at.Paths)
				out, err := exec.Command("git", "--git-dir="+at.Repository, "show", at.Branch+":a.txt").Output()
				require.NoError(t, err)
				require.Regexp(t, "^(uno|eins)\ntwo\nthree\n$", string(out))
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		require.NoError(t, err)
		require.Regexp(t, "^(uno|eins)\ntwo\nthree\n$", string(text))
		// A sub-agent whose start was delayed by the crash begins with what the other has merged.
		require.GreaterOrEqual(t, became[agent.WorkspaceMerged], 1)
		require.Equal(t, 2, became[agent.WorkspaceMerged]+became[agent.WorkspaceConflict], became)
		return o.Text
	})
}
