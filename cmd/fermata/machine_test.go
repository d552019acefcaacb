package main

import (
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
)

// A run that was parked on one machine is resumed from another one, which knows its
// session's name, the server's address and the store, and no more; the worker that parked it is gone
// (HL-28, HL-47, OA-29, OA-30, HA-138). What comes last says how it ended.
func TestResumeOnAnotherMachine(t *testing.T) {
	t.Parallel()
	server, queue := devserver.ForPackage(t).Addr(), "machines-"+uuid.NewString()[:8]
	machine := func() *bench {
		b := setup(t)
		b.write("fermata.yaml", "agents: {keeper: {model: \"script:keeper.yaml\", tools: [await_resumption]}}\n")
		b.write("keeper.yaml", `
replies:
  - {calls: [{tool: await_resumption, arguments: {reason: "the shop is closed"}}]}
  - {text: "It is open."}
`)
		return b
	}
	one, other, id := machine(), machine(), queue+".a"
	folder := t.TempDir() // what both share beside the server
	at := func(args ...string) []string {
		return append(args, "--address", server, "--task-queue", queue, "--store", folder)
	}
	w := one.start(at("worker", "--agents", "fermata.yaml")...)
	w.until("ready")
	r := one.run(at("run", "keeper", "go", "--session", id, "--json")...)
	require.Equal(t, 3, r.exit, r.err)
	rest := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{agent.StatusSuspended, agent.InitiatorSelf, "the shop is closed"}, []any{rest.Status, rest.Suspension.Initiator, rest.Suspension.Reason})
	w.end(syscall.SIGKILL)

	w = other.start(at("worker", "--agents", "fermata.yaml")...)
	w.until("ready")
	r = other.run(at("resume", id, " ")...)
	require.Equal(t, 2, r.exit, r.err)
	require.Contains(t, r.err, "the message is blank")
	r = other.run(at("resume", id, "open it", "--wait", "--json")...)
	require.Zero(t, r.exit, r.err)
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{agent.StatusCompleted, id, rest.Run, "It is open."}, []any{o.Status, o.Session, o.Run, o.Text})
	require.Zero(t, w.end(syscall.SIGINT).exit)
}
