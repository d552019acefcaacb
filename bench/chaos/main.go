package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The commands with which the program starts its other processes.
const (
	serveCommand = "serve"
	workCommand  = "work"

	replayCommand = "replay"
)

var commands = map[string]func(ctx context.Context, arg string) error{serveCommand: serve, workCommand: work, replayCommand: replay}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1])
	}
	o := &options{progress: os.Stderr}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", 0, "what the plan is made of (default: another one each time)")
	f.DurationVar(&o.lasts, "for", time.Minute, "how long all of it is disturbed")
	f.DurationVar(&o.patience, "calm", 2*time.Minute, "how long all of it may take to come to rest afterwards")
	f.IntVar(&o.runs, "runs", 64, "stories that are begun in a round; most have agents below agents, and some have several runs")
	f.IntVar(&o.stories, "stories", 0, "stories in all: rounds of -runs, each with the next seed and a server of its own")
	f.BoolVar(&o.keepServer, "keep-server", false, "do not strike the server; of rounds, it is struck in every fourth")
	f.BoolVar(&o.alternate, "alternate", false, "let a build of a newer revision and this one take turns as workers; needs the sources")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.StringVar(&o.keep, "keep", "", "folder for the server's file, the store, the journal, the plan and what processes say (default: a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || o.runs < 1 || o.lasts < 5*time.Second {
		return errors.New("there are flags alone, -runs is 1 at least and -for 5s")
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000)
	}
	clean, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	defer clean()
	play := o.run
	if o.stories > 0 {
		play = o.rounds
	}
	r, err := play(ctx)
	if err != nil {
		return err
	}
	if err := r.show(out, o.json); err != nil {
		return err
	}
	return r.verdict()
}

// prepare finds or makes the workers' builds.
func (o *options) prepare(ctx context.Context) (clean func(), err error) {
	clean = func() {}
	self, err := os.Executable()
	if err != nil {
		return clean, err
	}
	o.builds = []string{self}
	if !o.alternate {
		return clean, nil
	}
	dir, err := os.MkdirTemp("", "fermata-newer")
	if err != nil {
		return clean, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	o.say("making the newer build")
	newer, err := buildNewer(ctx, dir)
	o.builds = append(o.builds, newer)
	return clean, err
}
