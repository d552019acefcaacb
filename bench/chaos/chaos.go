package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
)

// options are the flags.
type options struct {
	seed            uint64
	lasts, patience time.Duration
	runs            int
	json            bool
	keep            string
	progress        io.Writer
}

// run plans, disturbs, lets all come to rest, and looks.
func (o *options) run(ctx context.Context) (*report, error) {
	p, r := newPlan(o.seed, o.runs, o.lasts), newReport(o)
	dir, clean, err := o.folder(p)
	if err != nil {
		return nil, err
	}
	defer clean()
	models := newStandin(p)
	url, stop, err := models.listen()
	if err != nil {
		return nil, err
	}
	defer stop()
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	at := place{Dir: dir, Addr: addr, Model: url}
	if err := at.desk().open(); err != nil {
		return nil, err
	}
	h, err := open(at, r)
	if err != nil {
		return nil, err
	}
	defer h.close()
	c, err := meet(at, p, r)
	if err != nil {
		return nil, err
	}
	defer c.temporal.Close()
	o.say("seed %d: %d stories, %d strikes and %d sayings in %s", o.seed, len(p.Stories), len(p.Strikes), len(p.Sayings), o.lasts)
	c.follow(ctx)
	o.disturb(ctx, h, c)
	models.calm.Store(true)
	o.say("calm")
	began := time.Now()
	h.mend()
	c.settle(ctx, o.patience, h.mend)
	r.calmed(time.Since(began))
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	o.say("at rest after %s; looking", r.Calmed)
	c.unfollow(ctx)
	r.Models, r.Faults = models.calls, models.faults
	logger := zap.NewNop()
	opts, err := at.options(logger)
	if err != nil {
		return nil, err
	}
	err = (&audit{crowd: c, desk: at.desk(), store: opts.Store, worker: opts}).look(ctx)
	return r, err
}

func (o *options) say(format string, args ...any) { fmt.Fprintf(o.progress, format+"\n", args...) }

// folder makes the folder of everything, with the plan in it.
func (o *options) folder(p *plan) (dir string, clean func(), err error) {
	dir, clean = o.keep, func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fermata-chaos"); err != nil {
			return "", nil, err
		}
		clean = func() { _ = os.RemoveAll(dir) }
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", nil, err
	}
	return dir, clean, os.WriteFile(filepath.Join(dir, "plan.json"), b, 0o600)
}

// disturb does what is planned, each thing at its time, until the time is over and
// all that was begun is done.
func (o *options) disturb(ctx context.Context, h *house, c *crowd) {
	begun := time.Now()
	soon, cancel := context.WithTimeout(ctx, o.lasts)
	defer cancel()
	var all sync.WaitGroup
	at := func(t time.Duration, do func()) {
		all.Go(func() {
			if pause(ctx, t-time.Since(begun)) {
				do()
			}
		})
	}
	for _, s := range c.plan.Stories {
		at(s.At, func() { c.begin(ctx, s) })
	}
	for _, s := range c.plan.Strikes {
		at(s.At, func() { h.strike(soon, s) })
	}
	for _, s := range c.plan.Sayings {
		at(s.At, func() { c.say(ctx, s) })
	}
	all.Wait()
}
