package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/tool"
)

// tourAgent is the flow of the stories. Steps that run its own code have the names of the tools
// that do the same, so that the audit knows what they do.
const tourAgent = "tour"

// newerTour is true in the newer build: it has one step more, one less, and one under another
// name.
const newerTour = false

// tour makes effects that may not be repeated, fans out to agents, then asks, waits and ponders at
// once, and at last makes effects that may be repeated. A failed step fails it only at the end.
func (d *desk) tour(c flow.Context, in string) (string, error) {
	// First, while the disturbances last: later steps wait for people.
	bills, unpaid := flow.Map(c, "bill", make([]int, 8), func(c flow.Context, _ int) (string, error) {
		return flow.Do(c, payTool, d.paysFor(), nil)
	}, &flow.MapOptions{Width: 4, Need: flow.Collect})
	parts, _ := flow.Map(c, "part", []int{1, 2, 3, 4}, func(c flow.Context, n int) (string, error) {
		if n%2 == 0 {
			return flow.Agent[string](c, []string{helperAgent, scoutAgent}[n/2-1], fmt.Sprintf("%s.%d", in, 100+n), nil)
		}
		return flow.Tool[string](c, payTool, args{n}, nil)
	}, &flow.MapOptions{Width: 3, Need: flow.Collect})
	ask := "ask"
	if newerTour {
		ask = "question"
		_, _ = flow.Do(c, bookTool, d.booksFor(), &flow.StepOptions{Attempts: 5})
	} else {
		_, _ = flow.Tool[string](c, ponderTool, args{1}, nil)
	}
	waits, _ := flow.Map(c, "wait", []string{ask, "event", "resume", "work"}, func(c flow.Context, what string) (string, error) {
		switch what {
		case "event":
			e, err := flow.Wait(c, agent.Conditions{Any: []agent.Condition{{Event: &agent.EventCondition{Topic: topic}}, {After: agent.Duration(8 * time.Second)}}}, nil)
			return e.Topic, err
		case "resume":
			_, err := flow.Wait(c, agent.Conditions{}, nil)
			return "", err
		case "work":
			return flow.Tool[string](c, ponderTool, args{2}, nil)
		}
		return flow.Ask[string](c, "Which way?", &flow.AskOptions{Name: what})
	}, &flow.MapOptions{Need: flow.Collect})
	_, booked := flow.Do(c, bookTool, d.booksFor(), &flow.StepOptions{Attempts: 5})
	// A person may say to make it again: it has its effect once for its key.
	err := flow.Scope(c, "once", func(c flow.Context) error {
		_, err := flow.Do(c, bookTool, d.booksFor(), nil)
		return err
	})
	return fmt.Sprintf("Toured %d parts, %d waits and %d bills.", len(flow.Values(parts)), len(flow.Values(waits)), len(flow.Values(bills))), errors.Join(unpaid, booked, err)
}

// paysFor pays, and then takes its time: a worker that is killed or held meanwhile has paid.
func (d *desk) paysFor() func(context.Context, *tool.Call) (string, error) {
	return func(ctx context.Context, k *tool.Call) (string, error) {
		text, err := d.pay(ctx, k, args{})
		if err == nil && !pause(ctx, chance(k.Key+" long", 1500*time.Millisecond)) {
			err = ctx.Err()
		}
		return text, err
	}
}

func (d *desk) booksFor() func(context.Context, *tool.Call) (string, error) {
	return func(ctx context.Context, k *tool.Call) (string, error) { return d.book(ctx, k, args{}) }
}

// flows are the flows of every worker.
func (d *desk) flows() []flow.Flow {
	return []flow.Flow{flow.New(tourAgent, d.tour, &flow.Options{
		Agents: []agent.SubAgent{{Agent: helperAgent}, {Agent: scoutAgent}}, Tools: []string{payTool, ponderTool},
	})}
}

// stepTool returns the tool that a step is like: of a flow's own code, the one whose name the step
// has.
func stepTool(r agent.ToolResult, key string) string {
	if r.Tool != agent.DoTool {
		return r.Tool
	}
	name, _, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "#")
	return name
}

// outcomeChoice answers whether a step had its effect, by the journal. Only what has its effect
// once for its key is made again: a worker that is stopped just now may still do the first.
func (d *desk) outcomeChoice(req agent.Request, choice int) (string, error) {
	key := agent.IdempotencyKey(req.Run, req.Step)
	if stepTool(agent.ToolResult{Tool: req.Call.Tool}, key) == bookTool {
		return []string{"again", "fail"}[choice%2], nil
	}
	journal, err := d.read()
	if journal[key].done > 0 {
		return "done", err
	}
	return "fail", err
}
