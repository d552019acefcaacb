package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
)

// A workflow that somebody else has begun names no file and no command for a resume.
func TestEvalResumeTrustsNoPathOfTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	evalProject(b)
	away := b.elsewhere()
	away.write("own.yaml", "name: mixed\nagent: good\ncases: [{name: good, input: Hello, graders: [{exact: Listed.}]}]\n")
	dev := b.start("dev")
	dev.until("ready")
	c, err := client.Dial(client.Options{HostPort: b.addr})
	require.NoError(t, err)
	defer c.Close()
	const id = "mixed-0a1b2c3d"
	info := eval.Info{
		ID: id, Suite: "mixed", Agents: b.dir + "/fermata.yaml", Dir: b.dir, Queue: "fermata", Evaluator: evaluatorQueue + id, Total: 2,
	}
	suite, _, err := readSuite(b.dir+"/suite.yaml", eval.Pick{})
	require.NoError(t, err)
	_, err = evalrun.Start(t.Context(), c, suite, info, b.dir)
	require.NoError(t, err)

	r := away.run("eval", "resume", id)
	require.Equal(t, 2, r.exit, r.err)
	require.Contains(t, r.err, "no record of the evaluation "+id+": name its suite")
	r = away.run("eval", "resume", id, "own.yaml")
	require.NotZero(t, r.exit)
	require.Regexp(t, "began with another (suite|agents file)", r.err)
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}
