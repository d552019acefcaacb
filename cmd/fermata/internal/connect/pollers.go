package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// staleAfter is longer than any poll takes: a poller that was not seen for so long is
// gone. The server remembers pollers for five minutes.
const staleAfter = 75 * time.Second

// Pollers lists the workers that poll the task queue for runs. A worker that was killed
// stays in the list for a while.
func (c *Connector) Pollers(ctx context.Context, s *Server) ([]string, error) {
	return s.pollers(ctx, c.Queue())
}

func (s *Server) pollers(ctx context.Context, queue string) ([]string, error) {
	d, err := s.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return nil, fmt.Errorf("looking for workers at the task queue %s: %w", queue, durable.FromRPC(err))
	}
	gone := s.stoppedWorkers(ctx, queue)
	var names []string
	for _, p := range d.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < staleAfter && !gone[p.GetIdentity()] {
			// The SDK's default identity ends with an empty task queue: PID@HOST@.
			names = append(names, strings.TrimSuffix(p.GetIdentity(), "@"))
		}
	}
	return names, nil
}

// pollPatience is how long a started worker may take to poll.
const pollPatience = 10 * time.Second

// AwaitPolling waits until a worker of this process polls the task queue, so that later
// commands find it.
func (c *Connector) AwaitPolling(ctx context.Context, s *Server) error {
	ctx, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	for {
		names, err := c.Pollers(ctx, s)
		switch {
		case len(names) > 0:
			return nil
		// gRPC may report the end of the time before the context does.
		case err != nil && ctx.Err() == nil && !errors.Is(err, agent.CodeTimeout):
			return err
		}
		if !await.Pause(ctx, ProbeInterval) {
			return agent.Errorf(agent.CodeNoWorker, "the worker was started, but the server does not see it at the task queue %s after %s", c.Queue(), pollPatience)
		}
	}
}

// ProbeInterval is the pause between two checks of a server on this machine.
const ProbeInterval = 20 * time.Millisecond

// stoppedWorkers returns the workers that said that they stop: the server counts them as
// pollers for minutes. A server without a list of workers knows none.
func (s *Server) stoppedWorkers(ctx context.Context, queue string) map[string]bool {
	list, err := s.WorkflowService().ListWorkers(ctx, &workflowservice.ListWorkersRequest{
		Namespace: s.Namespace, Query: "TaskQueue = " + signals.Quote(queue),
	})
	// Old servers don't have this call; a stopped worker is then listed for minutes.
	if err != nil {
		return nil
	}
	gone := map[string]bool{}
	for _, w := range list.GetWorkers() {
		stops := w.GetStatus() == enums.WORKER_STATUS_SHUTTING_DOWN || w.GetStatus() == enums.WORKER_STATUS_SHUTDOWN
		before, known := gone[w.GetWorkerIdentity()]
		// Workers with one identity are gone only if all of them stop.
		gone[w.GetWorkerIdentity()] = stops && (before || !known)
	}
	return gone
}

// WorkerBegan reports whether some worker has started a run; true if that is unknown.
func (s *Server) WorkerBegan(ctx context.Context, run *fermata.Run) bool {
	d, err := s.DescribeWorkflowExecution(ctx, run.Session, run.ID)
	const started = 2 // the start, and the task that waits for a worker
	info := d.GetWorkflowExecutionInfo()
	return err != nil || info.GetHistoryLength() > started || durable.Closed(info)
}

// RetryUntilWorker repeats a request to a run while no worker is there, until the context
// ends: a worker that was just started needs a moment until it polls. The request must be
// safe to repeat. The server accepts nothing for a run without a worker.
func RetryUntilWorker[T any](ctx context.Context, c *Connector, ask func() (T, error)) (T, error) {
	for noted := false; ; noted = true {
		answer, err := ask()
		if !errors.Is(err, agent.CodeNoWorker) {
			return answer, err
		}
		if !noted {
			c.Notify("no worker polls the task queue %s yet: waiting for one", c.Queue())
		}
		if !await.Pause(ctx, workerInterval) {
			// The answer's own error says more than the context's.
			return answer, err
		}
	}
}

// workerInterval is the pause between two checks for a worker that was just started.
const workerInterval = 200 * time.Millisecond

// NoWorker returns an error that no worker polls the task queue, and what to do.
func (c *Connector) NoWorker(ctx context.Context, s *Server, more string) error {
	if why, do := c.WhyUnrouted(ctx, s); why != "" {
		return agent.Errorf(agent.CodeNoWorker, "%s: %s%s", why, do, more)
	}
	return agent.Errorf(agent.CodeNoWorker, "no worker polls the task queue %s at %s, namespace %s: start one with %s%s", c.Queue(), s.Addr, s.Namespace, c.CommandLine("worker --agents FILE"), more)
}
