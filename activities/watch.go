package activities

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// Look looks at the files that an idle daemon watches. Repeating it changes nothing.
var Look = durable.Activity[loop.LookArgs, agent.FilesSeen]{Name: "fermata.daemon.look"}

func (d *Activities) look(ctx context.Context, in loop.LookArgs) (agent.FilesSeen, error) {
	defer heartbeat(ctx)()
	if d.Workspaces == nil {
		return agent.FilesSeen{}, notBegun(ctx, durable.NoSlot{Missing: agent.Errorf(agent.CodeNotSetUp, "this worker's build has no workspace whose files a daemon could watch (worker.Options.Workspaces)")})
	}
	return d.Workspaces.Watch(ctx, in.Paths, in.Marks)
}
