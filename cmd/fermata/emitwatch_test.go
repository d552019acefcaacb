package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A daemon wakes when files change: somebody who sees them emits an event, with their names (HA-91).
func TestADaemonIsWokenByFiles(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "reader", Daemon: &agent.Daemon{}}, []testsuite.Reply{{Text: "I wait."}, {Match: "^Event ", Text: "I read it."}, {Text: "Well."}}}).works()
	id, topic, dir := s.session("a"), s.name+".changed", t.TempDir()
	r := s.run("run", "reader", "Watch", "--session", id)
	require.Equal(t, 3, r.exit, r.err)

	d := s.sits("emit", topic, "--watch", dir, "--session", id)
	n := 0
	require.Eventually(t, func() bool { // until it has looked for the first time, there is no change
		n++
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("order-%d", n)), nil, 0o600))
		return strings.Contains(d.screen.String(), topic+": 1 accepted, 0 failed")
	}, patience, 3*time.Second)
	d.presses().ends(0)
	require.Eventually(t, func() bool {
		return strings.Contains(s.run("events", id, "--json").out, "Event "+topic+`: {\"changed\":[\"`+filepath.Join(dir, "order-"))
	}, patience, 20*time.Millisecond)

	s.fails(6, "can't be watched", "emit", topic, "--watch", filepath.Join(dir, "nowhere"))
	s.fails(2, "leave both out", "emit", topic, `{}`, "--watch", dir)
	s.fails(2, "leave both out", "emit", topic, "--id", "e-1", "--watch", dir)
}
