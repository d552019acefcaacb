package durable

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
)

// Namespace returns the namespace of a Temporal client. A client does not say it, but fills
// it in where a request leaves it out: of a request whose time is over before it is sent,
// once the client has spoken to its server, which a lazy one is made to do.
func Namespace(ctx context.Context, c client.Client) (string, error) {
	if ns := unsent(ctx, c); ns != "" {
		return ns, nil
	}
	_, err := c.CheckHealth(ctx, nil)
	ns := unsent(ctx, c)
	switch {
	case ns != "":
		return ns, nil // also where it may not be asked for its health
	case err != nil:
		return "", FromRPC(err)
	}
	return "", agent.Errorf(agent.CodeInternal, "the Temporal client does not say which namespace it is for")
}

// unsent is the namespace in a request that is not sent; empty if the client has not filled
// it in.
func unsent(ctx context.Context, c client.Client) string {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = c.ListWorkflow(over, req) // its time is over
	return req.GetNamespace()
}
