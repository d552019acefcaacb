package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
)

// A worker of a build that is not current polls, and gets no run: doctor and run say so, and
// what to type.
func TestAWorkerWhoseBuildIsNotCurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dev := b.start("dev", "--addr", b.addr)
	dev.until("ready")
	project(b)
	one := b.start("worker", "--agents", "fermata.yaml", "--deployment", "shop", "--build", "1")
	one.until("ready")
	idle := func(why, build string) {
		t.Helper()
		do := "temporal worker deployment set-current-version --deployment-name shop --build-id " + build
		r := b.elsewhere().run("doctor")
		require.Equal(t, agent.CodeNoWorker.ExitStatus(), r.exit, r.out)
		require.Regexp(t, "(?m)^FAIL worker +\\d+@.* polls the task queue fermata and gets no run: "+why, r.out)
		require.Contains(t, r.out, "-> "+do)
		r = b.elsewhere().run("run", "sorter", "x")
		require.Equal(t, agent.CodeNoWorker.ExitStatus(), r.exit, r.err)
		require.Regexp(t, `\[no_worker\] \d+@.* polls the task queue fermata and gets no run: `+why+`.*: `+do, r.err)
	}
	idle("no build of deployment shop is current", "1")

	c, err := client.Dial(client.Options{HostPort: b.addr})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkerDeploymentClient().GetHandle("shop").SetCurrentVersion(t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: "1"})
	require.NoError(t, err)
	require.Contains(t, b.elsewhere().run("doctor").out, "ok   worker")
	require.Zero(t, b.elsewhere().run("run", "sorter", "x").exit)

	two := b.start("worker", "--agents", "fermata.yaml", "--deployment", "shop", "--build", "2")
	two.until("ready")
	require.Contains(t, b.elsewhere().run("doctor").out, "ok   worker", "one of the current build is there")
	require.Zero(t, one.end(syscall.SIGINT).exit)
	idle("build 1 of deployment shop is current, and no worker of it is here", "2")
	require.Zero(t, two.end(syscall.SIGINT).exit)
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}
