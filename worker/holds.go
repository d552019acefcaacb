package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/workflows"
)

// holdSpreader tells other worker processes of holds by Temporal alone: by a query to a workflow
// of each, on a task queue that only that process polls. Where there are few processes,
// all are told. Where there are many, it asks the server which of them have steps in
// flight below the session that is held. So a hold costs what the tree is large, however
// many processes there are, and writes nothing (docs/decisions/0019).
type holdSpreader struct {
	temporal client.Client
	queue    string // of the runs
	process  string // this one
	inner    worker.Worker
	logger   *zap.Logger
	waiting  chan agent.HoldRef

	looks singleflight.Group // at which processes there are

	mu    sync.Mutex
	fleet []string  // the other processes, if they are few
	few   bool      // whether they are
	until time.Time // how long that is believed
	// silent are processes that did not answer, and since when.
	silent map[string]time.Time
}

const (
	// fewProcesses is up to how many other processes are told of every hold.
	fewProcesses = 8
	// fewProcessesAge is how long a list of few processes is believed, and manyFor that they are
	// many: the server remembers a process for five minutes.
	fewProcessesAge, manyProcessesAge = time.Second, 5 * time.Minute

	// maxWaiting bounds the holds that wait to be told.
	maxWaiting = 256
	// tellers is how many holds are told at once, and lookers how many runs of a tree are
	// looked at for each.
	tellers, lookers = 64, 16
	// tellTime is how long a hold is worth telling: the runs tell each other meanwhile.
	tellTime = 2 * time.Second
	// silentFor is how long a process that did not answer is not spoken to. The server
	// lists one that is gone for five minutes.
	silentFor = time.Minute
	// openFor is how long a process's workflow waits for it: a worker that starts may wait
	// for the server.
	openFor = 10 * time.Minute
	// maxTold bounds the runs that are looked at for one hold.
	maxTold = 4096
)

// newProcess names a worker among all that poll the same task queue. The name is the
// worker's identity, which the server shows with what the worker has in flight.
func newProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s/%s", os.Getpid(), host, uuid.NewString()[:8])
}

func newHolds(c client.Client, queue, process string, f *activities.InFlight, l *zap.Logger) *holdSpreader {
	h := &holdSpreader{temporal: c, queue: queue, process: process, logger: l, waiting: make(chan agent.HoldRef, maxWaiting), silent: map[string]time.Time{}}
	h.inner = worker.New(c, signals.ProcessQueue(queue, process), worker.Options{
		Identity: process, LocalActivityWorkerOnly: true,
		MaxConcurrentWorkflowTaskPollers: 2, // the SDK takes no fewer: one of them polls for what is in its cache
	})
	workflows.RegisterProcess(h.inner, f)
	return h
}

// Publish implements [live.Holds].
func (c *holdSpreader) Publish(h agent.HoldRef) {
	select {
	case c.waiting <- h:
	default:
		c.logger.Warn("too many holds at once: other processes learn of this one from run to run", zap.String("session", h.Session))
	}
}

// Follow implements [live.Holds]: the server knows already what is in flight here.
func (c *holdSpreader) Follow(string, func(agent.HoldRef)) (leave func()) { return func() {} }

// run tells until the context ends.
func (c *holdSpreader) run(ctx context.Context) {
	for range tellers {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case h := <-c.waiting:
					c.spread(ctx, h)
				}
			}
		}()
	}
}

// spread tells all other processes of a hold, or where they are many, each that it meets
// as it goes down the tree, level by level.
func (c *holdSpreader) spread(ctx context.Context, h agent.HoldRef) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	var told sync.WaitGroup
	defer told.Wait()
	if fleet, few := c.others(ctx); few {
		for _, process := range fleet {
			told.Go(func() { c.tell(ctx, process, h) })
		}
		return
	}
	known, looked := map[string]bool{c.process: true, "": true}, 0
	for level := []string{h.Session}; len(level) > 0 && looked < maxTold; {
		looked += len(level)
		var below []string
		for _, d := range c.look(ctx, level) {
			for _, a := range d.steps {
				if process := a.GetLastWorkerIdentity(); !known[process] {
					known[process] = true
					told.Go(func() { c.tell(ctx, process, h) })
				}
			}
			below = append(below, d.children...)
		}
		level = below
	}
}

// others lists the other processes that poll the runs' task queue, if they are few. Holds
// that come together share a look, and none waits for the server longer than its context.
func (c *holdSpreader) others(ctx context.Context) (fleet []string, isFew bool) {
	if fleet, isFew, known := c.known(); known {
		return fleet, isFew
	}
	look := c.looks.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
		defer cancel()
		return nil, c.count(ctx)
	})
	select {
	case <-look:
	case <-ctx.Done():
	}
	fleet, isFew, _ = c.known()
	return fleet, isFew
}

// known is what the last look has found, as long as that is believed.
func (c *holdSpreader) known() (fleet []string, isFew, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !time.Now().Before(c.until) {
		return nil, false, false
	}
	return c.fleet, c.few, true
}

// count asks the server which processes there are.
func (c *holdSpreader) count(ctx context.Context) error {
	d, err := c.temporal.DescribeTaskQueue(ctx, c.queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		c.logger.Debug("nobody tells which processes there are", zap.Error(err))
		return err
	}
	var fleet []string
	for _, p := range d.GetPollers() {
		if p.GetIdentity() != c.process {
			fleet = append(fleet, p.GetIdentity())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fleet, c.few, c.until = fleet, true, time.Now().Add(fewProcessesAge)
	if len(fleet) > fewProcesses {
		c.fleet, c.few, c.until = nil, false, time.Now().Add(manyProcessesAge)
	}
	return nil
}

// doing is what a run has in flight.
type doing struct {
	steps    []*workflowpb.PendingActivityInfo
	children []string
}

// look asks the server for what runs have in flight. One that can't be had is left out.
func (c *holdSpreader) look(ctx context.Context, sessions []string) []doing {
	found := make([]doing, len(sessions))
	var over sync.WaitGroup
	turns := make(chan struct{}, lookers)
	for i, session := range sessions {
		turns <- struct{}{}
		over.Go(func() {
			defer func() { <-turns }()
			d, err := c.temporal.DescribeWorkflowExecution(ctx, session, "")
			if err != nil {
				c.logger.Debug("a run below a hold could not be looked at", zap.String("session", session), zap.Error(err))
				return
			}
			found[i].steps = d.GetPendingActivities()
			for _, child := range d.GetPendingChildren() {
				if strings.HasPrefix(child.GetWorkflowId(), session+"/") {
					found[i].children = append(found[i].children, child.GetWorkflowId())
				}
			}
		})
	}
	over.Wait()
	return found
}

// backOff leaves a process alone for a while.
func (c *holdSpreader) backOff(process string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.silent, func(_ string, since time.Time) bool { return time.Since(since) > silentFor })
	c.silent[process] = time.Now()
}

// backedOff reports whether a process did not answer just now.
func (c *holdSpreader) backedOff(process string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.silent[process]
	return ok && time.Since(since) <= silentFor
}

// tell tells another process of a hold. One that is gone never hears it.
func (c *holdSpreader) tell(ctx context.Context, process string, h agent.HoldRef) {
	if c.backedOff(process) {
		return
	}
	for again := true; ; again = false {
		_, err := signals.Held.Ask(ctx, c.temporal, signals.ProcessID(process), "", h)
		if again && errors.Is(err, agent.CodeNotFound) { // Temporal has forgotten its workflow
			if err = c.open(ctx, process); err == nil {
				continue
			}
		}
		if err != nil {
			c.backOff(process)
			c.logger.Debug("a hold could not be told to another process: it learns of it from run to run", zap.String("session", h.Session), zap.String("process", process), zap.Error(err))
		}
		return
	}
}

// open starts the workflow by which others speak to a process. It carries every search
// attribute: a namespace that lacks one refuses it.
func (c *holdSpreader) open(ctx context.Context, process string) error {
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: signals.ProcessID(process), TaskQueue: signals.ProcessQueue(c.queue, process), WorkflowRunTimeout: openFor,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, TypedSearchAttributes: signals.ProbeAttributes(signals.ProcessType),
	}, signals.ProcessType)
	return err
}
