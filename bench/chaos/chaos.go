package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/store"
)

// options are the flags.
type options struct {
	seed            uint64
	lasts, patience time.Duration
	runs            int
	stories         int      // in all, in rounds; zero for a single round
	keepServer      bool     // the server is not disturbed
	alternate       bool     // two builds take turns
	builds          []string // the last one is the newest
	// storeFault, if set, wraps the store behind the proxy, for tests of the audit.
	storeFault func(store.Store) store.Store
	json       bool
	keep       string
	progress   io.Writer
}

// run plans, disturbs, waits until all runs are suspended or ended, and audits.
func (o *options) run(ctx context.Context) (*report, error) {
	p, r := newPlan(o), newReport(o)
	r.Stories, r.Builds = len(p.Stories), len(o.builds)
	dir, clean, err := o.folder(p)
	if err != nil {
		return nil, err
	}
	defer clean()
	s := &chaosEnv{options: o, report: r}
	defer s.close()
	if err := s.open(p, dir); err != nil {
		return nil, err
	}
	o.say("seed %d: %d stories, %d strikes and %d sayings in %s", o.seed, len(p.Stories), len(p.Disturbances), len(p.Commands), o.lasts)
	s.operators.follow(ctx)
	s.disturb(ctx)
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	o.say("at rest after %s; looking", r.Calmed)
	s.operators.unfollow(ctx)
	s.models.tell(r)
	s.writes.tell(r)
	return r, (&audit{operators: s.operators, place: s.at, store: s.store, builds: o.builds}).look(ctx)
}

// chaosEnv is all that a round needs.
type chaosEnv struct {
	*options
	report    *report
	at        place
	store     store.Store
	models    *standin
	writes    *proxy
	processes *processes
	operators *operators
	closes    []func()
}

func (s *chaosEnv) close() {
	for _, end := range slices.Backward(s.closes) {
		end()
	}
}

// open starts the servers and the processes.
func (s *chaosEnv) open(p *plan, dir string) (err error) {
	s.at = place{Dir: dir}
	if s.store, err = s.at.store(); err != nil {
		return err
	}
	s.models, s.writes = newStandin(p), newProxy(s.store, p)
	if s.storeFault != nil {
		s.writes.store = s.storeFault(s.store)
	}
	var stop func()
	if s.at.Model, stop, err = listen(s.models); err != nil {
		return err
	}
	s.closes = append(s.closes, stop)
	if s.at.Store, stop, err = listen(s.writes); err != nil {
		return err
	}
	s.closes = append(s.closes, stop)
	if s.at.Addr, err = freeAddr(); err != nil {
		return err
	}
	if err := s.at.desk().open(); err != nil {
		return err
	}
	if s.processes, err = open(s.at, s.builds, s.report); err != nil {
		return err
	}
	s.closes = append(s.closes, s.processes.close)
	s.writes.freezes(s.processes.freeze)
	if s.operators, err = newOperators(s.at, p, s.report); err != nil {
		return err
	}
	s.closes = append(s.closes, s.operators.temporal.Close)
	return nil
}

// rest ends the disturbances, waits until all runs are suspended or ended, and deletes
// sessions while writes have mishaps again. Then it releases all writes that were held back.
func (s *chaosEnv) rest(ctx context.Context) error {
	s.models.calm.Store(true)
	s.writes.calm.Store(true)
	s.say("calm")
	began := time.Now()
	s.processes.replaceEnded()
	s.processes.deploy()
	s.operators.settle(ctx, s.patience, s.processes.replaceEnded)
	s.writes.calm.Store(false)
	if err := s.operators.deleteSessions(ctx); err != nil {
		return err
	}
	// Late writes must not bring a deleted session back, so release them before the audit.
	s.writes.release()
	s.operators.settle(ctx, s.patience, s.processes.replaceEnded)
	s.report.calmed(time.Since(began))
	if err := s.operators.hold(ctx); err != nil {
		return err
	}
	return s.collect(ctx, s.store)
}

// collect removes chunks that no session needs. Nothing is written any more, so chunks of any age
// may go.
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

// folder creates the folder for everything, with the plan in it.
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

// disturb does what is planned, each thing at its time, until the time is over and all
// that began is done.
func (s *chaosEnv) disturb(ctx context.Context) {
	begun := time.Now()
	soon, cancel := context.WithTimeout(ctx, s.lasts)
	defer cancel()
	var all sync.WaitGroup
	at := func(t time.Duration, do func()) {
		all.Go(func() {
			if pause(ctx, t-time.Since(begun)) {
				do()
			}
		})
	}
	for _, one := range s.operators.plan.Stories {
		at(one.At, func() { s.operators.begin(ctx, one) })
	}
	for _, one := range s.operators.plan.Disturbances {
		at(one.At, func() { s.strike(soon, one) })
	}
	for _, one := range s.operators.plan.Commands {
		at(one.At, func() { s.operators.say(ctx, one) })
	}
	all.Wait()
}

// strike does one planned disturbance. It returns when everything is back.
func (s *chaosEnv) strike(ctx context.Context, one disturbance) {
	switch {
	case one.Kind != disturbStore:
		s.processes.disturb(ctx, one)
	case s.writes.hang():
		s.report.struck(one.Kind)
		pause(ctx, one.For)
		s.writes.wake()
	}
}
