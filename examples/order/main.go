package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

func main() {
	if err := order(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func order(ctx context.Context) error {
	server, err := devserver.Start(ctx, &devserver.Options{InMemory: true})
	if err != nil {
		return err
	}
	defer server.Stop()
	c, err := server.Dial(ctx, temporal.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	folder, err := os.MkdirTemp("", "order")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	transcripts, err := store.OpenDir(folder, nil)
	if err != nil {
		return err
	}

	w, err := worker.New(c, options(transcripts))
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	defer w.Stop()

	run, err := c.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{ID: "order-42", TaskQueue: "fermata"}, Order, Request{Item: "socks", Pairs: 40})
	if err != nil {
		return err
	}
	if err := answer(ctx, client.New(c, nil)); err != nil {
		return err
	}
	var result string
	if err := run.Get(ctx, &result); err != nil {
		return err
	}
	fmt.Println(result)
	return nil
}

func options(transcripts store.Store) *worker.Options {
	return &worker.Options{
		Agents: []agent.Definition{{
			Name:         "checker",
			Model:        "script", // or anthropic/claude-sonnet-5
			Instructions: "You check orders. Ask if an amount is odd.",
			Tools:        []string{agent.AskUserTool},
			Output:       model.OutputOf[Check](),
		}},
		// A model that costs nothing. A real one: "anthropic": anthropic.New(nil)
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Are 40 pairs meant?"}}}},
			testsuite.Reply{Text: `{"fine": true, "why": "the customer says so"}`},
		)},
		Store: transcripts,
		// The shop's own workflows and activities, on the same worker.
		Register: func(r sdk.Registry) {
			r.RegisterWorkflow(Order)
			r.RegisterActivity(Ship)
		},
	}
}

// answer waits for the first question and answers it, as a person would with fermata inbox and
// fermata answer.
func answer(ctx context.Context, c *client.Client) error {
	for {
		for item, err := range c.Inbox(ctx, nil) {
			if err != nil {
				return err
			}
			fmt.Println(item.Text)
			_, err := c.Answer(ctx, item.Request, "yes", nil)
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
