package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/postgres/pgtest"
)

// transcripts is a store in a folder with one session of two chunks and, an hour
// old, one that no session needs.
func transcripts(t *testing.T) (dir string, chunks []string) {
	t.Helper()
	dir = t.TempDir()
	s, err := store.OpenDir(dir, nil)
	require.NoError(t, err)
	l := store.NewLog(s)
	prev := ""
	for i, session := range []string{"s-1", "s-1", "lost"} {
		m := agent.TextMessage(agent.RoleUser, session)
		prev, err = l.Seal(t.Context(), prev, session, "r", false, []agent.Event{{Seq: int64(i) + 1, Type: agent.EventMessage, Message: &m}})
		require.NoError(t, err)
		chunks = append(chunks, filepath.Join(dir, "chunks", prev[:2], prev))
		if session == "s-1" {
			require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: int64(i) + 1, Session: session, Digest: prev}))
		}
	}
	then := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(chunks[2], then, then))
	return dir, chunks
}

func TestStoreGC(t *testing.T) {
	t.Parallel()
	dir, chunks := transcripts(t)
	info, err := os.Stat(chunks[2])
	require.NoError(t, err)
	want := collected{V: 1, Store: dir, CollectResult: store.CollectResult{Sessions: 1, Chunks: 3, Left: 1}}
	r := inProcess(t, "store", "gc", "--store", dir, "--older", "3h", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, want, lastLine[collected](t, r.out))

	r = inProcess(t, "store", "gc", "--store", dir, "--dry-run")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "store      "+dir+"\nsessions   1\nchunks     3\nto delete  1, of ")
	require.FileExists(t, chunks[2])

	want.Left, want.Deleted, want.Bytes = 0, 1, info.Size()
	r = inProcess(t, "store", "gc", "--store", dir, "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, want, lastLine[collected](t, r.out))
	require.NoFileExists(t, chunks[2])
	require.FileExists(t, chunks[0])

	r = inProcess(t, "store", "gc", "--store", dir, "--older", "-1h")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "[invalid_input]")
}

func TestStoreCheck(t *testing.T) {
	t.Parallel()
	dir, chunks := transcripts(t)
	r := inProcess(t, "store", "check", "--store", dir)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "store      "+dir+"\nsessions   1\nchunks     2\n", r.out)

	require.NoError(t, os.Remove(chunks[0]))
	r = inProcess(t, "store", "check", "--store", dir)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.out, "unreadable s-1: [chunk_missing] chunk "+filepath.Base(chunks[0]))
	r = inProcess(t, "store", "check", "--store", dir, "--json")
	require.Equal(t, 1, r.exit)
	found := lastLine[checked](t, r.out)
	require.Len(t, found.Faults, 1)
	require.Equal(t, []string{"s-1", filepath.Base(chunks[0])}, []string{found.Faults[0].Session, found.Faults[0].Chunk})

	r = inProcess(t, "store", "gc", "--store", dir, "--json")
	require.Equal(t, 1, r.exit)
	require.Equal(t, found.Faults, lastLine[collected](t, r.out).Faults)
	require.FileExists(t, chunks[1], "what can't be read keeps what it has")
	require.NoFileExists(t, chunks[2], "and nobody else's")
	r = inProcess(t, "store", "gc", "--store", dir)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.out, "unreadable s-1: [chunk_missing] chunk "+filepath.Base(chunks[0]))
}

// A wrong name, or a mount that is away, is no empty store that is whole.
func TestNoStoreIsMadeToBeLookedAfter(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "store")
	for _, cmd := range []string{"check", "gc", "rekey"} {
		r := inProcess(t, "store", cmd, "--store", missing)
		require.Equal(t, agent.CodeNotSetUp.ExitStatus(), r.exit, r.err)
		require.Contains(t, r.err, "there is no store in "+missing+", and none was created")
		require.NoDirExists(t, missing)
	}
}

func TestTranscriptsInPostgres(t *testing.T) {
	t.Parallel()
	db, err := pgtest.Start(t.Context())
	if errors.Is(err, pgtest.ErrMissing) {
		testenv.Need(t, err)
	}
	require.NoError(t, err)
	t.Cleanup(db.Stop)
	b := setup(t)
	project(b)
	b.env = append(b.env, env.Store+"="+db.URL())
	r := b.run("run", "reader", "What do the notes say?", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
	r = b.run("transcript", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "The notes say: call the till.")
	require.NoDirExists(t, filepath.Join(b.data, "fermata", "store", "heads"), "nothing is kept in files")

	for _, cmd := range []string{"check", "gc"} {
		r = b.run("store", cmd)
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.out, "database postgres, schema fermata\nsessions   1\n")
	}
	r = b.run("doctor")
	require.Contains(t, r.out, "ok   store       PostgreSQL at ")

	r = inProcess(t, "store", "check", "--store", "postgres://ana:hunter2@127.0.0.1:1/db")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "[store_unavailable] opening the store in PostgreSQL at 127.0.0.1:1, database db")
	require.NotContains(t, r.err, "hunter2")
	r = inProcess(t, "store", "check", "--store", "mysql://127.0.0.1/db")
	require.Equal(t, 2, r.exit)
	require.NoDirExists(t, "mysql:")
}

// A folder that is away is not made anew by who only looks: what needs no store goes on, and
// what needs it tells where it was.
func TestAStoreThatIsAwayIsNotMadeAnew(t *testing.T) {
	s := scripted(t, family()...).works(pay())
	root := s.options.Store.(*store.Dir).Root()
	require.NoError(t, os.Rename(root, root+"-aside"))
	r := s.run("ls")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "is not in "+root+": is it mounted? Nothing was created in its place.")
	r = s.run("transcript", "nobody")
	require.Equal(t, 1, r.exit)
	require.Equal(t, 1, strings.Count(r.err, "is it mounted?"), "once: %s", r.err)
	require.Contains(t, r.err, "error [store_unavailable] this needs the store, which is not there: see the warning above")
	require.NoDirExists(t, root)
	require.NoError(t, os.Rename(root+"-aside", root))
	require.NotContains(t, s.run("ls").err, "is it mounted")
}

// A database that is away, or does not answer, keeps nobody from what a run is told: only
// what is stored needs it.
func TestRunsAreHeldWithoutTheStore(t *testing.T) {
	s := scripted(t, family()...).works(pay())
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // connections wait in its backlog
	require.NoError(t, err)
	t.Cleanup(func() { _ = deaf.Close() })
	for name, place := range map[string]string{"deaf": deaf.Addr().String(), "away": "127.0.0.1:1"} {
		id, stopped, cancelled := s.session(name), s.session(name+"-s"), s.session(name+"-c")
		for _, session := range []string{name, name + "-s", name + "-c"} {
			s.rests(s.begin(session, "payer", nil))
		}
		s.flags[slices.Index(s.flags, "--store")+1] = "postgres://ana:hunter2@" + place + "/db"
		for _, args := range [][]string{{"show", id}, {"ls"}, {"inbox"}, {"tree", id}, {"pause", id, "--reason", "later"}, {"approve", id, "--request", "q-1"}, {"resume", id}, {"wait", id},
			{"interrupt", stopped}, {"send", stopped, "hurry"}, {"reject", stopped, "--request", "q-1", "--reason", "no"}, {"stop", stopped}, {"cancel", cancelled}} {
			r := s.run(args...)
			require.Zero(t, r.exit, "%s, %v: %s", name, args, r.err)
		}
		stored := [][]string{{"transcript", id}}
		if name == "away" { // the other one takes its time with each
			stored = append(stored, []string{"events", id}, []string{"delete", id, "--yes"}, []string{"show", s.session("nobody")})
		}
		for _, args := range stored {
			r := s.run(args...)
			require.Equal(t, agent.CodeStoreUnavailable.ExitStatus(), r.exit, "%s, %v: %s", name, args, r.err)
			require.Contains(t, r.err, "[store_unavailable]")
			require.NotContains(t, r.err, "hunter2")
		}
	}
	require.Contains(t, s.run("doctor").out, "FAIL store       opening the store in PostgreSQL at 127.0.0.1:")
}

// Who begins a run by a worker of the command's own is told at once that there is no store.
func TestRunWithoutTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	r := b.run("run", "reader", "What do the notes say?", "--store", "postgres://ana:hunter2@127.0.0.1:1/db")
	require.Equal(t, agent.CodeStoreUnavailable.ExitStatus(), r.exit, r.err)
	require.Equal(t, 1, strings.Count(r.err, "[store_unavailable]"), r.err)
	require.NotContains(t, r.err, "hunter2")
}
