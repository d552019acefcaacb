package render

import (
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Workspace says what became of a sub-agent's own workspace, and how to get what was kept.
func Workspace(w *agent.WorkspaceOutcome) string {
	var what string
	switch files := Count(len(w.Paths)+w.PathsLeft, "file"); w.Result {
	case agent.WorkspaceMerged:
		what = files + " merged"
	case agent.WorkspaceUnchanged:
		what = "no changes"
	case agent.WorkspaceConflict:
		what = "conflict, nothing merged"
	case agent.WorkspaceKept:
		what = "kept in " + w.Name
		if w.Branch != "" {
			what = files + " changed, not merged"
		}
	default:
		what = string(w.Result)
	}
	if w.Error != "" {
		what += ": " + untrusted.Line(w.Error, maxAsked)
		if len(w.Paths) > 0 {
			what += " (" + untrusted.Line(strings.Join(w.Paths, ", "), maxAsked) + ")"
		}
	}
	if w.Branch != "" {
		what += fmt.Sprintf("; its work: git fetch %s %s", untrusted.Line(w.Repository, maxRepository), untrusted.Line(w.Branch, maxAsked))
	}
	return what
}

// maxRepository bounds the path of a repository, in bytes.
const maxRepository = 512
