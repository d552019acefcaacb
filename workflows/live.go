package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/signals"
)

// live is the workflow through which the worker processes of a task queue tell
// each other of holds: they read its history as it grows, and it does nothing but
// keep that short.
func live(ctx workflow.Context) error {
	heard := workflow.GetSignalChannel(ctx, signals.Live)
	for !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		heard.Receive(ctx, nil)
	}
	for heard.ReceiveAsync(nil) {
	}
	return workflow.NewContinueAsNewError(ctx, signals.LiveType)
}
