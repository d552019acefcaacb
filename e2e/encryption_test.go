package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// The program of docs/encryption.md.
func connect(ctx context.Context, keys, address string) (temporal.Client, store.Store, error) {
	ring, err := keyring.Parse(keys) // "k1:base64,k0:base64"
	if err != nil {
		return nil, nil, err
	}
	options := temporal.Options{HostPort: address}
	if err := client.Prepare(&options, &client.PrepareOptions{Keyring: ring}); err != nil {
		return nil, nil, err
	}
	c, err := temporal.DialContext(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	dir, err := store.OpenDir("transcripts", nil)
	return c, store.Encrypt(dir, ring), err
}

func TestThePageOnEncryptionShowsAProgramThatWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/encryption.md")
	require.NoError(t, err)
	program, err := os.ReadFile("encryption_test.go")
	require.NoError(t, err)
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		require.Contains(t, string(program), text)
	}
}

func newKey(t *testing.T, id string) string {
	t.Helper()
	key, err := keyring.New(id)
	require.NoError(t, err)
	return key
}

// keyedProcess is a process with keys: a client, its store and, where it has one, a worker.
type keyedProcess struct {
	*client.Client
	temporal temporal.Client
	store    store.Store
}

// process connects as docs/encryption.md does, in the test's own folder.
func process(t *testing.T, keys string, s place) *keyedProcess {
	t.Helper()
	c, st, err := connect(t.Context(), keys, s.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &keyedProcess{client.New(c, &client.Options{TaskQueue: t.Name(), Store: st}), c, st}
}

// Words that stand wherever something is said.
const hushed = "the-blue-door-twice"

func (v *keyedProcess) worker(t *testing.T) *worker.Worker {
	t.Helper()
	fails := tool.New("fail", "fails", func(_ context.Context, c *tool.Call, _ struct{ Why string }) (string, error) {
		_ = tool.Key[string]("kept").Set(c, hushed)
		return "", errors.New("no: " + hushed)
	}, nil)
	w, err := worker.New(v.temporal, &worker.Options{
		TaskQueue: t.Name(), Store: v.store, Logger: zap.NewNop(), Temporal: stopsSoon, Tools: []tool.Tool{fails},
		Agents: []agent.Definition{
			{Name: "lead", Model: "m", Instructions: hushed, Tools: []string{"fail", agent.AskUserTool}, Agents: []agent.SubAgent{{Agent: "clerk"}}},
			{Name: "clerk", Model: "m"},
		},
		Models: map[string]model.Model{"m": testsuite.NewScript(
			testsuite.Reply{Match: "^begin", Calls: call("fail", map[string]any{"Why": hushed})},
			testsuite.Reply{Match: "^no: ", Calls: call("subagent__clerk", map[string]any{"task": "look " + hushed})},
			testsuite.Reply{Match: "^look", Text: "seen " + hushed},
			testsuite.Reply{Match: "seen", Calls: call(agent.AskUserTool, map[string]any{"question": "Which? " + hushed})},
			testsuite.Reply{Match: "^door", Fail: []testsuite.Failure{{Kind: agent.FaultAuth, HTTP: 401, Message: "who says " + hushed}}},
		)},
	})
	require.NoError(t, err)
	return w
}

// begin starts a run and waits until it asks.
func (v *keyedProcess) begin(t *testing.T) (*client.Run, agent.Request) {
	t.Helper()
	run, err := v.Start(t.Context(), "lead", "begin "+hushed, &client.StartOptions{Labels: map[string]string{"of": hushed}})
	require.NoError(t, err)
	return run, v.rests(t, run, agent.StatusSuspended).Suspension.Requests[0]
}

func (v *keyedProcess) rests(t *testing.T, run *client.Run, want agent.Status) *agent.Outcome {
	t.Helper()
	// Workers without the key may take a task several times, after each of which the server waits.
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	o, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, want, o.Status, "%+v", o.Error)
	return o
}

// found tells in which files of a folder words stand.
func found(t *testing.T, dir string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(hushed)) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// Nothing that was said lies in the server's database or in the store: not of
// messages, tools, sub-agents, questions, answers, holds, labels, failures (PA-82).
func TestNothingThatWasSaidIsPlain(t *testing.T) {
	for name, keys := range map[string]string{"with a key": newKey(t, "k1"), "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			server, err := devserver.Start(t.Context(), &devserver.Options{DataDir: "temporal"})
			require.NoError(t, err)
			v := process(t, keys, server)
			w := v.worker(t)
			require.NoError(t, w.Start(t.Context()))
			run, asked := v.begin(t)
			_, err = run.Interrupt(t.Context(), "because "+hushed, nil)
			require.NoError(t, err)
			_, err = run.Resume(t.Context(), &client.ResumeOptions{Message: "on " + hushed})
			require.NoError(t, err)
			_, err = run.Resume(t.Context(), nil)
			require.ErrorIs(t, err, agent.CodeNeedsAnswer, "who is refused is told")
			_, err = v.Answer(t.Context(), asked, "door "+hushed, nil)
			require.NoError(t, err)
			v.rests(t, run, agent.StatusFailed)
			messages, err := v.Transcript(t.Context(), run.Session)
			require.NoError(t, err)
			require.Contains(t, messages[0].Text(), hushed)
			w.Stop()
			v.temporal.Close()
			server.Stop()
			if keys == "" {
				require.NotEmpty(t, found(t, "temporal"), "the test looks where it should")
				return
			}
			require.Empty(t, found(t, "."))
		})
	}
}

// A worker that lacks the key says so and does nothing: it does not start where it
// could know, and where it could not, no run fails for it.
func TestAWorkerWithoutTheKey(t *testing.T) {
	t.Chdir(t.TempDir())
	s, k1 := devserver.ForTest(t), newKey(t, "k1")
	with := process(t, k1, s)

	early := process(t, newKey(t, "k2"), s).worker(t)
	require.NoError(t, early.Start(t.Context()), "nothing is there that it could not read")
	t.Cleanup(early.Stop)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	bare, err := temporal.Dial(temporal.Options{HostPort: s.Addr(), Logger: connection(slog.DiscardHandler).Logger})
	require.NoError(t, err)
	t.Cleanup(bare.Close)
	unprepared := (&keyedProcess{temporal: bare, store: with.store}).worker(t)
	go func() { ended <- unprepared.Run(ctx) }()

	w := with.worker(t)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run, _ := with.begin(t) // though the others may have taken a task of it
	cancel()
	require.NoError(t, <-ended)

	for name, keys := range map[string]string{"none": "", "another": newKey(t, "k2"), "another of the same name": newKey(t, "k1")} {
		err := process(t, keys, s).worker(t).Start(t.Context())
		require.ErrorIs(t, err, agent.CodeNotSetUp, name)
		require.ErrorContains(t, err, "worker refused to start: ", name)
	}
	on(t, s).work(t, agent.Definition{}, testsuite.NewScript()) // of another queue: those runs are no matter of its
	_, err = process(t, "", s).Get(t.Context(), run.Session)
	require.ErrorIs(t, err, agent.CodeNotSetUp, "nor does a client")
	require.ErrorContains(t, err, "it is encrypted with key k1, and this process has no keys: give it that key (FERMATA_ENCRYPTION_KEYS)")
}

// Heads that are damaged, all that there are, keep no worker from starting: a chunk tells
// that its keys are right. With other keys, or if no chunk tells, it refuses.
func TestAWorkerOfAStoreWhoseHeadsAreDamaged(t *testing.T) {
	t.Chdir(t.TempDir())
	s, k1 := devserver.ForTest(t), newKey(t, "k1")
	with := process(t, k1, s)
	w := with.worker(t)
	require.NoError(t, w.Start(t.Context()))
	with.begin(t)
	w.Stop()
	heads, err := filepath.Glob(filepath.Join("transcripts", "heads", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, heads)
	for _, head := range heads {
		require.NoError(t, os.WriteFile(head, []byte(`{"v":`), 0o600))
	}
	again := process(t, k1, s).worker(t)
	require.NoError(t, again.Start(t.Context()))
	again.Stop()
	require.ErrorIs(t, process(t, newKey(t, "k1"), s).worker(t).Start(t.Context()), agent.CodeNotSetUp)
	require.NoError(t, os.RemoveAll(filepath.Join("transcripts", "chunks")))
	require.ErrorIs(t, process(t, k1, s).worker(t).Start(t.Context()), agent.CodeNotSetUp)
}

// Keys change while a run waits: the new one writes, the old one reads, and the store
// needs it no more when it was encrypted anew.
func TestKeysChangeWhileARunWaits(t *testing.T) {
	t.Chdir(t.TempDir())
	s, k1, k2 := devserver.ForTest(t), newKey(t, "k1"), newKey(t, "k2")
	before := process(t, k1, s)
	w := before.worker(t)
	require.NoError(t, w.Start(t.Context()))
	run, asked := before.begin(t)
	w.Stop()

	now := process(t, k2+","+k1, s)
	done, err := now.store.(*store.Encrypted).Rekey(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "k2", done.Key)
	require.NotZero(t, done.Heads)
	require.NotZero(t, done.Chunks)
	require.Zero(t, done.Remaining)
	w = now.worker(t)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	_, err = now.Answer(t.Context(), asked, "door", nil)
	require.NoError(t, err)
	run, err = now.Get(t.Context(), run.Session)
	require.NoError(t, err)
	now.rests(t, run, agent.StatusFailed)

	head, err := store.NewLog(process(t, k2, s).store).Head(t.Context(), run.Session)
	require.NoError(t, err, "the new key alone reads the store")
	require.Equal(t, agent.StatusFailed, head.Status)
}
