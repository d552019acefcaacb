// Preflight tries the runs of a task queue on its own build: a small program as in
// somebody's CI. The tests build it with planted changes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/worker"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, queue string) error {
	keys, err := keyring.Parse(os.Getenv("FERMATA_ENCRYPTION_KEYS"))
	if err != nil {
		return err
	}
	o := client.Options{HostPort: addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	if err := fermata.Prepare(&o, &fermata.PrepareOptions{Keyring: keys}); err != nil {
		return err
	}
	c, err := client.Dial(o)
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
