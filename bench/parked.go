package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-agents/fermata/devserver"
)

var parkedBench = benchmark{
	name: "parked", about: "10, 1,000 and 10,000 runs that wait: memory of worker and server, storage; all of them woken at once",
	example: "-only '^1,000 runs'", reps: 1, run: parked,
}

// What a parked run holds, and how quickly all of them wake.
const (
	workerHeap       = "worker's heap, a run"
	workerGoroutines = "worker's goroutines, a run"
	serverHeap       = "server's heap, a run"
	storageBytes     = "storage, a run"
	parkRate         = "parked"
	wakeRate         = "woken, to the end"
)

// uncached is the size of a cache in which practically no run stays.
const uncached = 5

func parked(ctx context.Context, b *bench) error {
	for _, n := range pick(b, []int{10, 1000, 10000}, []int{10, 50}) {
		for _, cache := range []int{0, uncached} {
			cell := fmt.Sprintf("%s runs, %s", number(float64(n)), map[int]string{0: "in the cache", uncached: "out of the cache"}[cache])
			if n > 1000 && cache == 0 || !b.wants(cell) { // nobody has a cache of so many
				continue
			}
			var sides []side
			for _, name := range []string{sideBaseline, sideFermata} {
				sides = append(sides, side{name, func(ctx context.Context, _ int) (sample, error) { return b.park(ctx, name, n, cache) }})
			}
			t, err := b.inTurns(ctx, cell, sides...)
			if err != nil {
				return err
			}
			b.addParked(cell, t, cache > 0 && n >= 1000)
		}
	}
	return nil
}

func (b *bench) addParked(cell string, t taken, bars bool) {
	for _, one := range []struct {
		what, unit string
		bar        *target
	}{
		{workerHeap, "bytes", within(500)}, {workerGoroutines, "", within(0.01)},
		{serverHeap, "bytes", nil}, {storageBytes, "bytes", nil}, {parkRate, "runs/s", nil}, {wakeRate, "runs/s", nil},
	} {
		if !bars {
			one.bar = nil
		}
		b.beside(cell, t, one.what, one.unit, one.bar)
	}
}

// park parks runs of one side on a server of their own, with data in files. It measures
// what they hold, and wakes them.
func (b *bench) park(ctx context.Context, who string, n, cache int) (_ sample, err error) {
	data, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(data)
	s, err := newBenchEnv(ctx, b, &devserver.Options{DataDir: data})
	if err != nil {
		return nil, err
	}
	defer s.close()
	j := s.job(who)
	j.Cache = cache
	lanes, err := s.lanes(j)
	if err != nil {
		return nil, err
	}
	l := lanes[map[string]int{sideBaseline: 0, sideFermata: 1}[who]]
	c, err := startWorkers(ctx, j, 1)
	if err != nil {
		return nil, err
	}
	defer c.shutDown()
	// The first runs also create what later runs share: connections, pools, code.
	for range 2 * uncached {
		if err := play(ctx, l, name("warm"), plan{}); err != nil {
			return nil, err
		}
	}
	c.forget()
	before, err := s.holds(ctx, c, data)
	if err != nil {
		return nil, err
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = name("parked")
	}
	took, err := s.all(ctx, c, n, func(i int) error { return l.start(ctx, ids[i], plan{Size: 1 << 10, Rests: 1}) })
	if err != nil {
		return nil, err
	}
	after, err := s.holds(ctx, c, data)
	if err != nil {
		return nil, err
	}
	m := after.less(before, n)
	m[parkRate] = float64(n) / took
	c.forget()
	if took, err = s.all(ctx, c, n, func(i int) error { return l.resume(ctx, ids[i]) }); err != nil {
		return nil, err
	}
	m[wakeRate] = float64(n) / took
	return m, each(n, parallelRuns, func(i int) error { return l.awaitEnd(ctx, ids[i]) })
}

// parallelRuns is how many calls a client makes at once.
const parallelRuns = 64

// all calls do for each run, and waits until each has called its model and all is quiet.
// It returns the seconds without the quiet time.
func (s *benchEnv) all(ctx context.Context, c *workerProcs, n int, do func(i int) error) (seconds float64, err error) {
	began := time.Now()
	if err := each(n, parallelRuns, do); err != nil {
		return 0, err
	}
	if err := settled(ctx, c, n); err != nil {
		return 0, err
	}
	return c.lastEnd(false).Sub(began).Seconds(), nil
}

// holding is what a worker process, the server and the disk hold.
type holding struct {
	worker, server memory
	stored         int64
}

func (s *benchEnv) holds(ctx context.Context, c *workerProcs, data string) (h holding, err error) {
	if h.worker, err = c.holds(ctx); err != nil {
		return h, err
	}
	h.server = held()
	for _, dir := range []string{data, s.dir} {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				h.stored += info.Size()
			}
			return err
		})
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

// less returns what was added since an earlier measurement, for each of n runs.
func (h holding) less(was holding, n int) sample {
	each := func(now, was float64) float64 { return (now - was) / float64(n) }
	return sample{
		workerHeap:       each(float64(h.worker.Heap), float64(was.worker.Heap)),
		workerGoroutines: each(float64(h.worker.Goroutines), float64(was.worker.Goroutines)),
		serverHeap:       each(float64(h.server.Heap), float64(was.server.Heap)),
		storageBytes:     each(float64(h.stored), float64(was.stored)),
	}
}
