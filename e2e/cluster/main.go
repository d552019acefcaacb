package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/fermata-agents/fermata/keyring"
)

const usage = `Runs a command beside a Temporal server with PostgreSQL, a shared store and keys:

  go run ./cluster -- go test .
  go run ./cluster -- bash

It needs temporal-server, temporal-sql-tool, temporal and fermata on the PATH, and the
programs of PostgreSQL. The command has TEMPORAL_ADDRESS, FERMATA_STORE and
FERMATA_ENCRYPTION_KEYS, and FERMATA_E2E_ADDRESS and FERMATA_E2E_STORE for the tests.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage); f.PrintDefaults() }
	file := f.String("compose", "../docker-compose.yml", "the file that says what the server is told")
	if err := f.Parse(os.Args[1:]); err != nil || f.NArg() == 0 {
		if !errors.Is(err, flag.ErrHelp) {
			f.Usage()
		}
		os.Exit(2)
	}
	if err := run(ctx, *file, f.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, command []string) error {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return err
	}
	c, err := start(ctx, dir, file)
	if err != nil {
		return err
	}
	defer c.stop()
	key, err := keyring.New("k1")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+c.addr, "FERMATA_STORE="+c.database.URL(), "FERMATA_ENCRYPTION_KEYS="+key,
		"FERMATA_E2E_ADDRESS="+c.addr, "FERMATA_E2E_STORE="+c.database.URL())
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; what the server said is in %s", command[0], err, dir)
	}
	return os.RemoveAll(dir)
}
