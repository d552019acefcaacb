package client

import (
	"cmp"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// liveOrder sorts live events among those of the log. A live event comes after the event
// that begins its turn or call, and never after the one that completes it. The zero value
// has seen nothing.
type liveOrder struct {
	run      string
	turn     int
	answered bool            // the log has the turn's complete reply
	next     int             // where the text that the reader has of the turn's reply ends; zero if it has none, or the log has it
	calls    map[string]bool // the turn's calls; true while a call runs
	early    []live.Event
}

// maxEarly is the most live events that wait for their place.
const maxEarly = 1024

// add takes a live event. due returns it when its place has come.
func (g *liveOrder) add(l live.Event) {
	if len(g.early) == maxEarly {
		g.early = g.early[1:]
	}
	g.early = append(g.early, l)
}

// seen records an event of the log.
func (g *liveOrder) seen(e agent.Event, run string) {
	if run != g.run || e.Turn > g.turn || e.Type == agent.EventTurnStarted {
		g.run, g.turn, g.answered, g.next, g.calls = run, e.Turn, false, 0, map[string]bool{}
	}
	switch e.Type {
	case agent.EventMessage:
		if e.Message.Role == agent.RoleAssistant {
			g.answered, g.next = true, 0
		}
	case agent.EventModelRetried:
		g.answered = false
	case agent.EventCallStarted:
		g.calls[e.Call.Call] = true
	case agent.EventCallDone, agent.EventCallUnknown:
		g.calls[e.Call.Call] = false
	}
}

// due returns the events whose place has come, in the order of their arrival. It drops
// those that come too late. A reset stands before a text that begins the reply again, even if
// the worker's own one was lost: else the reader would keep text that is void.
func (g *liveOrder) due() (list []live.Event) {
	if len(g.early) == 0 {
		return nil
	}
	var rest []live.Event
	for _, l := range g.early {
		switch g.place(l) {
		case early:
			rest = append(rest, l)
		case fits:
			if g.show(l) {
				reset := l
				reset.Type, reset.Data = agent.EventDeltaReset, live.Data{}
				list = append(list, reset)
			}
			list = append(list, l)
		}
	}
	g.early = rest
	return list
}

// show records that the reader gets a live event. It reports whether the event voids text that
// the reader has.
func (g *liveOrder) show(l live.Event) (voids bool) {
	switch l.Type {
	case agent.EventDeltaText:
		voids = l.Data.At > 0 && l.Data.At < g.next // not only at 1: the first piece may be lost with the reset
		g.next = cmp.Or(l.Data.At, max(g.next, 1)) + len(l.Data.Text)
	case agent.EventDeltaReset:
		g.next = 0
	}
	return voids
}

type place int

const (
	early place = iota // the event that begins it has not come yet
	fits
	late // the event that completes it has come
)

func (g *liveOrder) place(l live.Event) place {
	going, known := g.calls[l.Data.Call]
	switch {
	case l.Run != g.run || l.Turn > g.turn:
		return early
	case l.Turn < g.turn:
		return late
	case l.Type != agent.EventCallProgress && g.answered:
		return late
	case l.Type != agent.EventCallProgress:
		return fits
	case !known:
		return early
	case going:
		return fits
	}
	return late
}
