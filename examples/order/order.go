package main

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
)

// Request is what the workflow gets.
type Request struct {
	Item  string `json:"item"`
	Pairs int    `json:"pairs"`
}

// Check is what the agent answers.
type Check struct {
	Fine bool   `json:"fine"`
	Why  string `json:"why"`
}

// Order lets an agent check an order, and ships it. The agent may ask a person. The workflow waits
// for its answer, however long that takes.
func Order(ctx workflow.Context, in Request) (string, error) {
	check, err := agents.Execute[Check](ctx, "checker", in, &agents.Options{Limits: agent.Limits{Turns: 5}})
	switch {
	case errors.Is(err, agent.CodeLimitTurns):
		return "somebody has to check it", nil
	case err != nil:
		return "", err
	case !check.Fine:
		return "refused: " + check.Why, nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var parcel string
	err = workflow.ExecuteActivity(ctx, Ship, in).Get(ctx, &parcel)
	return parcel, err
}

// Ship is an activity of the shop's own.
func Ship(_ context.Context, in Request) (string, error) { return in.Item + " are on their way", nil }
