package billing

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// TaskQueue is the queue that the existing worker polls.
const TaskQueue = "billing"

// Charge is what the activity ChargeCard takes.
type Charge struct {
	Card  string `json:"card"`
	Cents int    `json:"cents"`
}

// Receipt is what the activity ChargeCard returns.
type Receipt struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// ChargeCard charges a card. It knows nothing of agents.
func ChargeCard(_ context.Context, in Charge) (Receipt, error) {
	if in.Card == "expired" {
		return Receipt{}, temporal.NewNonRetryableApplicationError("the card has expired", "CardExpired", nil)
	}
	return Receipt{ID: "r-1", Cents: in.Cents}, nil
}

// Order is what the workflow Ship takes.
type Order struct {
	Item string `json:"item"`
}

// Ship ships an order. It knows nothing of agents.
func Ship(ctx workflow.Context, in Order) (string, error) {
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return "", err
	}
	return in.Item + " is on its way", nil
}

// Register registers what the existing worker has.
func Register(w worker.Registry) {
	w.RegisterActivityWithOptions(ChargeCard, activity.RegisterOptions{Name: "ChargeCard"})
	w.RegisterWorkflowWithOptions(Ship, workflow.RegisterOptions{Name: "Ship"})
}
