package durable_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// front is a server that counts listings. It has no service for its health.
type front struct {
	workflowservice.UnimplementedWorkflowServiceServer
	listings atomic.Int64
}

func (f *front) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (f *front) ListWorkflowExecutions(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.listings.Add(1)
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// Thousands of workers that start ask the server for no listing, whatever their clients are.
func TestNamespaceListsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, f := grpc.NewServer(), &front{}
	workflowservice.RegisterWorkflowServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	options := client.Options{HostPort: l.Addr().String(), Namespace: "prod"}
	eager, err := client.Dial(options)
	require.NoError(t, err)
	defer eager.Close()
	lazy, err := client.NewLazyClient(options)
	require.NoError(t, err)
	defer lazy.Close()
	for _, c := range []client.Client{eager, lazy} {
		ns, err := durable.Namespace(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, "prod", ns)
	}
	require.Zero(t, f.listings.Load())
	s.Stop()
	away, err := client.NewLazyClient(options)
	require.NoError(t, err)
	defer away.Close()
	_, err = durable.Namespace(t.Context(), away)
	require.ErrorIs(t, err, agent.CodeUnreachable)
}
