package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/devserver"
)

// shapes are trees by the number of their nodes: how many children a node has, by level.
var shapes = map[int][]int{
	7:   {2, 2},
	40:  {3, 3, 1, 1, 1},
	364: {3, 3, 3, 3, 3},
}

// branch is how many children a node has, and what they have below them.
func branch(fanout []int) (n int, below []int) {
	if len(fanout) == 0 {
		return 0, nil
	}
	return fanout[0], fanout[1:]
}

// count is the number of a tree's nodes.
func count(fanout []int) int {
	n, below := branch(fanout)
	if n == 0 {
		return 1
	}
	return 1 + n*count(below)
}

// leaves is the number of the nodes that have none below.
func leaves(fanout []int) int {
	n, below := branch(fanout)
	if n == 0 {
		return 1
	}
	return n * leaves(below)
}

// planted is a tree that works.
type planted interface {
	// interrupt holds the whole tree by one call to its root, and says whether the
	// root knows of it then.
	interrupt(ctx context.Context) (heard bool, err error)
	// status asks the root once: whether it knows of the interrupt, and whether it
	// is suspended.
	status(ctx context.Context) (heard, rests bool, err error)
	// still waits until nothing more may begin.
	still(ctx context.Context) error
	// end looks whether all is as it should be, and leaves nothing that lives.
	end(ctx context.Context, rep int, c *crew) error
}

// team is a side with its workers.
type team struct {
	name  string
	plant func(context.Context) (planted, error)
	crew  *crew
}

// treeOptions are the flags.
type treeOptions struct {
	sizes, workers []int
	reps           int
	settle         time.Duration
	json, check    bool
	data, profile  string
	progress       io.Writer
}

func tree(ctx context.Context, args []string, out io.Writer) error {
	o := &treeOptions{sizes: []int{40, 364}, workers: []int{1, 2}, progress: os.Stderr}
	f := flag.NewFlagSet("tree", flag.ContinueOnError)
	f.Func("size", "agents in a tree: 7, 40 or 364, with commas between (default 40,364)", numbers(&o.sizes))
	f.Func("workers", "worker processes, with commas between (default 1,2)", numbers(&o.workers))
	f.IntVar(&o.reps, "reps", 5, "repetitions")
	f.DurationVar(&o.settle, "settle", time.Second, "pause between the last activity's begin and the interrupt")
	f.BoolVar(&o.json, "json", false, "print every sample as JSON")
	f.BoolVar(&o.check, "check", false, "fail where a bar is missed")
	f.StringVar(&o.data, "data", "", "folder of the server's database (default: in memory)")
	f.StringVar(&o.profile, "profile", "", "folder for CPU profiles of every process, from the interrupt to the end of the last activity")
	if err := f.Parse(args); err != nil {
		return err
	}
	for _, n := range o.sizes {
		if shapes[n] == nil {
			return fmt.Errorf("no tree has %d agents; there are %v", n, slices.Sorted(maps.Keys(shapes)))
		}
	}
	r, err := o.run(ctx)
	if err != nil {
		return err
	}
	if err := r.show(out, o.json); err != nil {
		return err
	}
	return r.verdict(o.check)
}

func numbers(into *[]int) func(string) error {
	return func(s string) error {
		*into = nil
		for _, one := range strings.Split(s, ",") {
			n, err := strconv.Atoi(one)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a number", one)
			}
			*into = append(*into, n)
		}
		return nil
	}
}

// run measures all cells on one server.
func (o *treeOptions) run(ctx context.Context) (*report, error) {
	server, err := devserver.Start(ctx, &devserver.Options{InMemory: o.data == "", DataDir: o.data})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	c, err := dial(server.Addr(), nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := &report{}
	for _, size := range o.sizes {
		for _, workers := range o.workers {
			if err := o.cell(ctx, c, server.Addr(), r.add(size, workers)); err != nil {
				return nil, fmt.Errorf("%d agents, %d workers: %w", size, workers, err)
			}
		}
	}
	return r, nil
}

// cell measures one size with one number of workers: both sides in turn, so that
// whatever else the machine does meets both.
func (o *treeOptions) cell(ctx context.Context, c temporal.Client, addr string, into *cell) error {
	dir, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fanout := shapes[into.Agents]
	jobOf := func(side string) job {
		return job{Side: side, Addr: addr, Queue: fmt.Sprintf("%s-%d-%d", side, into.Agents, into.Workers), Dir: dir, Fanout: fanout}
	}
	ours, err := ourGroundOf(c, jobOf(sideOurs))
	if err != nil {
		return err
	}
	bare := &bareGround{c, jobOf(sideBare).Queue, fanout}
	teams := []*team{{name: sideBare, plant: bare.plant}, {name: sideOurs, plant: ours.plant}}
	for _, t := range teams {
		if t.crew, err = hire(ctx, jobOf(t.name), into.Workers); err != nil {
			return err
		}
		defer t.crew.dismiss()
	}
	for rep := range o.reps {
		for _, t := range teams {
			s, err := o.measure(ctx, t, into, rep)
			var bad *wrong
			if errors.As(err, &bad) {
				into.Faults, err = append(into.Faults, fmt.Sprintf("repetition %d: %v", rep+1, err)), nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			into.Samples[t.name] = append(into.Samples[t.name], s)
			fmt.Fprintf(o.progress, "%d agents, %d workers, %s %d: %s\n", into.Agents, into.Workers, t.name, rep+1, s)
		}
	}
	return nil
}

// measure is one repetition of one side.
func (o *treeOptions) measure(ctx context.Context, t *team, in *cell, rep int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	t.crew.forget()
	began := time.Now()
	tree, err := t.plant(ctx)
	if err != nil {
		return s, err
	}
	if err := until(ctx, "all nodes to work", func() (bool, error) { return t.crew.atWork() == in.Agents, t.crew.fault() }); err != nil {
		return s, fmt.Errorf("%w: %d of %d do", err, t.crew.atWork(), in.Agents)
	}
	s.Planted = since(began)
	time.Sleep(o.settle)
	if n := t.crew.atWork(); n != in.Agents {
		return s, fmt.Errorf("%d of %d nodes work at the time of the interrupt", n, in.Agents)
	}
	stop, err := o.profiled(t, in, rep)
	if err != nil {
		return s, err
	}
	began = time.Now()
	heard, err := tree.interrupt(ctx)
	if err != nil {
		return s, err
	}
	if heard {
		s.Heard = since(began)
	}
	for rests := false; !rests; s.Asked++ {
		if heard, rests, err = tree.status(ctx); err != nil {
			return s, err
		}
		if heard && s.Heard == 0 {
			s.Heard = since(began)
		}
	}
	s.Root = since(began)
	if err := until(ctx, "no node to work", func() (bool, error) { return t.crew.atWork() == 0, t.crew.fault() }); err != nil {
		return s, err
	}
	stop()
	if err := tree.still(ctx); err != nil {
		return s, err
	}
	if err := until(ctx, "no activity to run", func() (bool, error) { return t.crew.atAll() == 0, t.crew.fault() }); err != nil {
		return s, err
	}
	s.Quiet, s.Still = ms(t.crew.lastEnd(true).Sub(began)), ms(t.crew.lastEnd(false).Sub(began))
	return s, tree.end(ctx, rep, t.crew)
}

// profiled begins CPU profiles where they are wanted: of the workers, and of this
// process, which has the server.
func (o *treeOptions) profiled(t *team, in *cell, rep int) (stop func(), err error) {
	if o.profile == "" {
		return func() {}, nil
	}
	name := fmt.Sprintf("%s-%d-%d-%d", t.name, in.Agents, in.Workers, rep)
	dir, err := filepath.Abs(o.profile)
	if err != nil {
		return nil, err
	}
	server, err := os.Create(filepath.Join(dir, name+"-server.prof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(server); err != nil {
		return nil, err
	}
	stopCrew := t.crew.profile(dir, name)
	time.Sleep(100 * time.Millisecond) // until they have begun
	return func() {
		pprof.StopCPUProfile()
		stopCrew()
	}, nil
}
