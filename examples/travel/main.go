package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

type payment struct {
	EUR int `json:"eur" jsonschema:"how much"`
}

func pay(_ context.Context, _ *tool.Call, in payment) (string, error) { return "paid", nil }

// options are what the program's worker runs, and what its tests are about.
func options() *worker.Options {
	return &worker.Options{
		Tools: []tool.Tool{tool.New("pay", "Pays for a trip.", pay, &tool.Options{Attempts: 3})},
		Agents: []agent.Definition{
			{
				Name: "planner", Model: "anthropic/claude-sonnet-5", Tools: []string{agent.AwaitResumptionTool, "pay"},
				Agents:       []agent.SubAgent{{Agent: "clerk", Description: "Books and pays."}},
				Instructions: "Plan the trip, let the clerk book it, and look a week later whether the tickets have come.",
			},
			{
				Name: "clerk", Model: "anthropic/claude-sonnet-5", Tools: []string{"pay"},
				Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}},
			},
		},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work(ctx); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context) error {
	c, err := temporal.DialContext(ctx, temporal.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	o := options()
	if o.Store, err = store.OpenDir("transcripts", nil); err != nil {
		return err
	}
	o.Models = map[string]model.Model{"anthropic": anthropic.New(nil)}
	w, err := worker.New(c, o)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
