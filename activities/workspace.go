package activities

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/tool"
)

// MakeWorkspace makes a sub-agent's own workspace, and EndWorkspace merges, keeps or drops it.
// Repeating them changes nothing.
var (
	MakeWorkspace = durable.Activity[loop.MakeWorkspaceArgs, struct{}]{Name: "fermata.workspace.make"}
	EndWorkspace  = durable.Activity[loop.EndWorkspaceArgs, agent.WorkspaceOutcome]{Name: "fermata.workspace.end"}
)

func (d *Activities) makeWorkspace(ctx context.Context, in loop.MakeWorkspaceArgs) (struct{}, error) {
	defer heartbeat(ctx)()
	if d.Workspaces == nil {
		return struct{}{}, notBegun(ctx, durable.NoSlot{Missing: noWorkspaces()})
	}
	return struct{}{}, again(d.Workspaces.MakeOwn(ctx, ownOf(in)))
}

func (d *Activities) endWorkspace(ctx context.Context, in loop.EndWorkspaceArgs) (agent.WorkspaceOutcome, error) {
	defer heartbeat(ctx)()
	if d.Workspaces == nil {
		return agent.WorkspaceOutcome{}, notBegun(ctx, durable.NoSlot{Missing: noWorkspaces()})
	}
	out, err := d.Workspaces.EndOwn(ctx, ownOf(in.MakeWorkspaceArgs), in.AtEnd)
	switch missing := errors.Is(err, tool.ErrElsewhere); {
	case missing && in.Made:
		return out, elsewhere(ctx)
	case missing: // the run was cancelled before it was made
		return agent.WorkspaceOutcome{Result: agent.WorkspaceDropped}, nil
	}
	return out, again(err)
}

func ownOf(in loop.MakeWorkspaceArgs) tool.OwnWorkspace {
	return tool.OwnWorkspace{Kind: in.Kind, Name: in.Name, Base: in.Base, Session: in.Session}
}

// again returns an error that another attempt may mend: a full disk, or a lock that a killed git left.
func again(err error) error {
	if err == nil {
		return nil
	}
	e := agent.Errorf(agent.CodeOf(err), "%w", err)
	e.Retryable = e.Code == agent.CodeInternal
	return e
}

// elsewhere returns the error of an activity whose workspace is on another machine: the run looks for a
// worker that has it.
func elsewhere(ctx context.Context) error {
	return notBegun(ctx, durable.NoSlot{Missing: agent.Errorf(agent.CodeNotFound, "%w", tool.ErrElsewhere)})
}

func noWorkspaces() *agent.Error {
	return agent.Errorf(agent.CodeNotSetUp, "this worker's build has no workspace for sub-agents' own ones (worker.Options.Workspaces)")
}
