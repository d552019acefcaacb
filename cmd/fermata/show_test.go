package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Why a run neither rests nor ends is shown.
func TestAFaultIsShown(t *testing.T) {
	var out strings.Builder
	c := &cli{out: &out}
	c.showText(&shown{RunStatus: agent.RunStatus{Status: agent.Running, Fault: agent.Errorf(agent.WorkerLost, "the worker was lost 5 times")}})
	require.Regexp(t, `fault +\[worker_lost\] the worker was lost 5 times`, out.String())
}
