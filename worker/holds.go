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

// holdSpreader announces holds to other worker processes through Temporal: by a query to
// each process's own workflow, on a task queue that only that process polls. With few
// processes it tells all of them. With many it asks the server which of them have
// activities in flight below the held session. So the cost of a hold depends on the size
// of the tree and not on the number of processes, and it writes nothing
// (docs/decisions/0019).
type holdSpreader struct {
	temporal client.Client
	queue    string // the runs' task queue
	process  string // this process
	inner    worker.Worker
	logger   *zap.Logger
	waiting  chan agent.HoldRef

	looks singleflight.Group // at which processes there are

	mu    sync.Mutex
	fleet []string  // the other processes, if they are few
	few   bool      // whether they are few
	until time.Time // how long the two are valid
	// silent are processes that did not answer, and when.
	silent map[string]time.Time
}

const (
	// fewProcesses is up to how many other processes every hold is sent to all.
	fewProcesses = 8
	// fewProcessesAge is how long a list of few processes is valid, and manyProcessesAge
	// how long the answer that there are many: the server remembers a process for five
	// minutes.
	fewProcessesAge, manyProcessesAge = time.Second, 5 * time.Minute

	// maxWaiting limits the holds that wait to be sent.
	maxWaiting = 256
	// tellers is how many holds are sent at the same time, and lookers how many runs of a
	// tree are examined at the same time for each.
	tellers, lookers = 64, 16
	// tellTime is how long a hold is worth sending. Meanwhile the runs tell each other.
	tellTime = 2 * time.Second
	// silentFor is how long a process that did not answer is skipped. The server still
	// lists a process that is gone for five minutes.
	silentFor = time.Minute
	// openFor is the run timeout of a process's workflow: a worker that starts may have
	// to wait for the server.
	openFor = 10 * time.Minute
	// maxTold limits the runs that are examined for one hold.
	maxTold = 4096
)

// newProcess returns a unique name for a worker. It is the worker's identity, which the
// server shows with the activities that the worker has.
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
		MaxConcurrentWorkflowTaskPollers: 2, // the SDK's minimum; one of them polls for cached workflows
	})
	workflows.RegisterProcess(h.inner, f)
	return h
}

// Publish implements [live.Holds].
func (c *holdSpreader) Publish(h agent.HoldRef) {
	select {
	case c.waiting <- h:
	// It is called within a workflow task, which must not wait.
	default:
		c.logger.Warn("too many holds at once: other processes learn of this one from run to run", zap.String("session", h.Session))
	}
}

// Follow implements [live.Holds]. There is nothing to do: the server knows what is in
// flight here.
func (c *holdSpreader) Follow(string, func(agent.HoldRef)) (leave func()) { return func() {} }

// run sends holds until the context ends.
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

// spread sends a hold to all other processes. If they are many, it goes down the tree
// level by level, and sends it to each process that has an activity there.
func (c *holdSpreader) spread(ctx context.Context, h agent.HoldRef) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	var told sync.WaitGroup
	// Runs before cancel, so that no tell loses its context.
	defer told.Wait()
	if fleet, few := c.others(ctx); few {
		for _, process := range fleet {
			told.Go(func() { c.tell(ctx, process, h) })
		}
		return
	}
	// This process has handled the hold; an activity without a worker has no identity.
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

// others returns the other processes that poll the runs' task queue, if they are few.
// Holds at the same time share one request, and none waits for it longer than its
// context.
func (c *holdSpreader) others(ctx context.Context) (fleet []string, isFew bool) {
	if fleet, isFew, known := c.known(); known {
		return fleet, isFew
	}
	look := c.looks.DoChan("", func() (any, error) {
		// Shared, so one hold's timeout must not end it for the others.
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

// known returns the last count, while it is valid.
func (c *holdSpreader) known() (fleet []string, isFew, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !time.Now().Before(c.until) {
		return nil, false, false
	}
	return c.fleet, c.few, true
}

// count asks the server for the processes.
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

// look asks the server what runs have in flight. A run that it cannot describe is left
// out.
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
				// Other programs may start child workflows too; only ours have ids below
				// the session.
				if strings.HasPrefix(child.GetWorkflowId(), session+"/") {
					found[i].children = append(found[i].children, child.GetWorkflowId())
				}
			}
		})
	}
	over.Wait()
	return found
}

// backOff skips a process for a while.
func (c *holdSpreader) backOff(process string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.silent, func(_ string, since time.Time) bool { return time.Since(since) > silentFor })
	c.silent[process] = time.Now()
}

// backedOff reports whether a process is skipped.
func (c *holdSpreader) backedOff(process string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.silent[process]
	return ok && time.Since(since) <= silentFor
}

// tell sends a hold to a process. A process that is gone gets nothing.
func (c *holdSpreader) tell(ctx context.Context, process string, h agent.HoldRef) {
	if c.backedOff(process) {
		return
	}
	for again := true; ; again = false {
		_, err := signals.Held.Ask(ctx, c.temporal, signals.ProcessID(process), "", h)
		if again && errors.Is(err, agent.CodeNotFound) { // the process's workflow is no longer there
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

// open starts the workflow by which others reach a process. It sets every search
// attribute, so a namespace that lacks one refuses it.
func (c *holdSpreader) open(ctx context.Context, process string) error {
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: signals.ProcessID(process), TaskQueue: signals.ProcessQueue(c.queue, process), WorkflowRunTimeout: openFor,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, TypedSearchAttributes: signals.ProbeAttributes(signals.ProcessType),
	}, signals.ProcessType)
	return err
}
