package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fermata-agents/fermata/devserver"
)

var startBench = benchmark{
	name: "start", about: "from the start of a process to its first model call, with a server of its own; an empty fermata run",
	example: "-reps 10", reps: 7, run: starts,
}

const firstAsk = "to the first model call"

func starts(ctx context.Context, b *bench) error {
	if cell := "a process with a server"; b.wants(cell) {
		var sides []side
		for _, who := range []string{sideBaseline, sideFermata} {
			sides = append(sides, side{who, func(ctx context.Context, _ int) (sample, error) { return started(ctx, who) }})
		}
		t, err := b.compare(ctx, cell, sides...)
		if err != nil {
			return err
		}
		b.beside(cell, t, firstAsk, "ms", within(2000))
	}
	if cell := "fermata run"; b.wants(cell) {
		return emptyRun(ctx, b, cell)
	}
	return nil
}

// started runs one process with all that a run needs, up to the run's first model call.
func started(ctx context.Context, who string) (sample, error) {
	dir, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	c, err := startWorkers(ctx, job{Work: []string{who}, Queue: name("start"), Dir: dir}, 1)
	if err != nil {
		return nil, err
	}
	defer c.shutDown()
	calls, err := c.calledBy(ctx, firstRun, 1)
	return sample{firstAsk: ms(calls.first.Sub(began))}, err
}

// firstRun is the run of a process with a server of its own.
const firstRun = "first"

// first is such a process: a server, a worker and a run.
func first(ctx context.Context, j job, r *recorder) error {
	server, err := devserver.Start(ctx, &devserver.Options{DataDir: filepath.Join(j.Dir, "server")})
	if err != nil {
		return err
	}
	defer server.Stop()
	j.Addr = server.Addr()
	stop, err := employ(ctx, j, r)
	if err != nil {
		return err
	}
	defer stop()
	c, err := dial(j.Addr, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	s := &benchEnv{temporal: c}
	lanes, err := s.lanes(j)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		if l.side() == j.Work[0] {
			err = l.start(ctx, firstRun, plan{})
		}
	}
	if err != nil {
		return err
	}
	r.ready()
	return obey(r)
}

// emptyRun measures the command `fermata run` with a model that writes one word: first
// without data, then again.
func emptyRun(ctx context.Context, b *bench, cell string) error {
	dir, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	command := filepath.Join(dir, "fermata")
	build := exec.CommandContext(ctx, "go", "build", "-o", command, "github.com/fermata-agents/fermata/cmd/fermata")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command: %w: %s", err, out)
	}
	for name, text := range map[string]string{"fermata.yaml": "agents: {hello: {model: \"script:hello.yaml\"}}\n", "hello.yaml": "replies: [{text: hello}]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	run := func(ctx context.Context, data string) (float64, error) {
		cmd := exec.CommandContext(ctx, command, "run", "hello", "say hello", "--data", filepath.Join(dir, data))
		cmd.Dir = dir
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return since(began), err
	}
	t, err := b.inTurns(ctx, cell, side{sideFermata, func(ctx context.Context, rep int) (sample, error) {
		fresh, err := run(ctx, fmt.Sprint(rep))
		if err != nil {
			return nil, err
		}
		again, err := run(ctx, fmt.Sprint(rep))
		return sample{"new": fresh, "again": again}, err
	}})
	if err != nil {
		return err
	}
	b.add(row{Cell: cell + ", no data yet", What: "the whole command", Unit: "ms", Ours: t.of(sideFermata, "new"), Target: within(2000)})
	b.add(row{Cell: cell + ", again", What: "the whole command", Unit: "ms", Ours: t.of(sideFermata, "again")})
	return nil
}
