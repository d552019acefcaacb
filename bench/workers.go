package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// workerProcs are worker processes of one side, with what they report.
type workerProcs struct {
	procs []*proc

	mu      sync.Mutex
	ready   int
	lost    bool               // a process ended by itself
	leaving bool               // they were told to end
	running map[string]string  // activities in flight: their types
	ended   map[bool]time.Time // when the last one ended; true: model and tool calls only
	begun   map[string]int     // activities, by type
	tools   map[string]int     // tool calls, by key
	asks    map[string]asks    // model calls, by workflow
	memory  chan memory        // reports of what a process holds
	cpu     chan time.Duration // reports of processor time
}

// asks are the model calls of one run.
type asks struct {
	n           int
	first, last time.Time // when they began
}

type proc struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// isWork reports whether an activity does an agent's work, which an interrupt must stop.
// Other activities only store it.
func isWork(activity string) bool {
	return activity == bareActivity || activity == "fermata.tool" || isAsk(activity)
}

// isAsk reports whether an activity calls a model.
func isAsk(activity string) bool { return activity == "fermata.model" || activity == baselineModel }

// startWorkers starts worker processes and waits until they are ready.
func startWorkers(ctx context.Context, j job, n int) (*workerProcs, error) {
	c := &workerProcs{running: map[string]string{}, memory: make(chan memory, n), cpu: make(chan time.Duration, n)}
	c.forget()
	for i := range n {
		if err := c.start(ctx, j, i); err != nil {
			c.shutDown()
			return nil, err
		}
	}
	err := until(ctx, "workers to be ready", func() (bool, error) { return c.count(func() int { return c.ready }) == n, c.fault() })
	if err != nil {
		c.shutDown()
		return nil, err
	}
	return c, nil
}

func (c *workerProcs) start(ctx context.Context, j job, i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	arg, err := json.Marshal(j)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, workCommand, string(arg))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.procs = append(c.procs, &proc{cmd, in})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.heard(i, strings.Fields(lines.Text()))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lost = c.lost || !c.leaving
	}()
	return nil
}

// shutDown ends the processes.
func (c *workerProcs) shutDown() {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	for _, p := range c.procs {
		_ = p.in.Close()
	}
	for _, p := range c.procs {
		late := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait() // in whatever way, it is over
		late.Stop()
	}
}

// heard handles a line of a process.
func (c *workerProcs) heard(proc int, line []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := func() string { return fmt.Sprintf("%d.%s", proc, line[1]) }
	switch line[0] {
	case "ready":
		c.ready++
	case "begin":
		c.running[id()] = line[2]
		c.begun[line[2]]++
		if isAsk(line[2]) {
			a, at := c.asks[line[3]], instant(line[4])
			if a.n++; a.n == 1 {
				a.first = at
			}
			a.last = at
			c.asks[line[3]] = a
		}
	case "memory":
		c.memory <- readMemory(line[1:])
	case "cpu":
		ns, _ := strconv.ParseInt(line[1], 10, 64) // we wrote it
		c.cpu <- time.Duration(ns)
	case "end":
		at, what := instant(line[2]), c.running[id()]
		delete(c.running, id())
		for _, work := range []bool{false, isWork(what)} {
			if c.ended[work].Before(at) {
				c.ended[work] = at
			}
		}
	case "tool":
		c.tools[line[1]]++
	}
}

// instant parses a time that a recorder wrote.
func instant(ns string) time.Time {
	n, _ := strconv.ParseInt(ns, 10, 64) // we wrote it
	return time.Unix(0, n)
}

// forget starts a new repetition.
func (c *workerProcs) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.begun, c.tools, c.asks = map[bool]time.Time{}, map[string]int{}, map[string]int{}, map[string]asks{}
}

func (c *workerProcs) count(of func() int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return of()
}

// callsInFlight counts the model and tool calls in flight.
func (c *workerProcs) callsInFlight() int {
	return c.count(func() (n int) {
		for _, what := range c.running {
			if isWork(what) {
				n++
			}
		}
		return n
	})
}

// activitiesInFlight counts all activities in flight.
func (c *workerProcs) activitiesInFlight() int { return c.count(func() int { return len(c.running) }) }

// asked counts the model calls since the repetition started.
func (c *workerProcs) asked() int {
	return c.count(func() (n int) {
		for what, begun := range c.begun {
			if isAsk(what) {
				n += begun
			}
		}
		return n
	})
}

// activityCount counts the activities since the repetition started.
func (c *workerProcs) activityCount() int {
	return c.count(func() (n int) {
		for _, begun := range c.begun {
			n += begun
		}
		return n
	})
}

// calledBy returns a run's model calls, as soon as there are n. A process's reports may
// come later than the server's answers.
func (c *workerProcs) calledBy(ctx context.Context, id string, n int) (got asks, err error) {
	err = until(ctx, fmt.Sprintf("%d model calls of %s", n, id), func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		got = c.asks[id]
		return got.n >= n, nil
	})
	return got, err
}

// lastEnd returns when the last activity ended: of activities that do work, or of all.
func (c *workerProcs) lastEnd(work bool) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[work]
}

// calls returns the tool calls since the repetition started, by key.
func (c *workerProcs) calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.tools)
}

func (c *workerProcs) fault() error {
	if c.count(func() int { return map[bool]int{true: 1}[c.lost] }) > 0 {
		return errors.New("a worker process has ended")
	}
	return nil
}

// holds returns what the first process holds.
func (c *workerProcs) holds(ctx context.Context) (m memory, err error) {
	fmt.Fprintln(c.procs[0].in, "memory")
	select {
	case m = <-c.memory:
		return m, nil
	case <-ctx.Done():
		return m, ctx.Err()
	}
}

// usedCPU returns the processor time of the processes.
func (c *workerProcs) usedCPU(ctx context.Context) (sum time.Duration, err error) {
	for _, p := range c.procs {
		fmt.Fprintln(p.in, "cpu")
	}
	for range c.procs {
		select {
		case one := <-c.cpu:
			sum += one
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return sum, nil
}

// profile starts a CPU profile of every process, and returns what ends it.
func (c *workerProcs) profile(dir, name string) (stop func()) {
	for i, p := range c.procs {
		fmt.Fprintf(p.in, "profile %s\n", filepath.Join(dir, fmt.Sprintf("%s-%d.prof", name, i)))
	}
	return func() {
		for _, p := range c.procs {
			fmt.Fprintln(p.in, "done")
		}
	}
}

// patience is how long anything may take.
const patience = 5 * time.Minute

// until waits until a condition holds.
func until(ctx context.Context, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := is()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
