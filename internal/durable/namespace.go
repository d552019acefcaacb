package durable

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Namespace returns the namespace of a Temporal client. A client does not say it, but fills
// it in where a request leaves it out: of a request whose time is over before it is sent,
// once the client has spoken to its server. Only one that has not yet is asked for a listing.
func Namespace(ctx context.Context, c client.Client) (string, error) {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1}
	unsent, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.ListWorkflow(unsent, req); err == nil || req.GetNamespace() != "" {
		return req.GetNamespace(), nil
	}
	if _, err := c.ListWorkflow(ctx, req); err != nil {
		return "", ArriveRPC(err)
	}
	return req.GetNamespace(), nil
}
