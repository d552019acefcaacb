package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// lockedStore is a store that refuses the ends of runs for good while it is locked.
type lockedStore struct {
	store.Store
	locked atomic.Bool
}

func (l *lockedStore) PutHead(ctx context.Context, h store.Head) error {
	if l.locked.Load() && (h.Status.Ended() || h.Recovered) {
		return agent.Errorf(agent.CodeDenied, "the bucket is locked")
	}
	return l.Store.PutHead(ctx, h)
}

// The store takes everything but a run's end, for good: the run keeps its status and its answer, and its
// outcome says why its end is not stored. Readers have the whole conversation. The session's next run
// stores the end first and knows the answer. If the store still refuses it, the next run's log says what is
// missing (OA-92).
func TestAnEndThatCanNotBeStored(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"the store takes it later": true, "the store never takes it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			l := &lockedStore{Store: s.dir}
			l.locked.Store(true)
			s.store = l
			script := testsuite.NewScript(testsuite.Reply{Match: "Where to?", Text: "to Rome"}, testsuite.Reply{Match: "And then?", Text: "home"})
			s.work(t, agent.Definition{}, script)
			session := "unsaved-" + s.queue
			first, o := s.run(t, "Where to?", &client.StartOptions{Session: session})
			require.Equal(t, []any{agent.StatusCompleted, "to Rome", ""}, []any{o.Status, o.Text, o.Checkpoint}, "%+v", o.Error)
			require.NotNil(t, o.Unsaved)
			require.Equal(t, []any{agent.CodeDenied, "the bucket is locked", first.ID, false}, []any{o.Unsaved.Code, o.Unsaved.Message, o.Unsaved.Run, o.Unsaved.Retryable})
			require.NoError(t, o.Err(), "the run itself did not fail")
			v, err := first.Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.CodeDenied, v.StoreError.Code)
			said, err := s.Transcript(t.Context(), session)
			require.NoError(t, err)
			require.Equal(t, "to Rome", said[len(said)-1].Text())

			l.locked.Store(!taken)
			second, o := s.run(t, "And then?", &client.StartOptions{Session: session})
			require.Equal(t, []any{agent.StatusCompleted, "home", taken}, []any{o.Status, o.Text, o.Unsaved == nil}, "%+v", o.Error)
			begun := s.begunAs(t, second)
			request := script.Requests()[1]
			if !taken {
				require.Contains(t, begun.Unrecovered, "the last events of run "+first.ID+" can't be stored")
				require.Len(t, request.Messages, 1)
				return
			}
			require.Equal(t, []string{first.ID, ""}, []string{begun.Recovered, begun.Unrecovered})
			require.Equal(t, "to Rome", request.Messages[1].Text())
			runs, err := s.Runs(t.Context(), session)
			require.NoError(t, err)
			require.Len(t, runs, 2)
			require.Equal(t, agent.StatusCompleted, runs[0].Status)
		})
	}
}

// begunAs returns how a run began, from its log and from what it has not stored.
func (s *stage) begunAs(t *testing.T, run *client.Run) agent.Started {
	t.Helper()
	for e, err := range s.Events(t.Context(), run.Session, nil) {
		require.NoError(t, err)
		if e.Started != nil && e.Started.Run == run.ID {
			return *e.Started
		}
	}
	require.FailNow(t, "no run.started")
	return agent.Started{}
}

// A parent reads that its child's end is not stored, and has the child's answer all the same (OA-92).
func TestAParentReadsThatItsChildIsNotStored(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	l := &lockedStore{Store: s.dir}
	l.locked.Store(true)
	s.store = l
	var read atomic.Value
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch texts := resultsIn(*r); {
		case r.Call.Agent == "clerk":
			return saysText("it is 42")
		case len(texts) == 0:
			return callsTool("subagent__clerk", `{"task":"add it up"}`)
		default:
			read.Store(texts[0])
			l.locked.Store(false)
			return saysText("done")
		}
	})
	s.worker = s.staff(t, m, nil, agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "clerk"}}}, agent.Definition{Name: "clerk"})
	_, o := s.run(t, "go", nil)
	require.Equal(t, []any{agent.StatusCompleted, true}, []any{o.Status, o.Unsaved == nil}, "%+v", o.Error)
	require.Contains(t, read.Load(), "it is 42")
	require.Contains(t, read.Load(), `"ok":true`)
	require.Contains(t, read.Load(), `"unsaved":"denied: the bucket is locked"`)
}

// A session whose head is damaged, or whose log has lost a chunk, can't be loaded. Its next run fails with
// the fault's code before any model is asked (OA-92).
func TestASessionThatCanNotBeLoaded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		code agent.Code
	}{
		"the head": {"heads", agent.CodeChunkDamaged},
		"the log":  {"chunks", agent.CodeChunkDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			root := t.TempDir()
			folder, err := store.OpenDir(root, nil) // its files are damaged, wherever other tests store
			require.NoError(t, err)
			s.dir = store.Encrypt(folder, ring())
			s.store = s.dir
			script := testsuite.NewScript(testsuite.Reply{Text: "to Rome", Repeat: 2})
			w := s.work(t, agent.Definition{}, script)
			session := "lost-" + s.queue
			_, o := s.run(t, "Where to?", &client.StartOptions{Session: session})
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			w.Stop() // another worker has read nothing of the session yet
			s.work(t, agent.Definition{}, script)
			damaged := 0
			require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() && strings.Contains(path, c.file) {
					damaged++
					return os.WriteFile(path, []byte("damaged"), 0o600)
				}
				return err
			}))
			require.Positive(t, damaged)
			_, o = s.run(t, "And then?", &client.StartOptions{Session: session})
			require.Equal(t, agent.StatusFailed, o.Status)
			require.Equal(t, c.code, o.Error.Code, "%+v", o.Error)
			require.Len(t, script.Requests(), 1, "no model was asked")
		})
	}
}
