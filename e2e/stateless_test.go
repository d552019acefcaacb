package e2e

import (
	"context"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// countedStore lists the calls of a store.
type countedStore struct {
	store.Store
	mu    *sync.Mutex
	calls *[]string
}

func (s countedStore) count(name, about string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.calls = append(*s.calls, name+" "+about)
}

func (s countedStore) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	s.count("PutIfAbsent", key)
	return s.Store.PutIfAbsent(ctx, key, value)
}

func (s countedStore) PutChunk(ctx context.Context, name string, data []byte) error {
	s.count("PutChunk", name)
	return s.Store.PutChunk(ctx, name, data)
}

func (s countedStore) Chunk(ctx context.Context, name string) ([]byte, error) {
	s.count("Chunk", name)
	return s.Store.Chunk(ctx, name)
}

func (s countedStore) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	s.count("ChunkStart", name)
	return s.Store.ChunkStart(ctx, name, most)
}

func (s countedStore) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	s.count("Chunks", prefix)
	return s.Store.Chunks(ctx, prefix)
}

func (s countedStore) DeleteChunk(ctx context.Context, name string, before time.Time) (bool, error) {
	s.count("DeleteChunk", name)
	return s.Store.DeleteChunk(ctx, name, before)
}

func (s countedStore) Head(ctx context.Context, session string) (store.Head, error) {
	s.count("Head", session)
	return s.Store.Head(ctx, session)
}

func (s countedStore) PutHead(ctx context.Context, h store.Head) error {
	s.count("PutHead", h.Session)
	return s.Store.PutHead(ctx, h)
}

func (s countedStore) Heads(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
	s.count("Heads", prefix)
	return s.Store.Heads(ctx, prefix)
}

func (s countedStore) DeleteHead(ctx context.Context, session string, version int64) error {
	s.count("DeleteHead", session)
	return s.Store.DeleteHead(ctx, session, version)
}

// storeless is a stage whose worker has a store that counts.
type storeless struct {
	*stage
	seen countedStore
	o    *worker.Options
}

func stateless(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *storeless {
	t.Helper()
	s := on(t, shared(t))
	c := &storeless{s, countedStore{s.store, &sync.Mutex{}, &[]string{}}, nil}
	def.Name, def.Model = "tester", "script"
	for _, tl := range tools {
		def.Tools = append(def.Tools, tl.Spec().Name)
	}
	kept := def
	kept.Name, kept.Stateless = "kept", false
	c.o = &worker.Options{TaskQueue: s.queue, Agents: []agent.Definition{def, kept}, Tools: tools, Store: c.seen, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon}
	s.worker = s.open(t, c.o)
	return c
}

// forget drops the calls that were counted: those of a worker's start.
func (c *storeless) forget() { c.seen.mu.Lock(); *c.seen.calls = nil; c.seen.mu.Unlock() }

// required requires that the store was not touched.
func (c *storeless) required(t *testing.T, calls bool) {
	t.Helper()
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	require.Equal(t, calls, len(*c.seen.calls) > 0, "%q", *c.seen.calls)
}

// A run of a stateless agent calls its worker's store never: not for its log, nor while it waits for a
// person, nor on another worker. Its events and its outcome are Temporal's alone (OA-85, OA-112).
func TestAStatelessRunStoresNothing(t *testing.T) {
	t.Parallel()
	replies := func() *testsuite.Script {
		return testsuite.NewScript(
			testsuite.Reply{Calls: call("echo", map[string]any{"text": strings.Repeat("private ", 40_000)})},
			testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})}, testsuite.Reply{Text: "It is spam."})
	}
	c := stateless(t, agent.Definition{Stateless: true, Tools: []string{agent.AskUserTool}}, replies(), echo(nil))
	c.forget()
	run, err := c.Start(t.Context(), "tester", "spam or not?", nil)
	require.NoError(t, err)
	asked := c.suspended(t, run).Requests[0].ID
	c.worker.Stop() // another worker goes on from the history
	c.required(t, false)
	c.worker = c.open(t, c.o)
	c.forget()
	c.say(t, run, agent.AnswerCommand{Request: asked, Text: "yes"})
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "It is spam.", out.Text)
	var last agent.EventType
	for e, err := range run.Follow(t.Context(), "") {
		require.NoError(t, err)
		last = e.Type
	}
	require.Equal(t, agent.EventRunCompleted, last)
	c.required(t, false)

	kept, err := c.Start(t.Context(), "kept", "spam or not?", nil)
	require.NoError(t, err)
	c.suspended(t, kept)
	c.required(t, true) // the count sees the same agent with sessions
}

// A stateless agent refuses a session that it is given before its model is asked, whoever starts it (OA-112).
func TestAStatelessAgentRefusesASession(t *testing.T) {
	t.Parallel()
	c := stateless(t, agent.Definition{Stateless: true}, testsuite.NewScript(testsuite.Reply{Text: "spam", Repeat: 9}))
	c.forget()
	refused := func(out *agent.Outcome, what string) {
		t.Helper()
		require.Equal(t, agent.StatusFailed, out.Status)
		require.ErrorIs(t, out.Err(), agent.CodeInvalidInput)
		require.Contains(t, out.Error.Message, what)
		require.Zero(t, out.Turns)
	}
	_, out := c.run(t, "spam?", &client.StartOptions{Session: "mail-7-" + c.queue})
	refused(out, "leave the session out")
	plain, err := c.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: "mail-8-" + c.queue, TaskQueue: c.queue}, signals.WorkflowType, agent.Start{Agent: "tester", Input: agent.Input{Text: "spam?"}})
	require.NoError(t, err)
	var plainOut agent.Outcome
	err = plain.Get(t.Context(), &plainOut)
	require.ErrorContains(t, err, "leave the session out")
	_, out = c.run(t, "spam?", &client.StartOptions{Carry: agent.CarryReset})
	refused(out, "leave carry out")

	run, out := c.run(t, "spam?", nil)
	require.Equal(t, agent.StatusCompleted, out.Status)
	none := func(_ any, err error) {
		t.Helper()
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, "stateless agent, which keeps no session")
	}
	none(c.Start(t.Context(), "tester", "spam?", &client.StartOptions{Session: run.Session}))
	none(c.Send(t.Context(), run.Session, "and this?", nil))
	none(c.Fork(t.Context(), run.Session, &client.ForkOptions{Text: "and this?"}))
	none(c.Fork(t.Context(), run.Session, &client.ForkOptions{Text: "and this?", NewSession: true}))
	none(c.Retry(t.Context(), run.Session, nil))
	none(c.Export(t.Context(), run.Session, io.Discard, &client.ExportOptions{Key: signsNow}))
	c.required(t, false)
}

// Nothing of a stateless run gets into a store, also if a plain start forks it.
func TestAStatelessRunIsNotForked(t *testing.T) {
	t.Parallel()
	c := stateless(t, agent.Definition{Stateless: true}, testsuite.NewScript(testsuite.Reply{Text: "very private answer", Repeat: 9}))
	run, out := c.run(t, "spam?", nil)
	require.Equal(t, agent.StatusCompleted, out.Status)
	plain, err := c.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: "thief-" + c.queue, TaskQueue: c.queue}, signals.WorkflowType,
		agent.Start{V: 1, Agent: "kept", Input: agent.Input{Text: "and?"}, From: &agent.StartFrom{Session: run.Session, Checkpoint: out.Checkpoint}})
	require.NoError(t, err)
	var got agent.Outcome
	err = plain.Get(t.Context(), &got)
	messages, _ := c.Transcript(t.Context(), "thief-"+c.queue)
	for _, m := range messages {
		require.NotContains(t, m.Text(), "very private answer", "the fork's session has stored it")
	}
	require.ErrorContains(t, err, "stateless")
}

// A stateless run takes no file: it would be stored.
func TestAStatelessRunTakesNoFile(t *testing.T) {
	t.Parallel()
	c := stateless(t, agent.Definition{Stateless: true, Tools: []string{agent.AskUserTool}}, testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})}, testsuite.Reply{Text: "It is spam."}))
	run, err := c.Start(t.Context(), "tester", "spam or not?", nil)
	require.NoError(t, err)
	asked := c.suspended(t, run).Requests[0].ID
	_, err = c.Send(t.Context(), run.Session, "look at this", &client.SendOptions{Files: []client.FileInput{{Name: "letter.txt", MediaType: "text/plain", Data: []byte("very private letter")}}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	var kept []string
	for i, cerr := range c.store.Chunks(t.Context(), store.ChunkPrefix(run.Session)) {
		require.NoError(t, cerr)
		kept = append(kept, i.Name)
	}
	c.say(t, run, agent.AnswerCommand{Request: asked, Text: "yes"})
	out, rerr := run.Result(t.Context())
	require.NoError(t, rerr)
	require.Equal(t, agent.StatusCompleted, out.Status)
	require.Empty(t, kept, "the store has chunks of the stateless run's id")
}

// A stateless run goes on at another worker, whatever its tools have returned: its whole log, which that
// worker asks for, fits an answer of a query.
func TestAStatelessRunFitsAnAnswer(t *testing.T) {
	t.Parallel()
	page := tool.New("page", "Reads.", func(context.Context, *tool.Call, map[string]any) (string, error) {
		return strings.Repeat("<", 45_000), nil
	}, nil)
	replies := func() *testsuite.Script {
		var all []testsuite.Reply
		for n := range 18 {
			all = append(all, testsuite.Reply{Calls: call("page", map[string]any{"page": n})})
		}
		return testsuite.NewScript(append(all, testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Go on?"})}, testsuite.Reply{Text: "It is spam."})...)
	}
	c := stateless(t, agent.Definition{Stateless: true, Tools: []string{agent.AskUserTool}}, replies(), page)
	run, err := c.Start(t.Context(), "tester", "spam or not?", nil)
	require.NoError(t, err)
	asked := c.suspended(t, run).Requests[0].ID
	_, err = signals.ReadTail(t.Context(), c.temporal, run.Session, "")
	require.NoError(t, err)
	c.worker.Stop()
	c.worker = c.open(t, c.o)
	c.say(t, run, agent.AnswerCommand{Request: asked, Text: "yes"})
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "It is spam.", out.Text)
}
