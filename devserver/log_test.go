package devserver

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/service/history/shard"
)

// lines is an output that remembers what was written.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// A program that says nothing of logs is not told what goes well.
func TestDialTellsWarningsAlone(t *testing.T) {
	var out lines
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	s := ForTest(t)
	c, err := s.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	defer c.Close()
	w := worker.New(c, "q", worker.Options{})
	require.NoError(t, w.Start())
	w.Stop()
	require.NotContains(t, out.String(), "level=INFO")
	logger := slog.New(warnings{slog.Default().Handler()}).With("a", 1).WithGroup("g")
	logger.Info("fine")
	logger.Warn("not so fine")
	require.Contains(t, out.String(), `level=WARN msg="not so fine" a=1`)
	require.NotContains(t, out.String(), "msg=fine")
}

// A shard that is not claimed yet is no fault of a start; any other error is told.
func TestAStartTellsNothingOfShardsThatAreNotClaimedYet(t *testing.T) {
	var out lines
	l := &serverLog{to: slog.New(slog.NewTextHandler(&out, nil))}
	l.Error("Queue reader unable to retrieve tasks", tag.Error(shard.ErrShardStatusUnknown))
	require.Empty(t, out.String())
	l.Error("Queue reader unable to retrieve tasks", tag.Error(errors.New("disk full")))
	require.Contains(t, out.String(), "unable to retrieve tasks")
}
