package render

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// maxRemarks is how many remarks of a call are held until it has begun; the first go.
const maxRemarks = 100

// ProgressOrder puts the remarks that tools make in their place: after the event that begins
// the call, and before the one that ends it. They come live, and so often earlier. The
// zero Remarks is ready; nil tells none. It is used by one goroutine.
type ProgressOrder struct {
	going map[string]bool // calls that have begun; false when they have ended
	early map[string][]live.Event
}

// Event heeds an event of the log, and returns the remarks that can be told after it.
func (r *ProgressOrder) Event(e agent.Event) (due []live.Event) {
	if r == nil {
		return nil
	}
	switch e.Type {
	case agent.EventRunStarted:
		*r = ProgressOrder{}
	case agent.EventCallStarted:
		if r.going == nil {
			r.going = map[string]bool{}
		}
		r.going[e.Call.Call] = true
		due = r.early[e.Call.Call]
		delete(r.early, e.Call.Call)
	case agent.EventCallDone, agent.EventCallUnknown:
		if _, ok := r.going[e.Call.Call]; ok {
			r.going[e.Call.Call] = false
		}
		delete(r.early, e.Call.Call)
	}
	return due
}

// Live takes a remark, and returns it if it can be told now. Other pieces are none.
func (r *ProgressOrder) Live(l live.Event) (due []live.Event) {
	if r == nil || l.Type != agent.EventCallProgress {
		return nil
	}
	going, begun := r.going[l.Data.Call]
	switch {
	case going:
		return []live.Event{l}
	case !begun:
		if r.early == nil {
			r.early = map[string][]live.Event{}
		}
		list := append(r.early[l.Data.Call], l)
		r.early[l.Data.Call] = list[max(0, len(list)-maxRemarks):]
	}
	return nil
}
