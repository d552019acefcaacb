package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/devserver"
)

// benchEnv is a server in this process, a client of it, and a folder for the store.
type benchEnv struct {
	*bench
	server   *devserver.Server
	temporal temporal.Client
	dir      string
	close    func()
}

// newBenchEnv starts a server; the caller must close it. Options may be nil.
func newBenchEnv(ctx context.Context, b *bench, o *devserver.Options) (_ *benchEnv, err error) {
	if o == nil {
		o = &devserver.Options{InMemory: b.data == "", DataDir: b.data}
	}
	s := &benchEnv{bench: b}
	if s.dir, err = os.MkdirTemp(storeBase(o), "fermata-bench"); err != nil {
		return nil, err
	}
	if s.server, err = devserver.Start(ctx, o); err == nil {
		s.temporal, err = dial(s.server.Addr(), nil)
	}
	s.close = func() {
		if s.temporal != nil {
			s.temporal.Close()
		}
		if s.server != nil {
			s.server.Stop()
		}
		_ = os.RemoveAll(s.dir) // the system cleans this folder, too
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// storeBase returns the folder in which the store's is made. The store is where the server's
// database is: in memory or on a disk. Otherwise our side alone would wait for the disk, several
// times at the beginning and the end of each run. It is empty, the system's folder for temporary
// files, where the system has no folder in memory.
func storeBase(o *devserver.Options) string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); o.InMemory && err == nil && info.IsDir() {
		return memory
	}
	return o.DataDir
}

// names numbers the names of queues and runs, which are used once.
var names atomic.Int64

func name(of string) string { return fmt.Sprintf("%s-%d-%d", of, os.Getpid(), names.Add(1)) }

// job returns what a worker process of the environment must do.
func (s *benchEnv) job(sides ...string) job {
	return job{Work: sides, Addr: s.server.Addr(), Queue: name("bench"), Dir: s.dir}
}

// lanes returns both runners of a job, the baseline's first.
func (s *benchEnv) lanes(j job) ([]runner, error) {
	ours, err := newFermataRunner(s.temporal, j)
	return []runner{&baselineRunner{s.temporal, j.queue(sideBaseline)}, ours}, err
}

// withBenchEnv calls do with an environment of its own, a worker process with a worker of
// each side, and the runners of both, the baseline's first. Options may be nil.
func withBenchEnv(ctx context.Context, b *bench, o *devserver.Options, do func(*benchEnv, *workerProcs, []runner) error) error {
	s, err := newBenchEnv(ctx, b, o)
	if err != nil {
		return err
	}
	defer s.close()
	j := s.job(sideBaseline, sideFermata)
	lanes, err := s.lanes(j)
	if err != nil {
		return err
	}
	c, err := startWorkers(ctx, j, 1)
	if err != nil {
		return err
	}
	defer c.shutDown()
	return do(s, c, lanes)
}

// play runs a plan from its start to its end.
func play(ctx context.Context, l runner, id string, p plan) error {
	if err := l.start(ctx, id, p); err != nil {
		return err
	}
	return l.awaitEnd(ctx, id)
}

// Processor time a turn: of the workers, and of workers, server and client together.
const (
	workerCPU = "CPU of the worker, a turn"
	allCPU    = "CPU of all, a turn"
)

// clocked calls do, which runs so many turns, and adds the processor time to its sample.
// These figures are valid even if the machine has other work.
func clocked(ctx context.Context, c *workerProcs, turns int, do func() (sample, error)) (sample, error) {
	before, err := c.usedCPU(ctx)
	if err != nil {
		return nil, err
	}
	own := spentCPU()
	m, err := do()
	if err != nil {
		return m, err
	}
	own = spentCPU() - own
	after, err := c.usedCPU(ctx)
	m[workerCPU], m[allCPU] = ms(after-before)/float64(turns), ms(after-before+own)/float64(turns)
	return m, err
}

// settled waits until the workers have called their models so often and nothing has begun
// or ended for a while. It waits as long as anything moves.
func settled(ctx context.Context, c *workerProcs, asks int) error {
	for {
		before, quiet, was := c.activityCount(), time.Now(), -1
		err := until(ctx, fmt.Sprintf("%d model calls and then rest", asks), func() (bool, error) {
			if moved := c.activityCount(); moved != was || c.activitiesInFlight() > 0 {
				quiet, was = time.Now(), moved
			}
			return c.asked() == asks && time.Since(quiet) > time.Second, c.fault()
		})
		if err == nil || ctx.Err() != nil || c.fault() != nil || c.activityCount() == before {
			return err
		}
	}
}

// each calls do n times, at most width at once, and returns all errors.
func each(n, width int, do func(i int) error) error {
	var wait sync.WaitGroup
	faults := make([]error, n)
	free := make(chan struct{}, width)
	for i := range n {
		free <- struct{}{}
		wait.Go(func() {
			faults[i] = do(i)
			<-free
		})
	}
	wait.Wait()
	return errors.Join(faults...)
}
