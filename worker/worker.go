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
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Worker runs what its task queue brings. Make one with [New].
type Worker struct {
	temporal client.Client
	store    store.Store
	identity *activities.Identity
	lanes    []worker.Worker // the SDK's
	logger   *zap.Logger
	holds    *holdSpreader      // nil if the user's Holds carry them
	hush     context.CancelFunc // ends the goroutines beside the lanes
	unread   durable.Unread
	version  worker.WorkerDeploymentVersion // zero without versioning
	called   []calledQueue                  // by tools
	daily    *activities.DailyBudget        // nil without daily limits
	seen     *observers.Set                 // nil without observers
	over     sync.Once
	fatal    chan struct{} // closed when the worker has ended by itself
	cause    error         // why; set before fatal is closed
}

// New returns a worker that uses a Temporal client. The client stays the caller's to
// close. All faults of the options are returned at once, joined in one error, and nothing
// is started.
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
	w := &Worker{temporal: c, store: o.Store, identity: acts.Identity, logger: o.logger(), hush: func() {}, version: versioning.Version, called: calledQueues(o.Tools), daily: acts.DailyBudget, seen: acts.Observers, fatal: make(chan struct{})}
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

// daily returns this process's part of the daily limits; nil if there are none.
func (o *Options) daily(c client.Client) *activities.DailyBudget {
	if o.DailyLimits == (agent.DailyLimits{}) {
		return nil
	}
	queue := o.taskQueue()
	return &activities.DailyBudget{Limits: o.DailyLimits, Queue: queue, Logger: o.slogger(), Claim: func(ctx context.Context, claim wire.DailyClaim) (wire.DailyGrant, error) {
		return signals.ClaimDaily(ctx, c, queue, claim)
	}}
}

// stopTimeout is how long [Worker.Stop] waits for model and tool calls in progress. A
// call that takes longer is repeated elsewhere, or its outcome is unknown.
const stopTimeout = 30 * time.Second

// giveBack returns what this worker has left of the daily limits to the others.
func (w *Worker) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	w.daily.GiveBack(ctx)
}

// giveBackWithin limits giveBack, which is about two per cent of a day's limit.
const giveBackWithin = 2 * time.Second

// ended takes the error that has ended one of the SDK's workers. The first one counts.
func (w *Worker) ended(err error) {
	w.over.Do(func() {
		w.cause = durable.FromRPC(err)
		close(w.fatal)
	})
}

// taskTime is how long a workflow may take for one task: as long as the server waits for
// it. A task may bring 10,000 signals, on a busy machine. After the SDK's default of one
// second, the task would fail as a deadlock, and come again for ever.
const taskTime = 10 * time.Second

// build returns the version of the program.
func (o *Options) build() string {
	if o.Build != "" {
		return o.Build
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// Run works until the context ends, and then stops as [Worker.Stop] does. It returns the
// errors of [Worker.Start]. It also returns what has ended the worker by itself, after
// two minutes: its namespace is gone, or it cannot decrypt its tasks.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.Start(ctx); err != nil {
		return err
	}
	defer w.Stop()
	return w.Wait(ctx)
}

// Wait returns nil when the context ends. If a started worker has ended by itself, it
// returns why; see [Worker.Run]. Such a worker takes no more work; call Stop.
func (w *Worker) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.fatal:
		return fmt.Errorf("the worker has stopped: %w", w.cause)
	}
}

// watchKeys logs when the worker has stopped polling because it cannot decrypt its tasks.
// Some time later it ends the worker. Until then, work in progress can finish.
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

// Start begins to work. It returns [agent.CodeNotSetUp] if the namespace lacks a search
// attribute, if the transcripts are on this machine's disk and the server is elsewhere,
// if the task queue's other workers have another store, or if it cannot decrypt the
// store. It returns [agent.CodeUnreachable] if the server does not answer, and
// [agent.CodeTimeout] if it did not within two minutes.
func (w *Worker) Start(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("worker refused to start: %w", err)
	}
	w.warnOfRouting(ctx)
	w.warnOfUnpolled(ctx)
	for _, one := range w.lanes {
		if err := one.Start(); err != nil {
			w.Stop()
			return fmt.Errorf("starting the worker: %w", durable.FromRPC(err))
		}
	}
	// Not the start's own context: this lasts as long as the worker.
	live, hush := context.WithCancel(context.WithoutCancel(ctx))
	w.hush = hush
	go w.watchKeys(live)
	if w.holds != nil {
		w.holds.run(live)
	}
	return nil
}

// Stop stops polling, waits up to 30s for calls in progress ([Options.Temporal] sets the
// time), and returns. It also waits up to 5s until the observers have received everything.
// Then their context ends. What is left reaches them as gaps, within one more second. It may
// be called more than once.
func (w *Worker) Stop() {
	w.giveBack() // while this process still polls, and can run the account's task itself
	var over sync.WaitGroup
	for _, one := range w.lanes {
		over.Go(one.Stop)
	}
	over.Wait()
	w.giveBack() // what calls in progress had left; now another worker must run the account's task
	w.hush()
	w.seen.Stop()
}
