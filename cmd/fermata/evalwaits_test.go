package main

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

// A command that waits says for whom: for a worker that evaluates, and for the server.
func TestEvalRunSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  late: {model: \"script:late.yaml\"}\n")
	b.write("late.yaml", "replies:\n  - {text: \"Done.\", delay: 9m}\n")
	b.write("suite.yaml", "name: waits\nagent: late\ncases: [{name: a, input: x, graders: [{exact: Done.}]}]\n")
	dev := b.start("dev")
	dev.until("ready")
	r := b.run("eval", "show", "none-1a2b3c4d")
	require.Equal(t, 6, r.exit)
	require.Contains(t, r.err, "none-1a2b3c4d is no evaluation that this server has, and no file with a report; see fermata eval ls")
	nobody := b.aloud("eval", "run", "suite.yaml", "--evaluator", "nobody")
	nobody.until("waiting for a worker: none evaluates on the task queue nobody")
	require.Equal(t, 130, nobody.end(syscall.SIGINT).exit)
	lost := b.aloud("eval", "run", "suite.yaml")
	lost.until("evaluation waits-")
	dev.end(syscall.SIGKILL)
	lost.until("waiting for the Temporal server, which does not answer")
	lost.end(syscall.SIGKILL)
}

// A case without a verdict has no rate: 0 % would say that it failed.
func TestNoRateWithoutVerdicts(t *testing.T) {
	var out bytes.Buffer
	r := &report.Report{Cases: []report.Case{{Name: "a", State: report.StateError, Planned: 1, Why: "no key"}}}
	newCLI(strings.NewReader(""), &out, io.Discard).printReport(r)
	require.Regexp(t, `(?m)^a +error +0/1 +- +- +- +- +- +no key$`, out.String())
}

// aloud starts a command whose messages are lines of its output, too.
func (b *bench) aloud(args ...string) *process {
	cmd := b.command(args...)
	cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`, cmd.Path}, args...)
	cmd.Path = "/bin/sh"
	return b.started(nil, cmd)
}
