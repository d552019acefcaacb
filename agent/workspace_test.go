package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a sub-agent's workspace can't be is refused with what to do.
func TestOwnWorkspaceIsChecked(t *testing.T) {
	for words, w := range map[string]OwnWorkspace{
		"":                             {Kind: WorkspaceWorktree, AtEnd: WorkspaceMerge, Env: map[string]string{"STAGE": "review"}},
		"must be directory or":         {Kind: "container"},
		"needs kind or env":            {},
		"at_end needs a kind":          {AtEnd: WorkspaceDrop, Env: map[string]string{"A": "b"}},
		"must be merge, keep or drop":  {Kind: WorkspaceWorktree, AtEnd: "discard"},
		"only a worktree can be":       {Kind: WorkspaceDirectory, AtEnd: WorkspaceMerge},
		"is no name of an environment": {Env: map[string]string{"A=B": ""}},
		"the worker sets PATH":         {Env: map[string]string{"PATH": "x"}},
		"is longer than 1024 bytes":    {Env: map[string]string{"A": strings.Repeat("x", 1025)}},
	} {
		err := Definition{Name: "lead", Model: "m", Agents: []SubAgent{{Agent: "coder", Workspace: &w}}}.Check()
		if words == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, CodeInvalidInput)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "agents[0]")
	}
	// Only what has completed is merged, and nothing is dropped unless that is said.
	merge := OwnWorkspace{Kind: WorkspaceWorktree, AtEnd: WorkspaceMerge}
	require.Equal(t, WorkspaceMerge, merge.Ends(StatusCompleted))
	for _, s := range []Status{StatusFailed, StatusStopped, StatusCancelled} {
		require.Equal(t, WorkspaceKeep, merge.Ends(s))
	}
	require.Equal(t, WorkspaceKeep, OwnWorkspace{Kind: WorkspaceDirectory}.Ends(StatusCompleted))
}
