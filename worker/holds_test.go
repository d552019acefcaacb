package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
)

// slow is a server that says when it is let which processes there are.
type slow struct {
	client.Client // nil: nothing else is asked
	asked         chan struct{}
	tell          chan struct{}
}

func (s *slow) DescribeTaskQueue(context.Context, string, enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	s.asked <- struct{}{}
	<-s.tell
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{Identity: "me"}, {Identity: "other"}}}, nil
}

// Holds that come together ask the server once which processes there are. While it does not
// answer, a hold waits no longer than it is worth telling, and what is known of processes
// can be read and written.
func TestHoldsShareALookAtTheProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slow{asked: make(chan struct{}, 100), tell: make(chan struct{})}
		c := &holdSpreader{temporal: server, process: "me", logger: zap.NewNop(), silent: map[string]time.Time{}}
		found := make(chan []string, 100)
		for range 100 {
			go func() { fleet, _ := c.others(t.Context()); found <- fleet }()
		}
		synctest.Wait()
		require.True(t, c.mu.TryLock(), "nobody waits for the server with the lock")
		c.mu.Unlock()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, few := c.others(soon)
		require.False(t, few)
		close(server.tell)
		for range 100 {
			require.Equal(t, []string{"other"}, <-found)
		}
		require.Len(t, server.asked, 1)
		fleet, few := c.others(t.Context())
		require.Equal(t, []any{[]string{"other"}, true}, []any{fleet, few})
	})
}
