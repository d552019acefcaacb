// Newer is a worker whose agent asks a person. The tests build it with the edits that
// make a build of a later revision.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

func main() {
	if err := work(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work runs until the process is killed.
func work(addr, queue, dir string) error {
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
	st, err := store.OpenDir(dir, nil)
	if err != nil {
		return err
	}
	script := testsuite.NewScript(testsuite.Reply{Match: ".*", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Where to?"}}}})
	w, err := worker.New(c, &worker.Options{
		TaskQueue: queue, Store: st, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script},
		Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{agent.AskUserTool}}},
	})
	if err != nil {
		return err
	}
	if err := w.Start(context.Background()); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}
