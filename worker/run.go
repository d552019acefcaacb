package worker

import (
	"context"

	"go.temporal.io/sdk/client"
)

// Run makes a worker and works until the context ends. It is [New] and [Worker.Run] in
// one call, with the errors of both.
func Run(ctx context.Context, c client.Client, o *Options) error {
	w, err := New(c, o)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
