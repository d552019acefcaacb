package render

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// maxRemarks is how many progress messages of a call wait until it has begun; older ones
// are dropped.
const maxRemarks = 100

// ProgressOrder puts progress of tools in its place: after the event that begins the
// call, and before the one that ends it. Live events often come earlier. The zero value
// is ready; nil shows nothing. One goroutine uses it.
type ProgressOrder struct {
	going map[string]bool // calls that began; false after their end
	early map[string][]live.Event
}

// Event takes an event of the log, and returns the progress that can be shown after it.
func (r *ProgressOrder) Event(e agent.Event) (due []live.Event) {
	if r == nil {
		return nil
	}
	switch e.Type {
	case agent.EventRunStarted:
		// A new run numbers its calls from the beginning.
		*r = ProgressOrder{}
	case agent.EventCallStarted:
		if r.going == nil {
			r.going = map[string]bool{}
		}
		r.going[e.Call.Call] = true
		due = r.early[e.Call.Call]
		delete(r.early, e.Call.Call)
	// Late progress of this call is dropped from now on.
	case agent.EventCallDone, agent.EventCallUnknown:
		if _, ok := r.going[e.Call.Call]; ok {
			r.going[e.Call.Call] = false
		}
		delete(r.early, e.Call.Call)
	}
	return due
}

// Live takes a live event. It returns progress that can be shown now, and nothing for
// other events.
func (r *ProgressOrder) Live(l live.Event) (due []live.Event) {
	if r == nil || l.Type != agent.EventCallProgress {
		return nil
	}
	going, known := r.going[l.Data.Call]
	switch {
	case going:
		return []live.Event{l}
	case !known:
		if r.early == nil {
			r.early = map[string][]live.Event{}
		}
		list := append(r.early[l.Data.Call], l)
		// The newest messages count.
		r.early[l.Data.Call] = list[max(0, len(list)-maxRemarks):]
	}
	return nil
}
