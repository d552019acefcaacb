package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// serverEvery is how many rounds there are to each one in which the server is disturbed.
const serverEvery = 4

// rounds plays stories in rounds, each with a server and a seed of its own, and adds up
// the results. A round with a finding keeps its folder.
func (o *options) rounds(ctx context.Context) (*report, error) {
	sum := newReport(o)
	sum.Builds = len(o.builds)
	if o.keep != "" {
		if err := os.MkdirAll(o.keep, 0o700); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for i := 0; sum.Stories < o.stories; i++ {
		one := *o
		one.seed = o.seed + uint64(i)
		one.keepServer = o.keepServer || i%serverEvery != serverEvery-1
		one.runs = min(o.runs, o.stories-sum.Stories)
		r, err := one.round(ctx)
		if err == nil {
			sum.add(r)
			o.say("%s: %d of %d stories; seed %d: %d stories, %d of %d writes with a mishap, at rest after %s, %d histories, findings: %d",
				time.Since(began).Round(time.Second), sum.Stories, o.stories, one.seed, r.Stories, total(r.Mishaps), r.Writes, r.Calmed, r.Executions, r.found())
			for _, line := range r.Findings {
				o.say("  %s", line)
			}
		}
		switch {
		case ctx.Err() != nil:
			return sum, ctx.Err()
		case err != nil: // the other rounds are played anyway
			sum.Stories += one.runs
			sum.find(wrong, "", "", "%s, kept in %s: it could not be played: %v", one.again(), one.keep, err)
			o.say("  %s", sum.Findings[len(sum.Findings)-1])
		}
	}
	sum.calmed(time.Since(began))
	return sum, nil
}

// round plays one round, and keeps its folder if anything was found.
func (o *options) round(ctx context.Context) (*report, error) {
	dir, err := os.MkdirTemp(o.keep, "fermata-chaos")
	if err != nil {
		return nil, err
	}
	o.keep, o.progress = filepath.Join(dir, "round"), nil
	r, err := o.run(ctx)
	if err == nil && len(r.Findings) == 0 {
		return r, os.RemoveAll(dir)
	}
	if err == nil {
		r.Findings = append([]string{fmt.Sprintf("seed %d, kept in %s; again: %s", o.seed, o.keep, o.again())}, r.Findings...)
	}
	return r, err
}

// again returns the command that repeats a round.
func (o *options) again() string {
	s := fmt.Sprintf("go run ./bench/chaos -seed %d -runs %d -for %s", o.seed, o.runs, o.lasts)
	if o.keepServer {
		s += " -keep-server"
	}
	if o.alternate {
		s += " -alternate"
	}
	return s
}

func total[K comparable](m map[K]int) (n int) {
	for _, one := range m {
		n += one
	}
	return n
}
