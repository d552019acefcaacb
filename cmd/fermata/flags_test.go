package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
)

// Nobody has to know Go to read what is wrong with a flag.
func TestFlagsAreRefusedInWords(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, bytes.Repeat([]byte(" "), agent.MaxPayload+1), 0o600))
	tests := []struct {
		want string
		args []string
	}{
		{`--priority can't be "nine": use a whole number`, []string{"run", "a", "x", "--priority", "nine"}},
		{"--priority must be from 1 (first) to 5, not 9", []string{"run", "a", "x", "--priority", "9"}},
		{`--older can't be "soon": use a time such as 90s, 24h or 7d`, []string{"ls", "--older", "soon"}},
		{`--older can't be "-1h"`, []string{"inbox", "--older", "-1h"}},
		{`--timeout can't be "1w": use a time`, []string{"wait", "s", "--timeout", "1w"}},
		{"--limit must be positive", []string{"inbox", "--limit", "0"}},
		{"--md and --json exclude each other", []string{"handoff", "s", "--md", "--json"}},
		{"flags_test.go is no handoff: write one", []string{"run", "a", "--briefing", "flags_test.go"}},
		{"--briefing can't be read", []string{"run", "a", "--briefing", "none"}},
		{"--briefing can't be read: " + long + " has more than", []string{"run", "a", "--briefing", long}},
		{"-o - and --json exclude each other", []string{"export", "s", "-o", "-", "--json"}},
		{"--for must be positive, not 0s: how long the file can be imported", []string{"export", "s", "-o", "f", "--for", "0s"}},
		{"--older must be positive, not 0s", []string{"ls", "--older", "0d"}},
		{"--query is blank", []string{"pause", "--query", " ", "--yes"}},
		{"--task-queue is blank", []string{"ls", "--task-queue", " "}},
		{"the checkpoint is blank; leave it out", []string{"fork", "s", " "}},
		{"--grace is 2m0s; it may be at most 1m0s", []string{"interrupt", "s", "--grace", "2m"}},
		{"--grace must be positive, not 0s", []string{"interrupt", "s", "--grace", "0s"}},
		{"--priority must be from 1 (first) to 5, not 0", []string{"run", "a", "x", "--priority", "0"}},
		{`--limit can't be "99999999999999999999": it is too large`, []string{"ls", "--limit", "99999999999999999999"}},
		{`--fairness-weight can't be "1e99": it is too large`, []string{"run", "a", "x", "--fairness-weight", "1e99"}},
		{"--move needs a file", []string{"export", "s", "-o", "-", "--move"}},
	}
	for _, tt := range tests {
		r := inProcess(t, tt.args...)
		require.Equal(t, 2, r.exit, "%v: %s", tt.args, r.err)
		require.Contains(t, r.err, tt.want)
		require.NotRegexp(t, `strconv|parsing|invalid syntax|unmarshal|looking for beginning`, r.err)
	}
}

func TestDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"1d": day, "7d12h": 7*day + 12*time.Hour, "90s": 90 * time.Second, "0d": 0} {
		var got time.Duration
		require.NoError(t, days{&got}.Set(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "-1d", "1d-2h", "1", "99999999d", "1w"} {
		var got time.Duration
		require.Error(t, days{&got}.Set(text), text)
	}
}

// Who works with a shell reads which flag names the store, and not Go's option.
func TestAMissingStoreIsNamedByItsFlag(t *testing.T) {
	c := newCLI(strings.NewReader(""), io.Discard, io.Discard)
	c.Data = "/data"
	err := c.storeMissing(agent.Errorf(agent.CodeNotSetUp, "reading the events of session s: %w", fermata.ErrNoStore))
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.EqualError(t, err, "reading the events of session s: it needs the store that the workers use, and there is none in /data/store: name it with --store or --data")
	c.Store = "postgres://me:hunter2@host/db"
	require.NotContains(t, c.storeMissing(fermata.ErrNoStore).Error(), "hunter2")
}
