package billing

import (
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/tool"
)

// Tools are the existing activity and workflow as a model sees them.
var Tools = []tool.Tool{
	tool.Activity[Charge]("charge", "Charges a card.",
		tool.ActivityTarget{Type: "ChargeCard", TaskQueue: TaskQueue},
		&tool.Options{Timeout: time.Minute, Approval: &agent.ToolApproval{}}),
	tool.Workflow[Order]("ship", "Ships an item.",
		tool.WorkflowTarget{Type: "Ship", TaskQueue: TaskQueue}, nil),
}

// Clerk is an agent that may call both. Charges need an approval.
var Clerk = agent.Definition{Name: "clerk", Tools: []string{"charge", "ship"}}

// Purchase is what the flow takes.
type Purchase struct {
	Charge
	Order
}

// Buy charges first, and ships if that has succeeded.
var Buy = flow.New("buy", func(c flow.Context, in Purchase) (string, error) {
	paid, err := flow.Activity[Receipt](c, "ChargeCard", in.Charge, &flow.ActivityOptions{TaskQueue: TaskQueue})
	if err != nil {
		return "", err
	}
	shipped, err := flow.Workflow[string](c, "Ship", in.Order, &flow.WorkflowOptions{TaskQueue: TaskQueue})
	return fmt.Sprintf("%s, receipt %s", shipped, paid.ID), err
}, nil)
