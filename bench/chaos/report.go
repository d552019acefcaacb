package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// report is what was done, and what was found.
type report struct {
	Seed   uint64 `json:"seed"`
	For    string `json:"for"`
	CPUs   int    `json:"cpus"`
	Folder string `json:"folder,omitempty"` // where everything is kept

	Strikes map[blow]int  `json:"strikes"`
	Models  int           `json:"model_calls"`
	Faults  map[fault]int `json:"faults"`
	// Said counts what was said, by what became of it: accepted, already, moot, left
	// (as a signal), lost (nobody knows), or the code with which it was refused.
	Said map[string]map[string]int `json:"said"`
	// Sessions, Runs by their end, and Executions whose histories were replayed.
	Sessions   int            `json:"sessions"`
	Runs       map[string]int `json:"runs"`
	Executions int            `json:"executions"`
	Events     int            `json:"events"`
	Followed   int            `json:"followed"` // events that readers were told of as they came
	Messages   int            `json:"messages"` // that were looked for in the logs
	Unheard    int            `json:"unheard"`  // signals of which a status that is full may have shown no more
	Calls      map[string]int `json:"calls"`
	Effects    int            `json:"effects"` // in the journal
	Rest       []string       `json:"rest"`    // who is suspended at the end, and why
	Calmed     string         `json:"calmed"`  // how long it took to come to rest
	Findings   []string       `json:"findings"`

	mu sync.Mutex
}

func newReport(o *options) *report {
	return &report{
		Seed: o.seed, For: o.lasts.String(), CPUs: runtime.NumCPU(), Folder: o.keep, Strikes: map[blow]int{},
		Said: map[string]map[string]int{}, Runs: map[string]int{}, Calls: map[string]int{}, Findings: []string{},
	}
}

// find notes what must not be. The session and the run say where to look.
func (r *report) find(session, run, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if session != "" {
		line = "session " + session + ": " + line
	}
	if run != "" {
		line += " (run " + run + ")"
	}
	r.Findings = append(r.Findings, line)
}

func (r *report) struck(b blow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Strikes[b]++
}

func (r *report) said(verb, became string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Said[verb] == nil {
		r.Said[verb] = map[string]int{}
	}
	r.Said[verb][became]++
}

func (r *report) show(out io.Writer, raw bool) error {
	if raw {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	sum := 0
	for _, became := range r.Said {
		for _, n := range became {
			sum += n
		}
	}
	faults := maps.Clone(r.Faults)
	delete(faults, faultNone)
	fmt.Fprintf(out, "seed %d, disturbed for %s, at rest %s later\n", r.Seed, r.For, r.Calmed)
	fmt.Fprintf(out, "strikes: %s\n", counts(r.Strikes))
	fmt.Fprintf(out, "model calls: %d; faults: %s\n", r.Models, counts(faults))
	fmt.Fprintf(out, "said: %d\n", sum)
	for _, verb := range slices.Sorted(maps.Keys(r.Said)) {
		fmt.Fprintf(out, "  %s: %s\n", verb, counts(r.Said[verb]))
	}
	fmt.Fprintf(out, "sessions: %d; runs: %s; histories replayed: %d\n", r.Sessions, counts(r.Runs), r.Executions)
	fmt.Fprintf(out, "events: %d, of which %d were followed; messages and events looked for: %d, signals that may be shown no more: %d\n", r.Events, r.Followed, r.Messages, r.Unheard)
	fmt.Fprintf(out, "calls: %s; effects in the journal: %d\n", counts(r.Calls), r.Effects)
	for _, line := range r.Rest {
		fmt.Fprintln(out, "suspended:", line)
	}
	_, err := fmt.Fprintf(out, "findings: %d\n", len(r.Findings))
	return err
}

func counts[K ~string](m map[K]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(list, ", ")
}

// verdict is an error where anything was found.
func (r *report) verdict() error {
	if len(r.Findings) == 0 {
		return nil
	}
	return errors.New(fmt.Sprintf("%d findings with seed %d:\n", len(r.Findings), r.Seed) + strings.Join(r.Findings, "\n"))
}

func (r *report) calmed(d time.Duration) { r.Calmed = d.Round(100 * time.Millisecond).String() }
