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

// report is what was done and found.
type report struct {
	Seed   uint64 `json:"seed"`
	For    string `json:"for"`
	CPUs   int    `json:"cpus"`
	Folder string `json:"folder,omitempty"` // where everything is kept

	Stories int                     `json:"stories"`
	Builds  int                     `json:"builds"`  // builds that took turns
	Newer   int                     `json:"newer"`   // executions that pinned the newer build's revision
	Strikes map[disturbanceKind]int `json:"strikes"` // of processes and the store
	// Writes went to the store, some with a mishap. Late counts those that were stored
	// after their successors, by the store's answer: made, or the code of its refusal.
	Writes  int            `json:"writes"`
	Mishaps map[mishap]int `json:"mishaps"`
	Late    map[string]int `json:"late"`
	Models  int            `json:"model_calls"`
	Faults  map[fault]int  `json:"faults"`
	// Said counts verbs by their result: accepted, already, run_ended, left (as a
	// signal), lost (unknown), or the code of the refusal.
	Said map[string]map[string]int `json:"said"`
	// Sessions, Runs by their end, and Executions whose histories were replayed.
	Sessions   int            `json:"sessions"`
	Deleted    int            `json:"deleted"` // sessions
	Runs       map[string]int `json:"runs"`
	Executions int            `json:"executions"`
	Events     int            `json:"events"`
	Followed   int            `json:"followed"` // events that readers got as they came
	Messages   int            `json:"messages"` // messages that were looked for in the logs
	Unheard    int            `json:"unheard"`  // signals that a full status may no longer show
	Calls      map[string]int `json:"calls"`
	Steps      int            `json:"steps"`   // calls that are steps of a flow
	Effects    int            `json:"effects"` // in the journal
	Rest       []string       `json:"rest"`    // who is suspended at the end, and why
	Calmed     string         `json:"calmed"`  // how long it took to come to rest
	Harms      map[harm]int   `json:"harms"`   // findings by kind
	Findings   []string       `json:"findings"`

	mu sync.Mutex
}

// harm is a kind of finding.
type harm string

const (
	lost       harm = "lost"         // something promised is missing
	doubled    harm = "doubled"      // something exists twice
	unreplayed harm = "not replayed" // a history
	wrong      harm = "wrong"        // everything else
)

func newReport(o *options) *report {
	return &report{
		Seed: o.seed, For: o.lasts.String(), CPUs: runtime.NumCPU(), Folder: o.keep, Strikes: map[disturbanceKind]int{},
		Mishaps: map[mishap]int{}, Late: map[string]int{}, Faults: map[fault]int{},
		Said: map[string]map[string]int{}, Runs: map[string]int{}, Calls: map[string]int{}, Harms: map[harm]int{}, Findings: []string{},
	}
}

// find records what must not be. The session and the run say where to look.
func (r *report) find(h harm, session, run, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if session != "" {
		line = "session " + session + ": " + line
	}
	if run != "" {
		line += " (run " + run + ")"
	}
	r.Harms[h]++
	r.Findings = append(r.Findings, string(h)+": "+line)
}

func (r *report) struck(b disturbanceKind) {
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

// add adds another round's numbers and findings.
func (r *report) add(o *report) {
	for _, n := range []struct{ to, from *int }{
		{&r.Stories, &o.Stories}, {&r.Newer, &o.Newer}, {&r.Writes, &o.Writes}, {&r.Models, &o.Models}, {&r.Sessions, &o.Sessions},
		{&r.Deleted, &o.Deleted}, {&r.Executions, &o.Executions}, {&r.Events, &o.Events}, {&r.Followed, &o.Followed},
		{&r.Messages, &o.Messages}, {&r.Unheard, &o.Unheard}, {&r.Effects, &o.Effects}, {&r.Steps, &o.Steps},
	} {
		*n.to += *n.from
	}
	addTo(r.Strikes, o.Strikes)
	addTo(r.Mishaps, o.Mishaps)
	addTo(r.Late, o.Late)
	addTo(r.Faults, o.Faults)
	addTo(r.Runs, o.Runs)
	addTo(r.Calls, o.Calls)
	addTo(r.Harms, o.Harms)
	for verb, became := range o.Said {
		if r.Said[verb] == nil {
			r.Said[verb] = map[string]int{}
		}
		addTo(r.Said[verb], became)
	}
	r.Rest = append(r.Rest, o.Rest...)
	r.Findings = append(r.Findings, o.Findings...)
}

func addTo[K comparable](m, more map[K]int) {
	for k, n := range more {
		m[k] += n
	}
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
	fmt.Fprintf(out, "stories: %d; builds: %d, executions of the newer: %d\n", r.Stories, r.Builds, r.Newer)
	fmt.Fprintf(out, "strikes: %s\n", counts(r.Strikes))
	fmt.Fprintf(out, "writes: %d; %s\n", r.Writes, counts(r.Mishaps))
	fmt.Fprintf(out, "late writes: %s\n", counts(r.Late))
	fmt.Fprintf(out, "model calls: %d; faults: %s\n", r.Models, counts(faults))
	fmt.Fprintf(out, "said: %d\n", sum)
	for _, verb := range slices.Sorted(maps.Keys(r.Said)) {
		fmt.Fprintf(out, "  %s: %s\n", verb, counts(r.Said[verb]))
	}
	fmt.Fprintf(out, "sessions: %d, deleted: %d; runs: %s; histories replayed: %d\n", r.Sessions, r.Deleted, counts(r.Runs), r.Executions)
	fmt.Fprintf(out, "events: %d, of which %d were followed; messages and events looked for: %d, signals that may be shown no more: %d\n", r.Events, r.Followed, r.Messages, r.Unheard)
	fmt.Fprintf(out, "calls: %s; steps of flows: %d; effects in the journal: %d\n", counts(r.Calls), r.Steps, r.Effects)
	for _, line := range r.Rest {
		fmt.Fprintln(out, "suspended:", line)
	}
	_, err := fmt.Fprintf(out, "lost: %d; doubled: %d; histories that do not replay: %d\nfindings: %d\n", r.Harms[lost], r.Harms[doubled], r.Harms[unreplayed], r.found())
	return err
}

func counts[K ~string](m map[K]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(list, ", ")
}

// found returns the number of findings. Findings also has lines that say where.
func (r *report) found() int { return total(r.Harms) }

// verdict returns an error if anything was found.
func (r *report) verdict() error {
	if len(r.Findings) == 0 {
		return nil
	}
	return errors.New(fmt.Sprintf("%d findings with seed %d:\n", r.found(), r.Seed) + strings.Join(r.Findings, "\n"))
}

func (r *report) calmed(d time.Duration) { r.Calmed = d.Round(100 * time.Millisecond).String() }
