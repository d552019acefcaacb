package main

import (
	"context"
	"fmt"
	"log"
	"os"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

type sum struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

func add(_ context.Context, _ *tool.Call, in sum) (int, error) { return in.A + in.B, nil }

func main() {
	if err := hello(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func hello(ctx context.Context) error {
	// A Temporal server in this process. Any Temporal client works.
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

	// Transcripts are kept outside of Temporal's histories.
	folder, err := os.MkdirTemp("", "hello")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	transcripts, err := store.OpenDir(folder, nil)
	if err != nil {
		return err
	}

	w, err := worker.New(c, &worker.Options{
		Agents: []agent.Definition{{
			Name:         "calculator",
			Model:        "script", // or anthropic/claude-sonnet-5
			Instructions: "You add numbers.",
			Tools:        []string{"add"},
			Limits:       agent.Limits{Turns: 10},
		}},
		Tools: []tool.Tool{tool.New("add", "Adds two numbers.", add, &tool.Options{Local: true})},
		// A model that costs nothing. A real one: "anthropic": anthropic.New(nil)
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"a": 19, "b": 23}}}},
			testsuite.Reply{Text: "19 + 23 is 42."},
		)},
		Store: transcripts,
	})
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	defer w.Stop()

	run, err := client.New(c, nil).Start(ctx, "calculator", "What is 19 + 23?", nil)
	if err != nil {
		return err
	}
	out, err := run.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s after %d turns: %s\n", out.Status, out.Turns, out.Text)
	return out.Err()
}
