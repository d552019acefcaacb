package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
)

// eventLines reads lines of events and checks that they are numbered from one on. What
// is live has no number, and is left out.
func eventLines(t *testing.T, out string, from int) (list []agent.WireEvent) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e agent.WireEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Cursor == "" {
			require.Regexp(t, `^(delta|call\.progress)`, e.Type)
			continue
		}
		require.Equal(t, fmt.Sprint(from+len(list)), e.Cursor)
		require.Equal(t, "s-1", e.Session)
		require.NotEmpty(t, e.Run)
		list = append(list, e)
	}
	return list
}

func TestEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	b.write("sorter.yaml", "replies: [{text: a}, {text: b}, {text: '{\"kind\": \"bug\"}'}]\n") // its turn is the session's third
	r := b.run("run", "reader", "Look", "--session", "s-1")
	require.Zero(t, r.exit, r.err)

	r = b.run("events", "s-1", "--json")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "no Temporal server runs: this is what the store has")
	events := eventLines(t, r.out, 1)
	last := len(events)
	require.Equal(t, agent.EventRunStarted, events[0].Type)
	require.Equal(t, agent.EventRunCompleted, events[last-1].Type)

	r = b.run("events", "s-1")
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{"    1  ", "run.started      reader · script:reader.yaml · run ", "message          user: Look\n", "call.done        t1.1 fs_read ok\n", "run.completed    completed · 2 turns"} {
		require.Contains(t, r.out, want)
	}
	require.Equal(t, last, strings.Count(r.out, "\n"))
	r = b.run("events", "s-1", "--after", fmt.Sprint(last))
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, fmt.Sprintf("session s-1 has no events after %d\n", last))
	for _, after := range []string{"nine", fmt.Sprint(last + 1)} {
		r = b.run("events", "s-1", "--after", after)
		require.Equal(t, 2, r.exit, r.err)
	}
	require.Equal(t, 6, b.run("events", "s-2").exit)
	require.Equal(t, 5, b.run("events", "s-1", "--follow").exit)

	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	following := b.start("events", "s-1", "--follow", "--after", fmt.Sprint(last-1), "--json")
	following.until(`{"v":1,"cursor":"` + fmt.Sprint(last) + `"`)
	r = b.run("run", "sorter", "x", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
	r = b.run("events", "s-1", "--after", fmt.Sprint(last), "--json")
	require.Zero(t, r.exit, r.err)
	more := eventLines(t, r.out, last+1)
	end := last + len(more)
	following.until(fmt.Sprintf(`{"v":1,"cursor":"%d"`, end))
	r = following.end(syscall.SIGINT)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, fmt.Sprintf("fermata events s-1 --follow --after %d continues from here", end))
	require.Equal(t, append(events[last-1:], more...), eventLines(t, r.out, last))
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// A model that is asked again later says why, and when.
func TestADelayIsTold(t *testing.T) {
	until := time.Date(2026, 11, 25, 9, 30, 0, 0, time.Local)
	e := agent.Event{Type: agent.EventModelDelayed, Delay: &agent.Delay{Until: until, Error: agent.Errorf(agent.CodeProviderError, "429: too many requests")}}
	require.Equal(t, "until 2026-11-25 09:30:00: 429: too many requests", render.Event("a", e))
}

// An empty token file is no missing token: what should have filled it failed.
func TestAnEmptyTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("\n"), 0o600))
	_, err := tokenOf(path)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, path+" is empty: fermata token wrote nothing")
}
