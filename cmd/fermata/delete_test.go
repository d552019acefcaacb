package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
)

// A deleted session is gone from Temporal and from the store, with all below it;
// what a fork shares is gone with the fork.
func TestDelete(t *testing.T) {
	s := scripted(t, family()...).works(pay())
	run := s.begin("a", "lead", nil)
	id := run.Session
	s.rests(run)
	s.fails(6, "[busy] deleting session "+id+": session "+id+" has a live run ("+run.ID+"); stop or cancel it first", "delete", id, "--yes")
	d := s.sits("attach", id)
	d.answers("approve? ", "y")
	d.ends(0)
	fork := s.session("b")
	page, err := s.Checkpoints(t.Context(), id, nil)
	require.NoError(t, err)
	r := s.run("fork", id, page.Items[1].ID, "--new", "--as", fork)
	require.Zero(t, r.exit, r.out+r.err)

	s.fails(2, "[invalid_input] deleting session "+id+" needs a confirmation, and there is no terminal to ask: add --yes", "delete", id)
	s.fails(2, "--timeout must be positive", "delete", id, "--timeout", "0s")
	s.fails(2, "[invalid_input]", "delete", id+"/payer-1", "--yes")
	d = s.sits("delete", id)
	d.answers("delete session "+id+" for good? y(es), n(o): ", "n")
	require.Contains(t, d.ends(2).err, "nothing was deleted")

	s.fails(7, "[timeout] deleting session "+id, "delete", id, "--yes", "--timeout", "1ns")

	r = s.run("delete", id, "--yes", "--json")
	require.Zero(t, r.exit, r.err)
	done := lastLine[fermata.DeleteResult](t, r.out)
	var sessions []string
	for _, e := range done.Executions {
		sessions = append(sessions, e.Session)
	}
	require.ElementsMatch(t, []string{id, id + "/payer-1"}, sessions)
	require.ElementsMatch(t, sessions, done.Store.Sessions)
	require.Len(t, done.Store.Shared, 1)
	require.Equal(t, fork, done.Store.Shared[0].Session)
	for _, command := range []string{"show", "runs", "transcript"} {
		s.fails(6, "[not_found]", command, id)
	}
	s.fails(6, "[not_found]", "delete", id, "--yes")
	require.Contains(t, s.run("transcript", fork).out, "All is bought.")
	require.NotContains(t, s.run("ls").out, id)

	r = s.run("delete", fork, "--yes")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^deleted +`+fork+`\nexecutions +1\nheads +1\nchunks +\d+\n$`, r.out)
	for c, err := range s.options.Store.Chunks(t.Context(), "") {
		require.NoError(t, err)
		t.Fatalf("chunk %s is left", c.Name)
	}
}

// A session with a head that can't be read is refused whole; without that head it can
// be deleted.
func TestADamagedHeadIsRefusedBeforeAnythingIsDeleted(t *testing.T) {
	s := scripted(t, family()...).works(pay())
	run := s.begin("a", "lead", nil)
	id := run.Session
	s.rests(run)
	d := s.sits("attach", id)
	d.answers("approve? ", "y")
	d.ends(0)
	root := s.options.Store.(*store.Dir).Root()
	for _, session := range []string{id, id + "/payer-1"} {
		t.Run(session, func(t *testing.T) {
			head := filepath.Join(root, "heads", base64.RawURLEncoding.EncodeToString([]byte(session))+".json")
			was, err := os.ReadFile(head)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(head, was[:len(was)/2], 0o600))
			for range 2 {
				r := s.run("delete", id, "--yes")
				require.Equal(t, 1, r.exit)
				require.Empty(t, r.out, "nothing was deleted")
				require.Contains(t, r.err, "[chunk_damaged] deleting session "+id+": the head of session "+session+" is damaged")
				require.Contains(t, r.err, "see "+head+". Nothing was deleted: restore this head from a backup, or without one remove it from the store, and delete again")
			}
			for _, execution := range []string{id, id + "/payer-1"} {
				_, err := s.temporal.DescribeWorkflowExecution(t.Context(), execution, "")
				require.NoError(t, err)
			}
			require.NoError(t, os.WriteFile(head, was, 0o600))
			require.Contains(t, s.run("transcript", id).out, "All is bought.")
		})
	}
	require.NoError(t, os.Remove(filepath.Join(root, "heads", base64.RawURLEncoding.EncodeToString([]byte(id))+".json")))
	r := s.run("delete", id, "--yes")
	require.Zero(t, r.exit, r.err)
	for c, err := range s.options.Store.Chunks(t.Context(), "") {
		require.NoError(t, err)
		t.Fatalf("chunk %s is left", c.Name)
	}
}
