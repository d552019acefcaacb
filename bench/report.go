package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// millis are milliseconds.
type millis float64

func ms(d time.Duration) millis { return millis(d.Seconds() * 1000) }

func since(t time.Time) millis { return ms(time.Since(t)) }

func (m millis) String() string {
	if m < 10 {
		return fmt.Sprintf("%.1f", float64(m))
	}
	return fmt.Sprintf("%.0f", float64(m))
}

// sample is what one repetition measured, all but Planted since the call of the
// interrupt began.
type sample struct {
	// Planted is from the start of the root to the last node's first activity.
	Planted millis `json:"planted_ms"`
	// Heard is until the root said that it knew of the interrupt.
	Heard millis `json:"heard_ms"`
	// Root is until the root said that it was suspended, and Asked how often it was
	// asked.
	Root  millis `json:"root_ms"`
	Asked int    `json:"asked"`
	// Quiet is until the last model or tool call anywhere had ended.
	Quiet millis `json:"quiet_ms"`
	// Still is until the last activity of any kind had: ours store the transcripts.
	Still millis `json:"still_ms"`
}

func (s sample) String() string {
	return fmt.Sprintf("planted in %s ms, quiet after %s, heard %s, root suspended %s (asked %d times), books closed %s", s.Planted, s.Quiet, s.Heard, s.Root, s.Asked, s.Still)
}

// measure is a row of the table: what is measured of ours, and beside what of the
// bare tree. A bar is what the one may be of the other at most; zero for none.
type measure struct {
	name     string
	bar      float64
	of, bare func(sample) millis
}

func quiet(s sample) millis  { return s.Quiet }
func root(s sample) millis   { return s.Root }
func heard(s sample) millis  { return s.Heard }
func still(s sample) millis  { return s.Still }
func growth(s sample) millis { return s.Planted }

var measures = []measure{
	{"quiet", 0.2, quiet, quiet},
	{"root suspended, tree quiet", 1, root, quiet},
	{"root suspended", 0, root, root},
	{"root knows", 0, heard, heard},
	{"books closed", 0, still, still},
	{"planted", 0, growth, growth},
}

// cell is one size of tree with one number of worker processes.
type cell struct {
	Agents  int                 `json:"agents"`
	Workers int                 `json:"workers"`
	Samples map[string][]sample `json:"samples"` // by side
	Faults  []string            `json:"faults,omitempty"`
}

type report struct {
	CPUs  int     `json:"cpus"`
	Go    string  `json:"go"`
	Cells []*cell `json:"cells"`
}

func (r *report) add(agents, workers int) *cell {
	r.CPUs, r.Go = runtime.NumCPU(), runtime.Version()
	c := &cell{Agents: agents, Workers: workers, Samples: map[string][]sample{}}
	r.Cells = append(r.Cells, c)
	return c
}

// sorted are a side's samples of one measure.
func (c *cell) sorted(side string, of func(sample) millis) []millis {
	var list []millis
	for _, s := range c.Samples[side] {
		list = append(list, of(s))
	}
	slices.Sort(list)
	return list
}

// ratio is of the medians, ours to the bare tree's.
func (c *cell) ratio(m measure) float64 {
	return float64(median(c.sorted(sideOurs, m.of)) / median(c.sorted(sideBare, m.bare)))
}

func median(sorted []millis) millis {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func spread(sorted []millis) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", median(sorted), sorted[0], sorted[len(sorted)-1])
}

// show prints a table, or every sample.
func (r *report) show(out io.Writer, raw bool) error {
	if raw {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "agents\tworkers\tms\tbare\tfermata\tratio\tbar")
	for _, c := range r.Cells {
		for _, m := range measures {
			bar := ""
			if m.bar > 0 {
				bar = fmt.Sprintf("%.1f", m.bar)
			}
			fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%.2f\t%s\n", c.Agents, c.Workers, m.name, spread(c.sorted(sideBare, m.bare)), spread(c.sorted(sideOurs, m.of)), c.ratio(m), bar)
		}
	}
	return w.Flush()
}

// verdict is an error where something was wrong and, if asked for, where a bar
// was missed.
func (r *report) verdict(check bool) error {
	var faults []string
	for _, c := range r.Cells {
		where := fmt.Sprintf("%d agents, %d workers: ", c.Agents, c.Workers)
		for _, f := range c.Faults {
			faults = append(faults, where+f)
		}
		for _, m := range measures {
			if ratio := c.ratio(m); check && m.bar > 0 && ratio > m.bar {
				faults = append(faults, fmt.Sprintf("%s%s: %.2f of the bare tree's time, and at most %.1f is allowed", where, m.name, ratio, m.bar))
			}
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}

// wrong is what a tree did that it must not do: it is reported, and ends nothing.
type wrong struct{ error }

func fault(format string, args ...any) error { return &wrong{fmt.Errorf(format, args...)} }
