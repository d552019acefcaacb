package connect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
)

// WhyUnrouted says why none of the workers at the task queue gets a run, and which
// command changes it: with Worker Versioning only workers of the current build get runs.
// Both are empty if one gets runs, if none polls, or if the server does not say.
func (c *Connector) WhyUnrouted(ctx context.Context, s *Server) (why, do string) {
	d, err := s.DescribeTaskQueue(ctx, c.Queue(), enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return "", ""
	}
	gone := s.stoppedWorkers(ctx, c.Queue())
	here := slices.DeleteFunc(d.GetPollers(), func(p *taskqueue.PollerInfo) bool {
		// As in Pollers: a worker that is gone must not explain anything.
		return time.Since(p.GetLastAccessTime().AsTime()) >= staleAfter || gone[p.GetIdentity()]
	})
	routes := d.GetVersioningInfo()
	// While a version ramps, new runs go to two builds, so some worker may get them.
	if len(here) == 0 || routes.GetRampingVersionPercentage() > 0 || slices.ContainsFunc(here, func(p *taskqueue.PollerInfo) bool {
		return isCurrent(p.GetDeploymentOptions(), routes.GetCurrentDeploymentVersion())
	}) {
		return "", ""
	}
	current, mine := routes.GetCurrentDeploymentVersion(), here[0].GetDeploymentOptions()
	switch {
	case current == nil:
		why = fmt.Sprintf("%s polls the task queue %s and gets no run: no build of deployment %s is current", here[0].GetIdentity(), c.Queue(), mine.GetDeploymentName())
	default:
		why = fmt.Sprintf("%s polls the task queue %s and gets no run: build %s of deployment %s is current, and no worker of it is here", here[0].GetIdentity(), c.Queue(), current.GetBuildId(), current.GetDeploymentName())
	}
	// A worker without a version can't become current, so start one with the current version.
	if !versioned(mine) {
		return why, c.CommandLine("worker --deployment %s --build %s", current.GetDeploymentName(), current.GetBuildId())
	}
	do = fmt.Sprintf("worker deployment set-current-version --deployment-name %s --build-id %s", mine.GetDeploymentName(), mine.GetBuildId())
	if c.Namespace != "" {
		do += " --namespace " + ShellWord(c.Namespace)
	}
	return why, c.TemporalLine(s, do)
}

// isCurrent reports whether new runs go to a worker. Without a current build they go to
// workers without a version.
func isCurrent(o *deployment.WorkerDeploymentOptions, current *deployment.WorkerDeploymentVersion) bool {
	if current == nil || !versioned(o) {
		return current == nil && !versioned(o)
	}
	return o.GetDeploymentName() == current.GetDeploymentName() && o.GetBuildId() == current.GetBuildId()
}

func versioned(o *deployment.WorkerDeploymentOptions) bool {
	return o.GetWorkerVersioningMode() == enums.WORKER_VERSIONING_MODE_VERSIONED
}
