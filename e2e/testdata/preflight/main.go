// Preflight tries the runs of a task queue on the build that it is part of: a small
// program as somebody's CI has it, which the tests build with planted changes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"log/slog"

	"github.com/fermata-agents/fermata/worker"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, queue string) error {
	c, err := client.Dial(client.Options{HostPort: addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	out := json.NewEncoder(os.Stdout)
	for v, err := range worker.Preflight(context.Background(), c, &worker.Options{TaskQueue: queue}, nil) {
		if err != nil {
			return err
		}
		if err := out.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
