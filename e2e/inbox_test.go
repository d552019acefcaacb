package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// What waits for a daemon is stored as it comes, and each event once: 150 of 2 kB cost
// the history, and the store, about what they are, and not what they are with each seal.
func TestWhatWaitsIsStoredOnce(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const many, size = 150, 2 << 10
	def := agent.Definition{Daemon: &agent.Daemon{Topics: []string{"orders.new"}, Queue: many}}
	s := setup(t, def, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 9}))
	run := s.begin(t, "", nil)
	s.suspended(t, run)
	s.say(t, run, agent.PauseCommand{})
	log := store.NewLog(s.store)
	waiting := func() int {
		head, err := s.store.Head(t.Context(), run.Session)
		require.NoError(t, err)
		inbox, err := log.Backlog(t.Context(), head)
		require.NoError(t, err)
		for i, e := range inbox.Events {
			require.Equal(t, fmt.Sprint("e-", i), e.ID, "events wait in the order in which they came")
		}
		return len(inbox.Events)
	}
	payload := `"` + strings.Repeat("x", size) + `"`
	for n := range many {
		s.say(t, run, agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: fmt.Sprint("e-", n)}, Topic: "orders.new", Payload: []byte(payload)})
		require.Eventually(t, func() bool { return waiting() == n+1 }, patience, time.Millisecond)
	}
	bytes := 0
	history := s.temporal.GetWorkflowHistory(t.Context(), run.Session, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		bytes += e.Size()
	}
	t.Logf("%d bytes of history", bytes)
	require.Less(t, bytes, 4*many*size, "bytes of history: each event is in it as it was said")
	stored, n := int64(0), 0
	for c, err := range s.store.Chunks(t.Context(), store.ChunkPrefix(run.Session)) {
		require.NoError(t, err)
		stored += c.Size
		n++
	}
	t.Logf("%d chunks of %d bytes", n, stored)
	require.LessOrEqual(t, n, many+10, "chunks: one for each event, and a few of the run's")
	require.Less(t, stored, int64(many*600), "bytes of chunks: what is in one is in no other") // the payloads compress well
	done, err := log.Collect(t.Context(), 0, false)
	require.NoError(t, err)
	require.Empty(t, done.Faults)
	require.Equal(t, many, waiting(), "what waits is not collected")
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	s.rest(t, run)
}
