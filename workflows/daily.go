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
// claim by update; it never ends by itself, also where it is cancelled.
func daily(ctx workflow.Context, raw, by converter.RawValue) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a new account would have the whole limit anew
	account := loop.DailyAccount{}
	info := workflow.GetInfo(ctx)
	if _, bad := handedBy(by, info); bad == nil && info.ContinuedExecutionRunID != "" { // else it is nobody's account
		if carried, _ := decoded[loop.DailyAccount](raw); carried != nil {
			account = *carried
		}
	}
	day := account.Day // of this execution's first claim
	err := workflow.SetUpdateHandlerWithOptions(ctx, signals.DailyClaim, func(ctx workflow.Context, raw converter.RawValue) (grant wire.DailyGrant, err error) {
		c, err := claimIn(raw)
		if err == nil {
			account, grant = account.Claim(workflow.Now(ctx), c)
			day = cmp.Or(day, account.Day)
		}
		return grant, err
	}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, raw converter.RawValue) error {
		_, err := claimIn(raw)
		return err // what is refused stands in no history
	}})
	if err != nil {
		return err
	}
	// The history of a day has payloads of that day alone, so a key that was replaced the day
	// before is not needed for it.
	err = workflow.Await(ctx, func() bool {
		return (account.Day != day || workflow.GetInfo(ctx).GetContinueAsNewSuggested()) && workflow.AllHandlersFinished(ctx)
	})
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, signals.DailyType, account, handed{From: info.WorkflowExecution.RunID})
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
