package tool

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// Workspaces makes and ends the workspaces that sub-agents have for themselves, and watches the files of
// the worker's own for daemons. The package
// tool/workspace has one. Its methods are safe for use by many goroutines at once, and repeating a call
// changes nothing: a worker may be killed at any point.
type Workspaces interface {
	// CheckOwn returns why this worker can't make a workspace of a kind; nil if it can. The error says
	// what to do.
	CheckOwn(kind agent.WorkspaceKind) error
	// MakeOwn makes a workspace.
	MakeOwn(ctx context.Context, w OwnWorkspace) error
	// EndOwn merges, keeps or drops a workspace. What can't be merged is kept, and the outcome says
	// why. An error is temporary, or [ErrElsewhere].
	EndOwn(ctx context.Context, w OwnWorkspace, end agent.WorkspaceEnd) (agent.WorkspaceOutcome, error)
	// CheckWatch returns why this worker can't watch paths for a daemon ([agent.Daemon.Watch]); nil if it
	// can. A path that does not exist may be watched. The error says what to do.
	CheckWatch(paths []string) error
	// Watch looks at the files below paths, and compares them with the marks of an earlier look; nil
	// marks mean that this is the first one. What is not there, or may not be read, has no files. An
	// error is temporary.
	Watch(ctx context.Context, paths []string, marks []agent.FileMark) (agent.FilesSeen, error)
}

// OwnWorkspace names a sub-agent's own workspace.
type OwnWorkspace struct {
	Kind agent.WorkspaceKind
	// Name is the name of its directory, and Base that of its parent's; an empty Base is the worker's
	// workspace itself. Session is the sub-agent's, for people.
	Name, Base string
	Session    string
}

// ErrElsewhere is what [errors.Is] finds if a sub-agent's workspace is not on this machine. Nothing was
// done, and another worker may have it.
var ErrElsewhere = errors.New("the workspace of this sub-agent is not on this machine: let all workers share the directory of such workspaces (workspaces in the agents file), or run one worker")
