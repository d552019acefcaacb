package durable

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
)

// Namespace returns the namespace of a Temporal client. A client does not say it, but
// sets it in a request that has none. So this makes a request whose context is over, and
// reads the field. A lazy client does that only once it has spoken to its server, which
// CheckHealth makes it do.
func Namespace(ctx context.Context, c client.Client) (string, error) {
	if ns := unsent(ctx, c); ns != "" {
		return ns, nil
	}
	_, err := c.CheckHealth(ctx, nil)
	ns := unsent(ctx, c)
	switch {
	case ns != "":
		return ns, nil // also if the client may not ask for the server's health
	case err != nil:
		return "", FromRPC(err)
	}
	return "", agent.Errorf(agent.CodeInternal, "the Temporal client does not say which namespace it is for")
}

// unsent returns the namespace in a request that is not sent; empty if the client has not
// set it.
func unsent(ctx context.Context, c client.Client) string {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = c.ListWorkflow(over, req) // its context is over
	return req.GetNamespace()
}
