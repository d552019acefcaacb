package worker

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// The names that Temporal accepts for a deployment and a build.
var (
	deploymentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_/-]{0,99}$`)
	buildID        = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$`)
)

// checkDeployment refuses names that the server would refuse or read differently.
func (o *Options) checkDeployment() error {
	switch {
	case o.Deployment == "":
		return nil
	case !deploymentName.MatchString(o.Deployment):
		return agent.Errorf(agent.CodeInvalidInput, "worker.Options.Deployment is %q: a name has letters, digits, _, / and -, at most 100 of them", o.Deployment).WithPath("deployment")
	case o.Build == "":
		return agent.Errorf(agent.CodeInvalidInput, "worker.Options.Build is missing: a Deployment needs it to tell builds apart; use a release or a commit").WithPath("build")
	case !buildID.MatchString(o.Build):
		return agent.Errorf(agent.CodeInvalidInput, "worker.Options.Build is %q: with a Deployment it has letters, digits, ., _, + and -, at most 100 of them", o.Build).WithPath("build")
	}
	return nil
}

// versioning returns Temporal's Worker Versioning for the worker. With its next task a
// run moves to the current build. So a run that is parked for months keeps no old
// deployment alive (docs/decisions/0011).
func (o *Options) versioning() worker.DeploymentOptions {
	if o.Deployment == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: o.Deployment, BuildID: o.Build},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// CurrentBuild returns the current build of a deployment; empty if there is none, or if
// Temporal has not seen a worker of it. The error is [agent.CodeUnreachable] if the
// server does not answer.
func CurrentBuild(ctx context.Context, c client.Client, deployment string) (string, error) {
	d, err := c.WorkerDeploymentClient().GetHandle(deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	var unknown *serviceerror.NotFound
	if err != nil && !errors.As(err, &unknown) {
		return "", fmt.Errorf("asking for the deployment %s: %w", deployment, durable.FromRPC(err))
	}
	if current := d.Info.RoutingConfig.CurrentVersion; current != nil {
		return current.BuildID, nil
	}
	return "", nil
}

// warnOfRouting warns if the worker gets no work until somebody makes its build current.
// If the server does not say, the worker starts without a warning.
func (w *Worker) warnOfRouting(ctx context.Context) {
	v := w.version
	if v == (worker.WorkerDeploymentVersion{}) {
		return
	}
	current, err := CurrentBuild(ctx, w.temporal, v.DeploymentName)
	if err != nil || current == v.BuildID {
		return
	}
	text := fmt.Sprintf("build %s of deployment %s gets no work but a share of a ramp and what is pinned to it: build %s is current", v.BuildID, v.DeploymentName, current)
	if current == "" {
		text = fmt.Sprintf("deployment %s has no current build: no run continues on it until a build is made current", v.DeploymentName)
	}
	w.logger.Warn(text, zap.String("do", fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s", v.DeploymentName, v.BuildID)))
}
