package devserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// Until a server is opened, its owner works with it, and what others ask waits.
func TestAClosedServerIsItsOwners(t *testing.T) {
	s, err := Start(t.Context(), &Options{InMemory: true, Closed: true})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	ask := func(ctx context.Context, c client.Client) error {
		_, err := c.DescribeTaskQueue(ctx, "q", enums.TASK_QUEUE_TYPE_WORKFLOW)
		return err
	}
	own, err := s.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(own.Close)
	require.NoError(t, ask(t.Context(), own))

	other, err := client.Dial(client.Options{HostPort: s.Addr(), Logger: silence})
	require.NoError(t, err, "that there is a server can be seen")
	t.Cleanup(other.Close)
	asked := make(chan error, 1)
	soon, cancel := context.WithTimeout(t.Context(), readyPatience)
	defer cancel()
	go func() { asked <- ask(soon, other) }()
	brief, end := context.WithTimeout(t.Context(), peerAnswer)
	defer end()
	require.Error(t, ask(brief, other))
	require.Empty(t, asked, "it waits")
	s.Open()
	require.NoError(t, <-asked)
	s.Open()
}
