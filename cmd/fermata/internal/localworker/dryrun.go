package localworker

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/worker"
)

// DryRun returns what a run of a file's agent would be. It opens the tools as a worker does,
// and closes them again.
func (h *Host) DryRun(ctx context.Context, f *agentsfile.File, start agent.Start) (p *agent.Preview, err error) {
	kit, err := h.openKit(ctx, f, nil, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kit.Close()) }()
	return worker.DryRun(ctx, h.Options(f, kit), start)
}
