package worker

import (
	"context"

	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/store"
)

// Resolve is what the options come to.
func (o *Options) Resolve() (*activities.Activities, error) { return o.resolve() }

// Loopback reports whether an address is one of this machine.
var Loopback = loopback

// CheckKeys is what a worker that starts asks of its store.
func CheckKeys(ctx context.Context, s store.Store, logger *zap.Logger) error {
	return (&Worker{store: s, logger: logger}).checkKeys(ctx)
}

// Patiently is what waits for a busy server.
func Patiently(ctx context.Context, look func(context.Context) error) error {
	return (&Worker{logger: zap.NewNop()}).patiently(ctx, look)
}
