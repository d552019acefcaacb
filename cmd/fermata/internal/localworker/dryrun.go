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

// CheckWorker returns why no worker starts with a file's agents and the skills of a kit; see
// [agentsfile.File.OpenSkills]. It opens the other tools as a worker does, and closes them again. No
// server is started.
func (h *Host) CheckWorker(f *agentsfile.File, skills *agentsfile.Kit) (err error) {
	kit, err := f.Open(h.Log.Slog(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kit.Close()) }()
	o := h.Options(f, kit)
	o.Agents, o.Skills = skills.Agents(), skills.Skills()
	return o.Check()
}
