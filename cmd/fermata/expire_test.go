package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/logging"
	"github.com/fermata-agents/fermata/testsuite"
)

// A session is deleted once its agent's retention is over. Sessions that are kept longer or
// forever stay, and so do suspended ones, with all that they were forked from (HX-67).
func TestExpiredSessionsAreDeleted(t *testing.T) {
	says := []testsuite.Reply{
		{Match: "^wait$", Calls: []testsuite.Call{{Tool: "ask_user", Arguments: map[string]any{"question": "On?"}}}}, {Text: "Done.", Repeat: 9},
	}
	s := scripted(t,
		role{agent.Definition{Name: "brief", Tools: []string{"ask_user"}, Retention: agent.Duration(time.Millisecond)}, says},
		role{agent.Definition{Name: "long", Retention: agent.Duration(720 * time.Hour)}, says},
		role{agent.Definition{Name: "ever"}, says},
	).works()
	for name, who := range map[string]string{"a": "brief", "month": "long", "kept": "ever"} {
		require.Equal(t, agent.StatusCompleted, s.rests(s.begin(name, who, nil)).Status)
	}
	a, fork := s.session("a"), s.session("fork")
	r := s.run("fork", a, "--new", "--as", fork, "--message", "wait")
	require.Equal(t, 3, r.exit, r.out+r.err)

	// Said before it happens.
	require.Regexp(t, `kept until +\d{4}-`, s.run("show", s.session("month")).out)
	shown := lastLine[struct {
		DeleteAfter time.Time      `json:"delete_after"`
		Outcome     *agent.Outcome `json:"outcome"`
	}](t, s.run("show", s.session("month"), "--json").out)
	require.Equal(t, 720*time.Hour, shown.DeleteAfter.Sub(shown.Outcome.Ended))
	require.NotContains(t, s.run("show", s.session("kept")).out, "kept until")
	require.Eventually(t, func() bool {
		for l, err := range s.List(t.Context(), &fermata.ListOptions{Agent: "long", Query: "WorkflowId = '" + s.session("month") + "'"}) {
			return err == nil && l.DeleteAfter.Equal(l.Ended.Add(720*time.Hour))
		}
		return false
	}, patience, 20*time.Millisecond, "a listing says it")
	dry := s.run("delete", "--expired", "--dry-run", "--json")
	require.Zero(t, dry.exit, dry.err)
	require.Equal(t, a, lastLine[expiredLine](t, dry.out).Session)
	require.Contains(t, s.run("transcript", a).out, "Done.", "a dry run deletes nothing")

	r = s.run("delete", "--expired")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^deleted +`+a+`, of brief, kept until .*\n$`, r.out)
	s.fails(6, "[not_found]", "transcript", a)
	for _, session := range []string{fork, s.session("month"), s.session("kept")} {
		require.Contains(t, s.run("transcript", session).out, "Done.")
	}
	require.Equal(t, agent.StatusSuspended, lastLine[agent.RunStatus](t, s.run("show", fork, "--json").out).Status)
	listed := lastLine[fermata.SuspendedRun](t, s.run("ls", "--suspended", "--json", "--agent", "brief", "--query", "WorkflowId = '"+fork+"'").out)
	require.Equal(t, []string{fork, "self"}, []string{listed.Session, string(listed.Suspension.Initiator)})
	require.Contains(t, s.run("delete", "--expired").err, "no session's retention is over")

	// The fork ends, and is deleted by a worker's look.
	r = s.run("answer", fork, "yes", "--request", "q-1")
	require.Zero(t, r.exit, r.err)
	run, err := s.Get(t.Context(), fork)
	require.NoError(t, err)
	_, err = run.Result(t.Context())
	require.NoError(t, err)
	require.Contains(t, s.run("transcript", fork).out, "Done.")
	cli := newCLI(nil, &screen{changed: make(chan struct{})}, t.Output())
	cli.Log = logging.New(t.Output(), true)
	cli.deleteExpired(t.Context(), s.Client)
	s.fails(6, "[not_found]", "transcript", fork)

	s.fails(2, "--dry-run needs --expired", "delete", a, "--dry-run")
	s.fails(2, "no session beside --expired", "delete", a, "--expired")
}
