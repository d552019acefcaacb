package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		log.Fatal("usage: beside STORE: the folder store in the data directory that fermata dev prints")
	}
	if err := beside(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

type sum struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

func add(_ context.Context, _ *tool.Call, in sum) (int, error) { return in.A + in.B, nil }

func beside(ctx context.Context, folder string) error {
	o := temporal.Options{} // the server at 127.0.0.1:7233; HostPort names another
	if err := client.Prepare(&o, nil); err != nil {
		return err
	}
	c, err := temporal.DialContext(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	// The store of fermata dev, so that its commands read these transcripts too.
	transcripts, err := store.OpenDir(folder, nil)
	if err != nil {
		return err
	}
	w, err := worker.New(c, &worker.Options{
		TaskQueue: "sums", // fermata dev has its own agents on "fermata"
		Agents:    []agent.Definition{{Name: "calculator", Model: "script", Instructions: "You add numbers.", Tools: []string{"add"}}},
		Tools:     []tool.Tool{tool.New("add", "Adds two numbers.", add, &tool.Options{Local: true})},
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"a": 19, "b": 23}}}},
			testsuite.Reply{Text: "19 + 23 is 42."},
		)},
		Store: transcripts,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
