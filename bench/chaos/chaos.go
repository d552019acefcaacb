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

	"github.com/fermata-agents/fermata/store"
)

// options are the flags.
type options struct {
	seed            uint64
	lasts, patience time.Duration
	runs            int
	stories         int      // in all, in rounds; zero for one round
	keepServer      bool     // the server is not struck
	alternate       bool     // two builds work in turns
	builds          []string // the newest is the last
	// careless is put between proxy and store, if there is any: for tests of the audit.
	careless func(store.Store) store.Store
	json     bool
	keep     string
	progress io.Writer
}

// run plans, disturbs, lets all come to rest, and looks.
func (o *options) run(ctx context.Context) (*report, error) {
	p, r := newPlan(o), newReport(o)
	r.Stories, r.Builds = len(p.Stories), len(o.builds)
	dir, clean, err := o.folder(p)
	if err != nil {
		return nil, err
	}
	defer clean()
	models := newStandin(p)
	url, stop, err := listen(models)
	if err != nil {
		return nil, err
	}
	defer stop()
	at := place{Dir: dir, Model: url + "/v1"}
	st, err := at.store()
	if err != nil {
		return nil, err
	}
	writes := newProxy(st, p)
	if o.careless != nil {
		writes.store = o.careless(st)
	}
	if at.Store, stop, err = listen(writes); err != nil {
		return nil, err
	}
	defer stop()
	if at.Addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if err := at.desk().open(); err != nil {
		return nil, err
	}
	h, err := open(at, o.builds, r)
	if err != nil {
		return nil, err
	}
	defer h.close()
	writes.freeze = h.freeze
	c, err := meet(at, p, r)
	if err != nil {
		return nil, err
	}
	defer c.temporal.Close()
	o.say("seed %d: %d stories, %d strikes and %d sayings in %s", o.seed, len(p.Stories), len(p.Strikes), len(p.Sayings), o.lasts)
	c.follow(ctx)
	o.disturb(ctx, h, c)
	models.calm.Store(true)
	writes.calm.Store(true)
	o.say("calm")
	began := time.Now()
	h.mend()
	h.deploy()
	c.settle(ctx, o.patience, h.mend)
	writes.calm.Store(false)
	if err := c.erase(ctx); err != nil {
		return nil, err
	}
	writes.release()
	c.settle(ctx, o.patience, h.mend)
	r.calmed(time.Since(began))
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	if err := o.collect(ctx, st); err != nil {
		return nil, err
	}
	o.say("at rest after %s; looking", r.Calmed)
	c.unfollow(ctx)
	models.tell(r)
	writes.tell(r)
	err = (&audit{crowd: c, place: at, desk: at.desk(), store: st, builds: o.builds}).look(ctx)
	return r, err
}

// collect removes the chunks that nobody needs. Nobody writes any more, so all that has
// no head that needs it may go, however young.
func (o *options) collect(ctx context.Context, st store.Store) error {
	done, err := store.NewLog(st).Collect(ctx, 0, false)
	if err == nil {
		o.say("collected %d of %d chunks", done.Deleted, done.Chunks)
	}
	return err
}

func (o *options) say(format string, args ...any) {
	if o.progress != nil {
		fmt.Fprintf(o.progress, format+"\n", args...)
	}
}

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
