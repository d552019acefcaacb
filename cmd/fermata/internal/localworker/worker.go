package localworker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/auditor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/telemetry"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/worker"
)

// Host starts workers in this process.
type Host struct {
	*connect.Connector
	// Policy is the policy file; empty means the one that the environment names.
	Policy string
	// Deployment and Build are the worker's version; empty if it has none of its own.
	Deployment, Build string
	// Audit is the audit that workers add to.
	Audit *auditor.Record
	// Observer receives what runs do; nil for none.
	Observer *telemetry.Telemetry
}

// Worker is a worker in this process with everything that its agents use.
type Worker struct {
	worker *worker.Worker
	kit    io.Closer
	stop   context.CancelFunc // ends watchDisks
}

// Start starts a worker for the agents of a file. sink receives live events if no other
// process can; it may be nil. patience is how long running calls may take when the worker
// stops.
func (h *Host) Start(ctx context.Context, s *connect.Server, f *agentsfile.File, patience time.Duration, sink live.Sink) (*Worker, error) {
	// First: a misspelt variable may be the reason for an error below.
	h.warnOfEnvironment()
	transcripts, err := h.OpenStore(ctx)
	if err != nil {
		return nil, err
	}
	// All key errors at once: a user corrects them together.
	keys, approving := env.ApprovalKeys.Verifiers()
	exports, exporting := env.ExportKeys.Verifiers()
	policy, err := h.ReadPolicy()
	if err := errors.Join(approving, exporting, err); err != nil {
		return nil, err
	}
	// An end that reaches other processes replaces the one of this process.
	if far, err := h.LiveEnds(s); err != nil {
		return nil, err
	} else if far != nil {
		sink = far
	}
	holds := h.Holds()
	var vault mcp.Vault // in memory, unless the store is encrypted
	// A typed nil in the interface would look like a vault.
	if v := store.NewVault(transcripts); v != nil {
		vault = v
	}
	kit, err := h.openKit(ctx, f, vault, false)
	if err != nil {
		return nil, err
	}
	o := h.Options(f, kit)
	o.Store, o.Temporal, o.Live, o.Holds, o.ApprovalKeys, o.ExportKeys, o.Policy = transcripts, StopsWithin(patience), sink, holds, keys, exports, policy
	o.Deployment, o.Build = h.Deployment, cmp.Or(h.Build, version.Program())
	// The same for the observer: a typed nil would be called.
	if h.Observer != nil {
		o.Observers = []observe.Observer{h.Observer}
	}
	if o.Audit, err = h.Audit.ForWorker(f, h.Log.Slog()); err != nil {
		// The kit may have programs and open files, which must not outlive the error.
		return nil, errors.Join(err, kit.Close())
	}
	w, err := Run(ctx, s, o, kit)
	if err != nil {
		return nil, err
	}
	h.warnOfRisks(f, policy)
	// Stopped before the worker, or it would log disks of a closed store.
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	if err := h.watchDisks(watching, s); err != nil {
		return nil, errors.Join(err, w.shutDown())
	}
	return w, nil
}

// Run starts a worker with options. It closes the kit of its tools if the worker does not
// start; otherwise stopping the worker does.
func Run(ctx context.Context, s *connect.Server, o *worker.Options, kit io.Closer) (*Worker, error) {
	w, err := worker.New(s.Client, o)
	if err == nil {
		err = w.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	return &Worker{w, kit, func() {}}, nil
}

// openKit opens the tools of a file's agents, unless these are not safe on this machine. A look
// pins nothing.
func (h *Host) openKit(ctx context.Context, f *agentsfile.File, vault mcp.Vault, look bool) (kit *agentsfile.Kit, err error) {
	// Before Open: the tools need to know which paths they must not touch.
	if f.Private, err = h.Private(); err != nil {
		return nil, err
	}
	if kit, err = f.Open(h.Log.Slog(), vault); err != nil {
		return nil, err
	}
	if err = kit.Check(); err == nil { // no server starts before
		err = kit.ReadSkills(ctx)
	}
	if err == nil {
		// Only now: a worker that does not start because of a skill pins nothing.
		err = kit.KeepAccepted(ctx, look)
	}
	if err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	return kit, nil
}

// Options returns the options of a worker for an agents file.
func (h *Host) Options(f *agentsfile.File, kit *agentsfile.Kit) *worker.Options {
	return &worker.Options{
		TaskQueue: h.Queue(), Agents: kit.Agents(), Skills: kit.Skills(), Flows: f.WorkerFlows(), Tools: kit.Tools, Workspaces: kit.Workspaces(), Sources: kit.Sources, Approvals: f.Approvals(), Pins: f.Pins(), Models: f.Models(), RateLimits: f.RateLimits(), DailyLimits: f.Daily, Logger: h.Log.Logger,
	}
}

// Wait waits until the context ends, or the worker ends by itself; then the error says
// why.
func (w *Worker) Wait(ctx context.Context) error { return w.worker.Wait(ctx) }

// shutDown stops the worker, and then closes what it used.
func (w *Worker) shutDown() error {
	w.stop()
	w.worker.Stop()
	return w.kit.Close()
}

// Stop stops a worker of this process.
func (h *Host) Stop(w *Worker) {
	if err := w.shutDown(); err != nil {
		h.Notify("fermata: stopping: %v", err)
	}
}

// StopsWithin makes a stopping worker wait that long for running calls.
func StopsWithin(patience time.Duration) func(worker.Lane, *sdk.Options) {
	return func(_ worker.Lane, o *sdk.Options) { o.WorkerStopTimeout = patience }
}
