package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Worker runs whatever waits on a task queue.
type Worker struct {
	temporal client.Client
	store    store.Store
	identity *activities.Identity
	lanes    []worker.Worker // the SDK's
	logger   *zap.Logger
	holds    *holdSpreader      // nil where the user's carry them
	hush     context.CancelFunc // ends what goes on beside the lanes
	unread   durable.Unread
	version  worker.WorkerDeploymentVersion // zero where workers are not versioned
	daily    *activities.DailyBudget        // nil without daily limits
	over     sync.Once
	fatal    chan struct{} // closed when the worker has ended by itself
	cause    error         // of that
}

// New makes a worker over a Temporal client, which stays the caller's to close.
// Every fault of the options is told at once, joined in one error, before
// anything is started.
func New(c client.Client, o *Options) (*Worker, error) {
	if o == nil {
		o = &Options{}
	}
	acts, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	acts.Client, acts.Identity.Client = c, c
	acts.DailyBudget = o.daily(c)
	versioning := o.versioning()
	w := &Worker{temporal: c, store: o.Store, identity: acts.Identity, logger: o.logger(), hush: func() {}, version: versioning.Version, daily: acts.DailyBudget, fatal: make(chan struct{})}
	process := newProcess()
	if acts.InFlight.Holds = o.Holds; o.Holds == nil {
		w.holds = newHolds(c, o.taskQueue(), process, acts.InFlight, o.logger())
		acts.InFlight.Holds = w.holds
	}
	w.lanes = o.lanes(c, acts, worker.Options{
		Identity:                     process,
		WorkerStopTimeout:            stopTimeout,
		DeploymentOptions:            versioning,
		Interceptors:                 interceptors(o.shell(acts)),
		MaxHeartbeatThrottleInterval: activities.HeartbeatThrottle,
		DeadlockDetectionTimeout:     taskTime,
		OnFatalError:                 w.ended,
	})
	if w.holds != nil {
		w.lanes = append(w.lanes, w.holds.inner)
	}
	return w, nil
}

// daily is this process' part of the daily limits; nil if there are none.
func (o *Options) daily(c client.Client) *activities.DailyBudget {
	if o.DailyLimits == (agent.DailyLimits{}) {
		return nil
	}
	queue := o.taskQueue()
	return &activities.DailyBudget{Limits: o.DailyLimits, Queue: queue, Logger: o.slogger(), Claim: func(ctx context.Context, claim wire.DailyClaim) (wire.DailyGrant, error) {
		return signals.ClaimDaily(ctx, c, queue, claim)
	}}
}

// stopTimeout is how long [Worker.Stop] waits for model and tool calls in progress. What
// takes longer is tried again elsewhere, or marked as unknown.
const stopTimeout = 30 * time.Second

// giveBack leaves to other workers what this one has of the daily limits.
func (w *Worker) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	w.daily.GiveBack(ctx)
}

// giveBackWithin bounds that: it is for a day's last two per cent.
const giveBackWithin = 2 * time.Second

// ended hears what has ended one of the SDK's workers; the first is told.
func (w *Worker) ended(err error) {
	w.over.Do(func() {
		w.cause = durable.FromRPC(err)
		close(w.fatal)
	})
}

// taskTime is how long the workflow may take for what comes with one task, as long as
// the server waits for it. That may be 10,000 signals, on a busy machine: past the SDK's
// one second the task would be given up as a deadlock, and come again forever.
const taskTime = 10 * time.Second

// build is the version of the program that the worker is part of.
func (o *Options) build() string {
	if o.Build != "" {
		return o.Build
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// Run works until the context ends, and then stops as [Worker.Stop] does. The errors
// are those of [Worker.Start], and what ends a worker by itself, after two minutes: that
// its namespace is gone, or that it can't decrypt what it is given to do.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.Start(ctx); err != nil {
		return err
	}
	defer w.Stop()
	return w.Wait(ctx)
}

// Wait returns nil when the context ends, and what has ended a worker that was started by
// itself: see [Worker.Run]. Such a worker takes no more work; stop it.
func (w *Worker) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.fatal:
		return fmt.Errorf("the worker has stopped: %w", w.cause)
	}
}

// watchKeys says so when the worker is given what it can't decrypt, and ends it later: what
// it has begun may come to its end.
func (w *Worker) watchKeys(ctx context.Context) {
	bad := w.unread.Wait(ctx)
	if bad == nil {
		return
	}
	w.logger.Error("this worker takes no more work: it was given a task that it can't decrypt, which other workers get now", zap.Error(bad),
		zap.Stringer("ends_in", durable.UnreadFor), zap.String("do", "start it again with all keys that are in use"))
	select {
	case <-time.After(durable.UnreadFor):
		w.ended(bad)
	case <-ctx.Done():
	}
}

// Start begins to work. It refuses, with [agent.CodeNotSetUp], to work for a
// namespace that lacks a search attribute, with transcripts on this
// machine's disk for a server elsewhere, with another store than that of the task
// queue's other workers, or for runs that are encrypted with a key
// that it does not have; [agent.CodeUnreachable] tells that the server does not answer, and
// [agent.CodeTimeout] that it did not within two minutes.
func (w *Worker) Start(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("worker refused to start: %w", err)
	}
	w.warnOfRouting(ctx)
	for _, one := range w.lanes {
		if err := one.Start(); err != nil {
			w.Stop()
			return fmt.Errorf("starting the worker: %w", durable.FromRPC(err))
		}
	}
	// This goes on as long as the worker lives, and not as long as its start.
	live, hush := context.WithCancel(context.WithoutCancel(ctx))
	w.hush = hush
	go w.watchKeys(live)
	if w.holds != nil {
		w.holds.run(live)
	}
	return nil
}

// Stop takes no more work, waits for the calls in progress for 30s
// ([Options.Temporal] sets it), and returns. It may be called more than once.
func (w *Worker) Stop() {
	w.giveBack() // while it can do a task of the account itself
	var over sync.WaitGroup
	for _, one := range w.lanes {
		over.Go(one.Stop)
	}
	over.Wait()
	w.giveBack() // what calls have left that were in progress, with the help of other workers
	w.hush()
}
