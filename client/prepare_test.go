package client_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fermata-agents/fermata/client"
)

// flaky is a server that refuses each signal once, and keeps what it is sent.
type flaky struct {
	workflowservice.UnimplementedWorkflowServiceServer
	sent []*commonpb.Payload
}

func (*flaky) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *flaky) SignalWorkflowExecution(_ context.Context, r *workflowservice.SignalWorkflowExecutionRequest) (*workflowservice.SignalWorkflowExecutionResponse, error) {
	f.sent = append(f.sent, r.GetInput().GetPayloads()[0])
	if len(f.sent) == 1 {
		return nil, status.Error(codes.Unavailable, "not yet")
	}
	return &workflowservice.SignalWorkflowExecutionResponse{}, nil
}

// A request that is sent again is encoded once.
func TestCodecsEncodeARetryOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f, s := &flaky{}, grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	codec := converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})
	o := temporal.Options{HostPort: l.Addr().String()}
	require.NoError(t, client.Prepare(&o, &client.PrepareOptions{Codecs: []converter.PayloadCodec{codec}}))
	c, err := temporal.DialContext(t.Context(), o)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SignalWorkflow(t.Context(), "trip-42", "", "pause", map[string]string{"reason": "lunch"}))
	require.Len(t, f.sent, 2)
	for _, p := range f.sent {
		plain, err := codec.Decode([]*commonpb.Payload{p})
		require.NoError(t, err)
		require.JSONEq(t, `{"reason":"lunch"}`, string(plain[0].GetData()))
	}
}
