package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// Worker runs whatever waits on a task queue.
type Worker struct {
	temporal client.Client
	store    store.Store
	inner    worker.Worker
	callers  []worker.Worker // make the model calls that are bounded
	logger   *zap.Logger
	bus      *bus
	hush     context.CancelFunc             // ends the bus
	version  worker.WorkerDeploymentVersion // zero where workers are not versioned
	fatal    chan error                     // has what ended the worker by itself
}

// New makes a worker over a Temporal client, which stays the caller's to close.
// Every fault of the options is told at once, joined in one error, before
// anything is started.
func New(c client.Client, o *Options) (*Worker, error) {
	if o == nil {
		o = &Options{}
	}
	deeds, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	deeds.Client = c
	versioning := o.versioning()
	w := &Worker{temporal: c, store: o.Store, logger: o.logger(), hush: func() {}, version: versioning.Version, fatal: make(chan error, 1)}
	w.bus = newBus(c, o.taskQueue(), deeds.Flights, o.logger())
	options := worker.Options{
		WorkerStopTimeout: o.stopTimeout(),
		DeploymentOptions: versioning,
		Interceptors:      interceptors(o.shell(deeds)),
		// Where the server can't push a cancellation, it comes with a heartbeat:
		// the throttle is how long that takes.
		DefaultHeartbeatThrottleInterval: heartbeatThrottle, MaxHeartbeatThrottleInterval: heartbeatThrottle,
		DeadlockDetectionTimeout:     taskTime,
		StickyScheduleToStartTimeout: stickyTime,
		OnFatalError:                 w.ended,
	}
	w.inner, w.callers = worker.New(c, o.taskQueue(), options), o.callers(c, deeds, options)
	o.register(w.inner, deeds)
	return w, nil
}

// ended hears what has ended one of the SDK's workers; the first is told.
func (w *Worker) ended(err error) {
	select {
	case w.fatal <- durable.ArriveRPC(err):
	default:
	}
}

const heartbeatThrottle = time.Second

// stickyTime is how long a run waits for the worker that has it in its cache, before any
// other one may go on with it: what a worker that was killed costs each of its runs, and
// what a task that the server has lost on its way does.
const stickyTime = time.Second

// taskTime is how long the workflow may take for what comes with one task, as long as
// the server waits for it. That may be 10,000 signals, on a busy machine: past the SDK's
// one second the task would be given up as a deadlock, and come again for ever.
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
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.fatal:
		return fmt.Errorf("the worker has stopped: %w", err)
	}
}

// Start begins to work. It refuses, with [agent.NotSetUp], to work for a
// namespace that lacks a search attribute, with transcripts on this
// machine's disk for a server elsewhere, or for runs that are encrypted with a key
// that it does not have; [agent.Unreachable] tells that the server does not answer.
func (w *Worker) Start(ctx context.Context) error {
	if err := w.checkStore(ctx); err != nil {
		return fmt.Errorf("worker refused to start: %w", err)
	}
	if err := w.checkAttributes(ctx); err != nil {
		return fmt.Errorf("worker refused to start: %w", err)
	}
	if err := w.checkKeys(ctx); err != nil {
		return fmt.Errorf("worker refused to start: %w", err)
	}
	w.warnOfRouting(ctx)
	for _, one := range w.all() {
		if err := one.Start(); err != nil {
			w.Stop()
			return fmt.Errorf("starting the worker: %w", durable.ArriveRPC(err))
		}
	}
	// The bus lives as long as the worker, and not as long as its start.
	live, hush := context.WithCancel(context.WithoutCancel(ctx))
	w.hush = hush
	go w.bus.run(live)
	return nil
}

// Stop takes no more work, waits for the calls in progress as long as the
// options say, and returns. It may be called more than once.
func (w *Worker) Stop() {
	var over sync.WaitGroup
	for _, one := range w.all() {
		over.Go(one.Stop)
	}
	over.Wait()
	w.hush()
}

// all are the SDK's workers.
func (w *Worker) all() []worker.Worker { return append([]worker.Worker{w.inner}, w.callers...) }

// checkStore refuses transcripts that another worker could not read.
func (w *Worker) checkStore(ctx context.Context) error {
	var server peer.Peer
	_, err := w.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}, grpc.Peer(&server))
	if err != nil {
		return durable.ArriveRPC(err)
	}
	kept := w.store
	if e, ok := kept.(*store.Encrypted); ok {
		kept = e.Inner()
	}
	dir, ok := kept.(*store.Dir)
	if !ok || dir.Shared() || server.Addr == nil || loopback(server.Addr.String()) {
		return nil
	}
	return agent.Errorf(agent.NotSetUp, "the store in %s is on this machine, and Temporal is at %s: a worker elsewhere could not read the transcripts. Open the store as shared (store.DirOptions, --store-shared) if every worker sees this folder, or use another store", dir.Root(), server.Addr)
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a pipe or a socket file
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// checkAttributes refuses a namespace that lacks a search attribute: the first
// run would hang there for ever.
func (w *Worker) checkAttributes(ctx context.Context) error {
	missing, err := MissingAttributes(ctx, w.temporal)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return agent.Errorf(agent.NotSetUp, "the namespace lacks the search attributes %s: run fermata setup, once a namespace", strings.Join(missing, ", "))
	}
	return nil
}

// checkKeys refuses to take work that this process can't decrypt: it looks at a live
// run of its queue, and at a head of the store. Where there is neither the first task tells.
func (w *Worker) checkKeys(ctx context.Context) error {
	live, err := w.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 1, Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = %s", signals.WorkflowType, signals.Quote(w.bus.queue)),
	})
	if err != nil {
		return fmt.Errorf("looking at a live run: %w", durable.ArriveRPC(err))
	}
	for _, run := range live.GetExecutions() {
		for _, p := range run.GetMemo().GetFields() {
			if err := durable.Unreadable(p); err != nil {
				return err
			}
		}
	}
	if w.store == nil {
		return nil
	}
	for _, err := range store.NewLog(w.store).Store().Heads(ctx, "") {
		if errors.Is(err, agent.NotSetUp) {
			return err
		}
		break
	}
	return nil
}

// MissingAttributes lists the search attributes that the client's namespace
// lacks, or has with another type. It asks as any reader would, since not every
// server shows its attributes to workers.
func MissingAttributes(ctx context.Context, c client.Client) (missing []string, err error) {
	for _, a := range agent.Attributes() {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: a.Name + comparisons[a.Type]})
		var unknown *serviceerror.InvalidArgument
		switch {
		case errors.As(err, &unknown):
			missing = append(missing, a.Name)
		case err != nil:
			return nil, fmt.Errorf("looking for search attributes: %w", durable.ArriveRPC(err))
		}
	}
	return missing, nil
}

// comparisons are queries that only an attribute of the type stands.
var comparisons = map[agent.AttributeType]string{
	agent.Keyword: " = 'none'", agent.KeywordList: " = 'none'", agent.Datetime: " < '1970-01-02T00:00:00Z'",
}
