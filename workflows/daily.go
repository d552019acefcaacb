package workflows

import (
	"cmp"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

// daily is the workflow that keeps the account of a task queue's daily limits. Workers
// claim by update. It never ends by itself, and a cancellation does not end it.
func daily(ctx workflow.Context, raw, by converter.RawValue) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a new account would grant the whole limit again
	account := loop.DailyAccount{}
	info := workflow.GetInfo(ctx)
	if _, bad := carriedBy(by, info); bad == nil && info.ContinuedExecutionRunID != "" { // otherwise anybody's state would become the account
		if carried, _ := decoded[loop.DailyAccount](raw); carried != nil {
			account = *carried
		}
	}
	day := account.Day // the day of this execution's first claim
	err := workflow.SetUpdateHandlerWithOptions(ctx, signals.DailyClaim, func(ctx workflow.Context, raw converter.RawValue) (grant wire.DailyGrant, err error) {
		c, err := claimIn(raw)
		if err == nil {
			account, grant = account.Claim(workflow.Now(ctx), c)
			day = cmp.Or(day, account.Day)
		}
		return grant, err
	}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, raw converter.RawValue) error {
		_, err := claimIn(raw)
		return err // a refused claim is in no history
	}})
	if err != nil {
		return err
	}
	// A new execution each day: its history has payloads of that day only. So an
	// encryption key that was replaced before is not needed to read it.
	err = workflow.Await(ctx, func() bool {
		return (account.Day != day || workflow.GetInfo(ctx).GetContinueAsNewSuggested()) && workflow.AllHandlersFinished(ctx)
	})
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, signals.DailyType, account, carried{From: info.WorkflowExecution.RunID})
}

func claimIn(raw converter.RawValue) (wire.DailyClaim, error) {
	data, bad := durable.Bytes(raw)
	if bad != nil {
		return wire.DailyClaim{}, durable.Failure(bad, nil)
	}
	c, bad := signals.DecodeDailyClaim(data)
	if bad != nil {
		return c, durable.Failure(bad, nil)
	}
	return c, nil
}
