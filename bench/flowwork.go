package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A flow that asks agents at once and then makes steps in a row, and the same by hand: a workflow
// with a bare child workflow for each agent, and an activity for each step.
const (
	sideFlow   = "flow"
	sideByHand = "by hand"
	fanFlow    = "fan"
	handFan    = "hand.fan"
	handLeaf   = "hand.leaf"
)

// flowPlan is what the flow does.
type flowPlan struct {
	Agents int `json:"agents,omitempty"`
	Width  int `json:"width,omitempty"`
	Steps  int `json:"steps,omitempty"`
	// Local makes the steps local tools. Leaf is the plan of each agent.
	Local bool `json:"local,omitempty"`
	Leaf  plan `json:"leaf,omitzero"`
}

func fan(c flow.Context, p flowPlan) (int, error) {
	asked, err := flow.Map(c, "part", make([]int, p.Agents), func(c flow.Context, _ int) (string, error) {
		return flow.Agent[string](c, regularTool, p.Leaf, nil)
	}, &flow.MapOptions{Width: p.Width})
	for i := 0; i < p.Steps && err == nil; i++ {
		if p.Local {
			_, err = flow.Tool[string](c, localTool, payload{N: i}, nil)
			continue
		}
		_, err = flow.Do(c, "step", func(context.Context, *tool.Call) (int, error) { return i, nil }, nil)
	}
	return len(asked), err
}

// workFlows starts a worker of the flow and its agents.
func workFlows(ctx context.Context, c temporal.Client, j job, r *recorder) (stop func(), err error) {
	o := planned()
	// Each call of the local tool is reported, to see that none is made twice.
	o.Tools[1] = tool.New(localTool, "looks", func(_ context.Context, c *tool.Call, _ payload) (string, error) {
		r.tool(c.Key)
		return "seen", nil
	}, &tool.Options{Local: true})
	o.Flows = []flow.Flow{flow.New(fanFlow, fan, &flow.Options{
		Agents: []agent.SubAgent{{Agent: regularTool}}, Tools: []string{localTool}, Limits: agent.Limits{OwnTurns: 1 << 20},
	})}
	if o.Store, err = store.OpenDir(j.Dir, nil); err != nil {
		return nil, err
	}
	o.TaskQueue = j.queue(sideFlow)
	w, err := worker.New(c, o)
	if err != nil {
		return nil, err
	}
	return w.Stop, w.Start(ctx)
}

// byHand is the workflow that does what the flow does.
func byHand(ctx workflow.Context, p flowPlan) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: long, HeartbeatTimeout: quietFor})
	var children []workflow.ChildWorkflowFuture
	for range p.Agents {
		children = append(children, workflow.ExecuteChildWorkflow(ctx, handLeaf, p.Leaf))
	}
	for _, child := range children {
		if err := child.Get(ctx, nil); err != nil {
			return err
		}
	}
	for range p.Steps {
		if err := workflow.ExecuteActivity(ctx, baselineTool).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// leafByHand is an agent without tools: one model call.
func leafByHand(ctx workflow.Context, p plan) (text string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: long, HeartbeatTimeout: quietFor})
	return text, workflow.ExecuteActivity(ctx, baselineModel, p).Get(ctx, &text)
}

func workByHand(_ context.Context, c temporal.Client, j job, _ *recorder) (stop func(), err error) {
	w := sdk.New(c, j.queue(sideByHand), sdk.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(byHand, workflow.RegisterOptions{Name: handFan})
	w.RegisterWorkflowWithOptions(leafByHand, workflow.RegisterOptions{Name: handLeaf})
	w.RegisterActivityWithOptions(func(context.Context, plan) (string, error) { return "done", nil }, activity.RegisterOptions{Name: baselineModel})
	w.RegisterActivityWithOptions(func(context.Context) (int, error) { return 1, nil }, activity.RegisterOptions{Name: baselineTool})
	return w.Stop, w.Start()
}

func (f *flowEnv) playByHand(ctx context.Context, p flowPlan) (id string, err error) {
	id = name("hand")
	run, err := f.temporal.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{ID: id, TaskQueue: f.byHand}, handFan, p)
	if err != nil {
		return "", err
	}
	return id, run.Get(ctx, nil)
}
