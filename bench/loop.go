package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// Our side of a plan: an agent for each kind of tool.
const (
	regularTool = "work"
	localTool   = "look"
)

// stopsSoon makes a stopping worker not wait long for its calls.
func stopsSoon(_ worker.Lane, o *sdk.Options) { o.WorkerStopTimeout = time.Second }

func planned() *worker.Options {
	var agents []agent.Definition
	for _, t := range []string{regularTool, localTool} {
		agents = append(agents, agent.Definition{
			Name: t, Model: "planned", Tools: []string{t, agent.AwaitResumptionTool}, Limits: agent.Limits{Turns: 1 << 20},
			ModelTimeout: agent.Duration(long), ModelSilence: agent.Duration(long),
		})
	}
	call := func(ctx context.Context, c *tool.Call, in payload) (string, error) {
		if in.Shows {
			if err := c.AddFile(ctx, agent.FileInput{Name: "chart.png", Data: chart(in.N)}); err != nil {
				return "", err
			}
		}
		return text(in.Size, -in.N&0xffff), nil
	}
	return &worker.Options{
		Agents: agents, Models: map[string]model.Model{"planned": follower{}}, Logger: zap.NewNop(), Temporal: stopsSoon,
		Tools: []tool.Tool{tool.New(regularTool, "works", call, nil), tool.New(localTool, "looks", call, &tool.Options{Local: true})},
	}
}

// follower is a model that follows the plan in the run's task.
type follower struct{}

// Info implements [model.Model].
func (follower) Info(string) model.Info {
	return model.Info{Files: map[string]int{"image/png": agent.MaxFile}}
}

// Generate implements [model.Model].
func (follower) Generate(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if len(req.Output) > 0 { // the run is being stopped
		return &model.Reply{Parts: []agent.Part{{Type: agent.PartText, Text: `{"summary":"` + summary + `"}`}}, Finish: model.FinishStop}, nil
	}
	p, err := planOf(req.Messages)
	if err != nil {
		return nil, model.Fault(agent.FaultBadRequest, 0, 0, "the task is no plan: "+err.Error())
	}
	p.wait(ctx)
	turn := req.Call.Turn
	r := &model.Reply{Finish: model.FinishToolCalls, Usage: p.usage(turn)}
	if p.Size > 0 {
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartText, Text: text(p.Size, turn)})
	}
	switch p.next(turn) {
	case callsTool:
		raw, err := json.Marshal(payload{turn, p.Size, p.Shows})
		if err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, model.CallPart("", p.agent(), string(raw)))
	case wantsRest:
		r.Parts = append(r.Parts, model.CallPart("", agent.AwaitResumptionTool, fmt.Sprintf(`{"reason":"turn %d"}`, turn)))
	case thinks:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		r.Finish = model.FinishStop
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartText, Text: "done"})
	}
	return r, nil
}

// usage returns what a provider would report of a turn: about a token for four bytes. Each turn before
// it has added a reply and a result. A run whose provider reports none has to estimate it.
func (p plan) usage(turn int) agent.Usage {
	return agent.Usage{Input: int64(100 + (turn-1)*p.Size/2), Output: int64(20 + p.Size/4)}
}

// planOf returns the plan of the session's newest task.
func planOf(messages []agent.Message) (p plan, err error) {
	for _, m := range slices.Backward(messages) {
		if m.Role == agent.RoleUser && m.Note == "" {
			if err = json.Unmarshal([]byte(m.Text()), &p); err == nil {
				return p, nil
			}
		}
	}
	return p, cmp.Or(err, errors.New("nobody said one"))
}

// agent returns the agent with the plan's kind of tool.
func (p plan) agent() string {
	if p.Local {
		return localTool
	}
	return regularTool
}

func workLoop(ctx context.Context, c temporal.Client, j job, _ *recorder) (stop func(), err error) {
	o := planned()
	if o.Store, err = store.OpenDir(j.Dir, nil); err != nil {
		return nil, err
	}
	o.TaskQueue = j.queue(sideFermata)
	w, err := worker.New(c, o)
	if err != nil {
		return nil, err
	}
	return w.Stop, w.Start(ctx)
}
