package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// benchmark is something to measure, with its name on the command line.
type benchmark struct {
	name, about string
	example     string // flags to show in the help
	reps        int    // default number of repetitions
	run         func(context.Context, *bench) error
}

// bench is a benchmark in progress.
type bench struct {
	*options
	*result
	reps int
}

// wants reports whether a cell is to be measured.
func (b *bench) wants(cell string) bool {
	b.cells = append(b.cells, cell)
	return b.only == nil || b.only.MatchString(cell)
}

// pick returns a benchmark's size: the usual one, or that of -quick.
func pick[T any](b *bench, usual, quick T) T {
	if b.quick {
		return quick
	}
	return usual
}

// sample is what one repetition of one side measured, by measure.
type sample map[string]float64

func (s sample) String() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%s %s", what, number(s[what])))
	}
	return strings.Join(parts, ", ")
}

// side is one of the compared sides.
type side struct {
	name string
	once func(ctx context.Context, rep int) (sample, error)
}

// taken are samples by side, in the order in which they were taken.
type taken map[string][]sample

// of returns the samples of one measure.
func (t taken) of(side, what string) []float64 {
	var list []float64
	for _, s := range t[side] {
		if v, ok := s[what]; ok {
			list = append(list, v)
		}
	}
	return list
}

// inTurns measures a cell in turns, A B B A, so that other work of the machine affects all
// sides, and none always follows the same other: a server still closes what the side before
// left. A wrong result in a repetition is recorded as a fault, and the benchmark
// continues.
func (b *bench) inTurns(ctx context.Context, cell string, sides ...side) (taken, error) {
	t := taken{}
	for rep := range b.reps {
		for i := range sides {
			one := sides[(i+rep)%len(sides)]
			once, cancel := context.WithTimeout(ctx, 4*patience)
			s, err := one.once(once, rep)
			cancel()
			// The sample still counts: the figure is real, and the report shows the
			// fault.
			if errors.As(err, new(*wrong)) {
				b.Faults = append(b.Faults, fmt.Sprintf("%s, %s, repetition %d: %v", cell, one.name, rep+1, err))
				err = nil
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %s, repetition %d: %w", cell, one.name, rep+1, err)
			}
			t[one.name] = append(t[one.name], s)
			fmt.Fprintf(b.progress, "%s: %s, %s %d: %s\n", b.Name, cell, one.name, rep+1, s)
		}
	}
	return t, nil
}

// compare is inTurns after a warm-up of each side.
func (b *bench) compare(ctx context.Context, cell string, sides ...side) (taken, error) {
	if err := warm(ctx, sides...); err != nil {
		return nil, err
	}
	return b.inTurns(ctx, cell, sides...)
}

// beside adds a row of ours beside the baseline's.
func (b *bench) beside(cell string, t taken, what, unit string, limit *target) {
	b.add(row{Cell: cell, What: what, Unit: unit, Ours: t.of(sideFermata, what), Beside: t.of(sideBaseline, what), Reference: sideBaseline, Target: limit})
}

// warm runs each side once without measuring: the first repetition would pay for
// connections, caches and code.
func warm(ctx context.Context, sides ...side) error {
	for _, one := range sides {
		if _, err := one.once(ctx, -1); err != nil {
			return fmt.Errorf("warming up %s: %w", one.name, err)
		}
	}
	return nil
}

// wrong is a wrong result of a side: it is reported, and does not end the benchmark.
type wrong struct{ error }

func fault(format string, args ...any) error { return &wrong{fmt.Errorf(format, args...)} }

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

func since(t time.Time) float64 { return ms(time.Since(t)) }
