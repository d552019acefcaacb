package agent

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// OwnWorkspace gives a sub-agent a place of its own to work in, or environment variables of its own.
// It needs Kind or Env.
type OwnWorkspace struct {
	// Kind says what the sub-agent works in; empty means where its parent works.
	Kind WorkspaceKind `json:"kind,omitempty"`
	// AtEnd says what becomes of it when the sub-agent ends; empty means [WorkspaceKeep].
	AtEnd WorkspaceEnd `json:"at_end,omitempty"`
	// Env are environment variables of the sub-agent's commands, and of those of agents below it, by
	// name. Histories and logs have them in plain text, so never put a secret here.
	Env map[string]string `json:"env,omitempty"`
}

// WorkspaceKind is a kind of workspace that a sub-agent has for itself.
type WorkspaceKind string

// The kinds of workspaces.
const (
	WorkspaceDirectory WorkspaceKind = "directory" // an empty directory
	WorkspaceWorktree  WorkspaceKind = "worktree"  // a copy of the files that no .gitignore names
)

// WorkspaceEnd says what becomes of a sub-agent's own workspace when the sub-agent ends.
type WorkspaceEnd string

// The ends of workspaces. Only a run that has completed is merged; others are kept.
const (
	WorkspaceMerge WorkspaceEnd = "merge" // its changes are made to the parent's files; only for a worktree
	WorkspaceKeep  WorkspaceEnd = "keep"  // a worktree becomes a branch, and a directory stays
	WorkspaceDrop  WorkspaceEnd = "drop"  // it is deleted
)

// WorkspaceResult says what became of a sub-agent's own workspace.
type WorkspaceResult string

// The results.
const (
	WorkspaceMerged    WorkspaceResult = "merged"
	WorkspaceKept      WorkspaceResult = "kept"
	WorkspaceDropped   WorkspaceResult = "dropped"
	WorkspaceUnchanged WorkspaceResult = "unchanged" // a worktree without changes; it is deleted
	WorkspaceConflict  WorkspaceResult = "conflict"  // nothing was merged, and the branch is kept
	WorkspaceFailed    WorkspaceResult = "failed"    // it stays as it was; see [WorkspaceOutcome.Error]
)

// WorkspaceOutcome says what became of a sub-agent's own workspace.
type WorkspaceOutcome struct {
	Kind WorkspaceKind `json:"kind"`
	// Name is the name of its directory below the worker's directory for such workspaces.
	Name   string          `json:"name"`
	Result WorkspaceResult `json:"result"`
	// Branch is the branch that has the changes, and Repository the directory of its repository on the
	// worker's machine, for `git fetch REPOSITORY BRANCH`. Both are empty if nothing is kept.
	Branch     string `json:"branch,omitempty"`
	Repository string `json:"repository,omitempty"`
	// Paths are the changed files, or those that prevented a merge; PathsLeft counts those beyond
	// [MaxWorkspacePaths].
	Paths     []string `json:"paths,omitempty"`
	PathsLeft int      `json:"paths_left,omitempty"`
	// Error says why a merge was not made, or why the workspace stays.
	Error string `json:"error,omitempty"`
}

func (o *WorkspaceOutcome) size() int {
	n := len(o.Name) + len(o.Branch) + len(o.Repository) + len(o.Error)
	for _, path := range o.Paths {
		n += len(path) + 4
	}
	return n
}

// MaxWorkspacePaths is how many paths an outcome names.
const MaxWorkspacePaths = 20

// Limits of a workspace's environment.
const (
	maxEnv      = 32
	maxEnvValue = 1024
)

// setForCommands are variables that the worker sets, since no command runs without the right ones.
var setForCommands = []string{"PATH", "HOME", "PWD", "TMPDIR", "SHELL"}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Ends returns what becomes of the workspace of a run that ends with a status.
func (w OwnWorkspace) Ends(s Status) WorkspaceEnd {
	if w.AtEnd == "" || w.AtEnd == WorkspaceMerge && s != StatusCompleted {
		return WorkspaceKeep
	}
	return w.AtEnd
}

func (w *OwnWorkspace) check() error {
	if w == nil {
		return nil
	}
	bad := func(format string, args ...any) error {
		return Errorf(CodeInvalidInput, format, args...).WithPath("agents")
	}
	switch {
	case w.Kind != "" && w.Kind != WorkspaceDirectory && w.Kind != WorkspaceWorktree:
		return bad("workspace.kind must be directory or worktree, not %q", w.Kind)
	case w.Kind == "" && len(w.Env) == 0:
		return bad("workspace needs kind or env")
	case w.Kind == "" && w.AtEnd != "":
		return bad("workspace.at_end needs a kind: without one the sub-agent works where its parent works")
	case w.AtEnd != "" && !slices.Contains([]WorkspaceEnd{WorkspaceMerge, WorkspaceKeep, WorkspaceDrop}, w.AtEnd):
		return bad("workspace.at_end must be merge, keep or drop, not %q", w.AtEnd)
	case w.Kind == WorkspaceDirectory && w.AtEnd == WorkspaceMerge:
		return bad("workspace.at_end: only a worktree can be merged; write keep or drop, or kind: worktree")
	case len(w.Env) > maxEnv:
		return bad("workspace.env has %d variables; at most %d", len(w.Env), maxEnv)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		if !envName.MatchString(name) {
			return bad("workspace.env: %q is no name of an environment variable", name)
		}
		if slices.Contains(setForCommands, name) {
			return bad("workspace.env: the worker sets %s for every command: leave it out, and start the worker with the PATH that commands need", name)
		}
		if v := w.Env[name]; len(v) > maxEnvValue || strings.ContainsRune(v, 0) {
			return bad("workspace.env.%s is longer than %d bytes, or has a NUL", name, maxEnvValue)
		}
	}
	return nil
}
