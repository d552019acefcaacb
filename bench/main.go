package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// workCommand is what the program calls itself by to have a worker process.
const workCommand = "work"

// commands are the benchmarks by name.
var commands = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"tree": tree,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	names := strings.Join(slices.Sorted(maps.Keys(commands)), ", ")
	if len(args) == 0 {
		return fmt.Errorf("which benchmark? There is: %s", names)
	}
	if args[0] == workCommand {
		return work(ctx, args[1:])
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("there is no benchmark %q; there is: %s", args[0], names)
	}
	return command(ctx, args[1:], os.Stdout)
}
