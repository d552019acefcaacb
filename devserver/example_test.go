package devserver_test

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/devserver"
)

// A program that has Temporal in itself. Without InMemory it would find its runs
// again when it is started the next time.
func ExampleStart() {
	ctx := context.Background()
	s, err := devserver.Start(ctx, &devserver.Options{InMemory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop()

	// The SDK's own default would log to the standard output.
	c, err := s.Dial(ctx, client.Options{Logger: log.NewStructuredLogger(slog.Default())})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	w := worker.New(c, "greetings", worker.Options{})
	w.RegisterWorkflowWithOptions(func(_ workflow.Context, name string) (string, error) {
		return "hello " + name, nil
	}, workflow.RegisterOptions{Name: "greet"})
	if err := w.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()

	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "greetings"}, "greet", "world")
	if err != nil {
		fmt.Println(err)
		return
	}
	var greeting string
	if err := run.Get(ctx, &greeting); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(greeting)
	// Output: hello world
}
