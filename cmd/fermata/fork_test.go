package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// An answer waits for a worker that is just starting, and with --wait for what comes of it.
func TestAnswerWaitsForAWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  asker: {model: \"script:s.yaml\", tools: [ask_user]}\n")
	b.write("s.yaml", "replies:\n  - {calls: [{tool: ask_user, arguments: {question: \"Which one?\"}}]}\n  - {text: \"That one.\"}\n")
	require.Equal(t, 3, b.run("run", "asker", "go", "--session", "s-1").exit)
	dev := b.elsewhere().start("dev") // a server without a worker, which knows of none
	dev.until("ready")
	answer := b.command("answer", "s-1", "the first", "--request", "q-1", "--wait")
	var out bytes.Buffer
	errs := &screen{changed: make(chan struct{})}
	answer.Stdout, answer.Stderr = &out, errs
	require.NoError(t, answer.Start())
	require.True(t, errs.await("waiting for one"), errs.String())
	worker := b.start("worker", "--agents", "fermata.yaml")
	require.NoError(t, answer.Wait(), "%s%s", &out, errs)
	require.Contains(t, out.String(), "s-1: q-1 answered")
	require.Contains(t, out.String(), "That one.\ncompleted")
	worker.end(15)
	dev.end(15)
}

// times begins a run that Temporal ends after some seconds, whatever it waits for.
func (s *stage) times(name string) *fermata.Run {
	s.t.Helper()
	_, err := s.temporal.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: s.session(name), TaskQueue: s.name, WorkflowExecutionTimeout: 5 * time.Second,
	}, signals.WorkflowType, agent.Start{V: agent.Version, Agent: "asker", Input: agent.Input{Text: "go"}})
	require.NoError(s.t, err)
	run, err := s.Get(s.t.Context(), s.session(name))
	require.NoError(s.t, err)
	return run
}

// A run that rests and that Temporal ends does not know of its end, and nor does its log.
// It can be retried if Temporal says that it failed, and forked in any case.
func TestAgainAfterAnEndFromOutside(t *testing.T) {
	asker := role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{asksFor("How?"), {Text: "Well."}}}
	s := scripted(t, asker).works()
	timed := s.times("timed")
	require.Equal(t, agent.StatusSuspended, s.rests(timed).Status)
	o, err := timed.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusFailed, o.Status)
	r := s.run("retry", timed.Session)
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.out, "fermata answer "+timed.Session+" --request q-")
	s.fails(6, "it is suspended: only a failed run can be retried; end it first (stop or cancel), or fork into a new session", "retry", timed.Session)

	cut := s.begin("cut", "asker", nil)
	s.rests(cut)
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), cut.Session, "", "enough"))
	s.fails(6, "has not failed, it is cancelled: only a failed run can be retried; fork it instead", "retry", cut.Session)
	r = s.run("fork", cut.Session)
	require.Equal(t, 3, r.exit, r.err)
}

// A head that was restored from a backup says that the run waits, and Temporal that it failed.
func TestRetryAfterTheHeadWasRestored(t *testing.T) {
	asker := role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{
		asksFor("How?"), {Fail: []testsuite.Failure{{Kind: agent.FaultBadRequest, Message: "no"}}, Text: "Well."},
	}}
	s := scripted(t, asker).works()
	run := s.begin("a", "asker", nil)
	s.rests(run)
	heads, err := filepath.Glob(filepath.Join(s.options.Store.(*store.Dir).Root(), "heads", "*.json"))
	require.NoError(t, err)
	require.Len(t, heads, 1)
	old, err := os.ReadFile(heads[0])
	require.NoError(t, err)
	require.Contains(t, string(old), string(agent.StatusSuspended))
	require.Equal(t, 1, s.run("answer", run.Session, "so", "--request", "q-1", "--wait").exit)
	writeFile(t, heads[0], string(old))
	r := s.run("retry", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Well.\ncompleted")
}

// Only the agent that delegates starts runs of a sub-agent. Who goes on with its conversation learns how.
func TestASubAgentsSessionIsForkedIntoANewOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "as_root: true\nagents:\n  lead: {model: \"script:lead.yaml\", agents: [{agent: clerk}]}\n  clerk: {model: \"script:clerk.yaml\"}\n")
	b.write("lead.yaml", "replies: [{calls: [{tool: subagent__clerk, arguments: {task: Look.}}]}, {text: Done.}]\n")
	b.write("clerk.yaml", "replies: [{text: Looked.}, {text: Looked again.}]\n")
	r := b.run("run", "lead", "Look.", "--session", "s-1")
	require.Zero(t, r.exit, r.out+r.err)
	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	r = b.run("send", "s-1/clerk-1", "Once more.")
	require.Equal(t, 6, r.exit, r.out+r.err)
	require.Contains(t, r.err, "the run of session s-1/clerk-1 is at an end; go on with the agent that delegated to it, or fork this session into a new one")
	for _, command := range [][]string{{"retry", "s-1/clerk-1", "--yes"}, {"fork", "s-1/clerk-1", "--message", "Once more.", "--yes"}} {
		r = b.run(command...)
		require.Equal(t, 2, r.exit, r.out+r.err)
		require.Contains(t, r.err, "session s-1/clerk-1 is a sub-agent's, and only the agent that delegates to it starts runs there; fork it into a new session")
	}
	r = b.run("fork", "s-1/clerk-1", "--new", "--as", "s-2", "--message", "Once more.", "--yes")
	require.Zero(t, r.exit, r.out+r.err)
	require.Contains(t, r.out, "Looked again.")
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}
