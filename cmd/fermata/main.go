package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/terminal"
)

func main() {
	// An interrupt is not in this list: it may hold a run instead (terminal.Keys).
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	ctx, end := context.WithCancel(ctx)
	defer end()
	keys := terminal.NewKeys(end)
	// Room for two: os/signal drops what does not fit, and the second Ctrl-C has its own meaning.
	pressed := make(chan os.Signal, 2)
	signal.Notify(pressed, os.Interrupt)
	go func() {
		for range pressed {
			keys.Interrupt()
		}
	}()
	// The first signal stops cleanly. From then on a second one ends the process.
	context.AfterFunc(ctx, func() { restore(); signal.Stop(pressed) })
	c := newCLI(os.Stdin, os.Stdout, os.Stderr)
	c.keys = keys
	// Only a warning: the command works without this protection.
	if err := secret.ProtectMemory(); err != nil {
		c.Note("fermata: other programs of this user can read this one's memory: %v", err)
	}
	os.Exit(c.execute(ctx, os.Args[1:]))
}
