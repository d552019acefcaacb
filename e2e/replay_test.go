package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/worker"
)

// maxReplays bounds how many histories of one test are replayed.
const maxReplays = 40

// replay replays the histories that a test has made: whatever the order in which
// things came, the workflow code makes the same of it again.
func (s *stage) replay(t *testing.T) {
	if t.Failed() {
		return
	}
	n := 0
	for v, err := range worker.Preflight(context.Background(), s.temporal, &worker.Options{TaskQueue: s.queue}, &worker.PreflightOptions{Closed: maxReplays}) {
		require.NoError(t, err)
		require.NoError(t, v.Err())
		if n++; n == maxReplays {
			return
		}
	}
}
