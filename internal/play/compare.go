package play

import (
	"context"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Difference is how the steps that a function asks for differ from those that a run's log has.
type Difference struct {
	// Anew are paths that the function asks for where the run has not asked for them.
	Anew []string
	// Left are paths of steps that the run has asked for, and that the function does not.
	Left []string
	// Err is what the function fails with; nil if it does not.
	Err error
}

// Compare runs a function on the log of an open run, up to the last time that a function was asked
// and answered. events are what the log's last run builds on. most is how many steps may be open at
// once, and within how long the function may take for an answer.
func Compare(ctx context.Context, f Function, events []agent.Event, most int, within time.Duration) Difference {
	own, asking := lastAsking(events)
	if asking < 0 {
		return Difference{}
	}
	var j Journal
	j.Read(events[:asking+1])
	if j.Input == nil { // an imported run continues a turn of another one
		return Difference{}
	}
	p := Start(f, j.Input, j.Began).WithFiles(j.Files)
	defer p.Close()
	p.visited = map[string]bool{}
	if err := p.Run(ctx, within, j.Take()); err != nil {
		return Difference{Err: err}
	}
	asked := askedBy(events[own:])
	d := Difference{Left: slices.DeleteFunc(slices.Clone(asked), func(path string) bool { return p.visited[path] })}
	for _, s := range p.Steps() {
		if most--; most < 0 { // the run asks for it when others have ended
			break
		}
		if !slices.Contains(asked, s.ProviderID) {
			d.Anew = append(d.Anew, s.ProviderID)
		}
	}
	_, _, d.Err = p.Done()
	return d
}

// lastAsking returns where the log's last run begins, and where the last asking that was answered
// does; -1 if there is none.
func lastAsking(events []agent.Event) (own, asking int) {
	asking = -1
	answered := false
	for i, e := range slices.Backward(events) {
		switch {
		case e.Type == agent.EventTurnEnded:
			answered = true
		case e.Type == agent.EventTurnStarted && answered && asking < 0:
			asking = i
		case e.Started != nil && e.Started.HasFirstTurn():
			return i, asking
		}
	}
	return 0, asking
}

// askedBy returns the paths of the steps that a run has asked for. A step that was not made does
// not count: it is asked for again.
func askedBy(events []agent.Event) (paths []string) {
	asked := map[string]bool{}
	for _, e := range events {
		if e.Call == nil || e.Call.Step == "" {
			continue
		}
		if _, again := asked[e.Call.Step]; !again {
			paths = append(paths, e.Call.Step)
		}
		asked[e.Call.Step] = e.Call.Status != agent.CallSkipped
	}
	return slices.DeleteFunc(paths, func(path string) bool { return !asked[path] })
}
