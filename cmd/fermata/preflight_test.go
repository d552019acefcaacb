package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/worker"
)

// Preflight says of a run that waits whether this build, and a new agents file, can go
// on with it, and what to do where they can't (HX-91).
func TestPreflight(t *testing.T) {
	s := scripted(t, traveller()).works(pay())
	id := s.session("a")
	r := s.run("run", "traveller", "To Rome", "--session", id)
	require.Equal(t, 3, r.exit, r.err)

	r = s.run("preflight")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "1 run tried: 1 fit, 0 would break, 0 lack something\n", r.out)
	require.Contains(t, r.err, "only the workflow's code is tried")
	require.NotContains(t, r.err, "no open run")
	r = inProcess(t, append([]string{"preflight", "--task-queue", "typo"}, s.flags[:2]...)...)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "the task queue typo has no open run: name another one with --task-queue")

	file := filepath.Join(t.TempDir(), "fermata.yaml")
	writeFile(t, file, "agents: {traveller: {model: \"script:s.yaml\", tools: [ask_user]}}\n")
	writeFile(t, filepath.Join(filepath.Dir(file), "s.yaml"), "replies: [{text: hi}]\n")
	r = s.run("preflight", "-f", file)
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.out, "MISSING  "+id+"  run ")
	require.Contains(t, r.out, "tool pay")
	require.Contains(t, r.out, "-> keep that until the run ends, or end it: fermata stop "+id)
	require.Contains(t, r.out, "1 run tried: 0 fit, 0 would break, 1 lacks something")

	r = s.run("preflight", "-f", file, "--json")
	require.Equal(t, 6, r.exit, r.err)
	v := lastLine[worker.Verdict](t, r.out)
	require.Equal(t, []any{id, "traveller", worker.MissingParts}, []any{v.Session, v.Agent, v.Compatibility})

	r = s.run("preflight", "--query", "FermataAgent =")
	require.Equal(t, 2, r.exit, r.err)
	require.Equal(t, 2, s.run("preflight", "--closed", "-1").exit)
}
