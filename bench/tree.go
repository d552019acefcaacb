package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// shapes are trees by their number of nodes: how many children a node has, by level.
var shapes = map[int][]int{
	1:   {},
	4:   {3},
	7:   {2, 2},
	13:  {3, 3},
	40:  {3, 3, 1, 1, 1},
	364: {3, 3, 3, 3, 3},
}

// branch returns how many children a node has, and the levels below them.
func branch(fanout []int) (n int, below []int) {
	if len(fanout) == 0 {
		return 0, nil
	}
	return fanout[0], fanout[1:]
}

// count returns the number of a tree's nodes.
func count(fanout []int) int {
	n, below := branch(fanout)
	if n == 0 {
		return 1
	}
	return 1 + n*count(below)
}

// leaves returns the number of nodes without children.
func leaves(fanout []int) int {
	n, below := branch(fanout)
	if n == 0 {
		return 1
	}
	return n * leaves(below)
}

// runningTree is a tree that works.
type runningTree interface {
	// id returns the workflow id of the root.
	id() string
	// interrupt holds the whole tree with one call to its root. It reports what the root's
	// answer says: see status.
	interrupt(ctx context.Context) (heard, rests bool, err error)
	// status asks the root once: whether it knows of the interrupt, and whether it is
	// suspended.
	status(ctx context.Context) (heard, rests bool, err error)
	// awaitQuiet waits until no more activity may start.
	awaitQuiet(ctx context.Context) error
	// end checks whether all is as it should be, and leaves nothing running.
	end(ctx context.Context, rep int, c *workerProcs) error
}

// treeSide is a side with its workers.
type treeSide struct {
	name    string
	start   func(context.Context) (runningTree, error)
	workers *workerProcs
}

var treeBench = benchmark{
	name: "tree", about: "an interrupt of a tree of agents: until nothing works any more, and until the root says so",
	example: "-only '^(1|40) agents, 1 worker' -reps 3", reps: 5, run: trees,
}

// settle is the pause between the last activity's start and the interrupt.
const settle = time.Second

// trees measures all cells on one server.
func trees(ctx context.Context, b *bench) error {
	s, err := newBenchEnv(ctx, b, nil)
	if err != nil {
		return err
	}
	defer s.close()
	for _, workers := range pick(b, []int{1, 2}, []int{1}) {
		single := taken(nil) // the tree of one node, for comparison
		for _, size := range pick(b, []int{1, 4, 13, 40, 364}, []int{1, 4, 13}) {
			cell := fmt.Sprintf("%d agents, %d workers", size, workers)
			if workers == 1 {
				cell = fmt.Sprintf("%d agents, 1 worker", size)
			}
			if !b.wants(cell) {
				continue
			}
			t, err := s.tree(ctx, cell, size, workers)
			if err != nil {
				return err
			}
			if size == 1 {
				single = t
			}
			s.addTree(cell, size, t, single)
		}
	}
	return nil
}

// tree measures one size with one number of workers.
func (s *benchEnv) tree(ctx context.Context, cell string, size, workers int) (taken, error) {
	j := s.job()
	j.Fanout = shapes[size]
	ours, err := newFermataTrees(s.temporal, j)
	if err != nil {
		return nil, err
	}
	bare := &bareTrees{s.temporal, j.queue(sideBare), j.Fanout, false}
	asking := &bareTrees{s.temporal, j.queue(sideAsking), j.Fanout, true}
	var sides []side
	for _, t := range []*treeSide{{name: sideBare, start: bare.start}, {name: sideAsking, start: asking.start}, {name: sideTrees, start: ours.start}} {
		j.Work = []string{t.name}
		if t.workers, err = startWorkers(ctx, j, workers); err != nil {
			return nil, err
		}
		defer t.workers.shutDown()
		sides = append(sides, side{t.name, func(ctx context.Context, rep int) (sample, error) { return s.interrupted(ctx, t, cell, size, rep) }})
	}
	return s.compare(ctx, cell, sides...)
}

// The measures of a tree.
const (
	quiet              = "quiet"          // until the last model or tool call had ended
	rootRest           = "root suspended" // until the root said that it was suspended
	rootHear           = "root knows"     // until the root said that it knew of the interrupt
	allActivitiesEnded = "books closed"   // until the last activity of any kind had ended: ours store the logs
	treeStarted        = "planted"        // from the start of the root to the last node's first activity
)

// atOnce are the limits for trees beside a single run.
var atOnce = map[int]*target{40: atMost(1.5), 364: atMost(10)}

// addTree adds a tree's rows.
func (s *benchEnv) addTree(cell string, size int, t, single taken) {
	for _, m := range []struct {
		what, of, beside string
		bar              *target
	}{
		{quiet, quiet, quiet, atMost(0.2)},
		{"root suspended, tree quiet", rootRest, quiet, atMost(1)},
		{rootRest, rootRest, rootRest, within(1000)},
		{rootHear, rootHear, rootHear, nil},
		{allActivitiesEnded, allActivitiesEnded, allActivitiesEnded, nil},
		{treeStarted, treeStarted, treeStarted, atMost(1.2)},
	} {
		limit := m.bar
		if size < 40 {
			limit = nil // a small tree is as quick either way
		}
		s.add(row{Cell: cell, What: m.what, Unit: "ms", Ours: t.of(sideTrees, m.of), Beside: t.of(sideBare, m.beside), Reference: sideBare, Target: limit})
	}
	if size > 1 {
		s.add(row{Cell: cell, What: treeStarted, Unit: "ms", Ours: t.of(sideTrees, treeStarted), Beside: t.of(sideAsking, treeStarted), Reference: sideAsking})
	}
	if size > 1 && single != nil {
		s.add(row{Cell: cell, What: quiet, Unit: "ms", Ours: t.of(sideTrees, quiet), Beside: single.of(sideTrees, quiet), Reference: "1 agent", Target: atOnce[size]})
	}
}

// interrupted is one repetition of one side: a tree is started, interrupted, and ended.
func (s *benchEnv) interrupted(ctx context.Context, t *treeSide, cell string, size, rep int) (sample, error) {
	t.workers.forget()
	began := time.Now()
	tree, err := t.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "all nodes to work", func() (bool, error) { return t.workers.callsInFlight() == size, t.workers.fault() }); err != nil {
		return nil, fmt.Errorf("%w: %d of %d do", err, t.workers.callsInFlight(), size)
	}
	m := sample{treeStarted: since(began)}
	time.Sleep(settle)
	if n := t.workers.callsInFlight(); n != size {
		return nil, fmt.Errorf("%d of %d nodes work at the time of the interrupt", n, size)
	}
	stop, err := s.profiled(t.workers, fmt.Sprintf("tree-%s-%s-%d", t.name, cell, rep))
	if err != nil {
		return nil, err
	}
	began = time.Now()
	heard, rests, err := tree.interrupt(ctx)
	if err != nil {
		return nil, err
	}
	if heard {
		m[rootHear] = since(began)
	}
	for !rests {
		if heard, rests, err = tree.status(ctx); err != nil {
			return nil, err
		}
		if _, known := m[rootHear]; heard && !known {
			m[rootHear] = since(began)
		}
	}
	m[rootRest] = since(began)
	if err := until(ctx, "no node to work", func() (bool, error) { return t.workers.callsInFlight() == 0, t.workers.fault() }); err != nil {
		return nil, err
	}
	stop()
	if err := tree.awaitQuiet(ctx); err != nil {
		return nil, err
	}
	if err := until(ctx, "no activity to run", func() (bool, error) { return t.workers.activitiesInFlight() == 0, t.workers.fault() }); err != nil {
		return nil, err
	}
	if err := s.writeWaits(ctx, cell, t.name, rep, tree.id()); err != nil {
		return nil, err
	}
	m[quiet], m[allActivitiesEnded] = ms(t.workers.lastEnd(true).Sub(began)), ms(t.workers.lastEnd(false).Sub(began))
	return m, tree.end(ctx, rep, t.workers)
}

// profiled starts CPU profiles if they are requested: of the workers, and of this process
// with the server.
func (s *benchEnv) profiled(c *workerProcs, name string) (stop func(), err error) {
	if s.profile == "" {
		return func() {}, nil
	}
	name = strings.NewReplacer(" ", "", ",", "-").Replace(name)
	dir, err := filepath.Abs(s.profile)
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
	stopCrew := c.profile(dir, name)
	time.Sleep(100 * time.Millisecond) // until the workers have started theirs
	return func() {
		pprof.StopCPUProfile()
		stopCrew()
	}, nil
}
