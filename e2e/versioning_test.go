package e2e

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/worker"
)

// fleet is a stage whose workers are versions of one deployment.
type fleet struct {
	*stage
	name string
}

// deploy starts a worker of a build and makes the build current.
func (f fleet) deploy(t *testing.T, build string) *worker.Worker {
	t.Helper()
	return f.release(t, build, f.parkable())
}

// release is deploy for a worker with other options.
func (f fleet) release(t *testing.T, build string, o *worker.Options) *worker.Worker {
	t.Helper()
	o.Deployment, o.Build = f.name, build
	w := f.open(t, o)
	f.switchTo(t, build)
	return w
}

// pin binds a run to a build, or with an empty one lets it go.
func (f fleet) pin(t *testing.T, run *client.Run, build string) {
	t.Helper()
	var o temporal.VersioningOverride
	if build != "" {
		o = &temporal.PinnedVersioningOverride{Version: sdk.WorkerDeploymentVersion{DeploymentName: f.name, BuildID: build}}
	}
	_, err := f.temporal.UpdateWorkflowExecutionOptions(t.Context(), temporal.UpdateWorkflowExecutionOptionsRequest{
		WorkflowId: run.Session, WorkflowExecutionOptionsChanges: temporal.WorkflowExecutionOptionsChanges{VersioningOverride: &temporal.VersioningOverrideChange{Value: o}},
	})
	require.NoError(t, err)
}

// switchTo makes a build current, as soon as the server has seen a worker of it; with an empty
// one no build is current.
func (f fleet) switchTo(t *testing.T, build string) {
	t.Helper()
	h := f.temporal.WorkerDeploymentClient().GetHandle(f.name)
	require.Eventually(t, func() bool {
		_, err := h.SetCurrentVersion(t.Context(), temporal.WorkerDeploymentSetCurrentVersionOptions{BuildID: build, IgnoreMissingTaskQueues: build == ""})
		return err == nil
	}, patience, 20*time.Millisecond)
	// The deployment answers when it has told its task queues, which takes a loaded server long.
	require.Eventually(t, func() bool {
		current, err := worker.CurrentBuild(t.Context(), f.temporal, f.name)
		return err == nil && current == build
	}, patience, 20*time.Millisecond)
}

// answerBy lets a run that has asked go on, and checks by which build it ends.
func (f fleet) answerBy(t *testing.T, run *client.Run, build string) {
	t.Helper()
	w := f.suspended(t, run)
	q := w.Requests[0].ID
	if w.Requests[0].Type == agent.RequestApproval {
		f.say(t, run, agent.ApproveCommand{Request: q})
	} else {
		f.say(t, run, agent.AnswerCommand{Request: q, Text: "Rome"})
	}
	f.endsBy(t, run, build)
}

func (f fleet) endsBy(t *testing.T, run *client.Run, build string) {
	t.Helper()
	out := f.result(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, build, f.builtBy(t, run.Session))
}

// builtBy is the build that has done the last of a workflow's tasks.
func (f fleet) builtBy(t *testing.T, workflow string) (build string) {
	t.Helper()
	for _, e := range f.history(t, workflow, "") {
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			build = done.GetDeploymentVersion().GetBuildId()
		}
	}
	return build
}

// Runs that are parked under one build go on under the next once that is current, with
// no worker of their own left, and back again: of every kind, with what is below them
// (HX-91).
func TestRunsMoveWithTheCurrentBuild(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	f := fleet{s, "shop-" + uuid.NewString()[:8]}
	a := f.deploy(t, "a")
	runs := f.park(t)
	b := f.deploy(t, "b")
	a.Stop()
	f.answerBy(t, runs["question"], "b")
	f.answerBy(t, runs["approval"], "b")
	f.answerBy(t, runs["below"], "b")
	f.say(t, runs["held"], agent.ResumeCommand{})
	f.answerBy(t, runs["held"], "b")
	f.answerBy(t, f.begin(t, "ask me", nil), "b")

	again := f.deploy(t, "a")
	b.Stop()
	f.say(t, runs["time"], agent.ResumeCommand{})
	f.endsBy(t, runs["time"], "a")
	f.say(t, runs["daemon"], agent.StopCommand{Deadline: agent.Duration(10 * time.Second)})
	require.Equal(t, agent.StatusStopped, f.result(t, runs["daemon"]).Status)
	require.Equal(t, "a", f.builtBy(t, runs["daemon"].Session))
	again.Stop()
}

// A deployment of which no build is current runs nothing, and its worker says what to
// do; a build that is not current says which one is.
func TestAWorkerWithoutWork(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	f := fleet{s, "shop-" + uuid.NewString()[:8]}
	warned := func(build string) []observer.LoggedEntry {
		core, log := observer.New(zap.WarnLevel)
		o := f.parkable()
		o.Deployment, o.Build, o.Logger = f.name, build, zap.New(core)
		f.open(t, o)
		return log.TakeAll()
	}
	first := warned("a")
	require.Len(t, first, 1)
	require.Equal(t, "deployment "+f.name+" has no current build: no run continues on it until a build is made current", first[0].Message)
	require.Equal(t, "temporal worker deployment set-current-version --deployment-name "+f.name+" --build-id a", first[0].ContextMap()["do"])
	run := f.begin(t, "be done", nil)
	f.switchTo(t, "a")
	f.endsBy(t, run, "a")
	second := warned("b")
	require.Len(t, second, 1)
	require.Equal(t, "build b of deployment "+f.name+" gets no work but a share of a ramp and what is pinned to it: build a is current", second[0].Message)
	require.Empty(t, warned("a"))
}

// A run that an operator has pinned to a build waits for that build, and goes on with
// the current one as soon as it is let go.
func TestAPinnedRunIsLetGo(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	f := fleet{s, "shop-" + uuid.NewString()[:8]}
	a := f.deploy(t, "a")
	run := f.begin(t, "ask me", nil)
	q := f.suspended(t, run).Requests[0].ID
	f.pin(t, run, "a")
	f.deploy(t, "b")
	a.Stop()
	require.NoError(t, signals.Signal(t.Context(), f.temporal, run.Session, agent.AnswerCommand{Request: q, Text: "Rome"}))
	f.answerBy(t, f.begin(t, "ask me", nil), "b") // b has work, and not this run's
	require.Equal(t, "a", f.builtBy(t, run.Session))
	f.pin(t, run, "")
	f.endsBy(t, run, "b")
}

// Versioning is switched on, and off again, under runs that wait.
func TestVersioningIsSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	f := fleet{s, "shop-" + uuid.NewString()[:8]}
	plain := f.open(t, f.parkable())
	first, second := f.begin(t, "ask me", nil), f.begin(t, "ask me", nil)
	f.suspended(t, first)
	f.suspended(t, second)
	a := f.deploy(t, "a")
	plain.Stop()
	f.answerBy(t, first, "a")
	f.open(t, f.parkable())
	f.switchTo(t, "")
	a.Stop()
	f.answerBy(t, second, "")
}
