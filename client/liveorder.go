package client

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// liveOrder puts live events where they belong among those of the log: behind the
// event that opens what they are a piece of, and never behind the one that says
// it as a whole. The zero value knows of nothing yet.
type liveOrder struct {
	run      string
	turn     int
	answered bool            // the turn's reply was told as a whole
	calls    map[string]bool // of the turn: whether they go on
	early    []live.Event
}

// maxEarly bounds what waits for its place.
const maxEarly = 1024

// add takes a live event; [liveOrder.due] gives it back in its time.
func (g *liveOrder) add(l live.Event) {
	if len(g.early) == maxEarly {
		g.early = g.early[1:]
	}
	g.early = append(g.early, l)
}

// seen heeds an event of the log.
func (g *liveOrder) seen(e agent.Event, run string) {
	if run != g.run || e.Turn > g.turn || e.Type == agent.EventTurnStarted {
		g.run, g.turn, g.answered, g.calls = run, e.Turn, false, map[string]bool{}
	}
	switch e.Type {
	case agent.EventMessage:
		g.answered = g.answered || e.Message.Role == agent.RoleAssistant
	case agent.EventModelRetried:
		g.answered = false
	case agent.EventCallStarted:
		g.calls[e.Call.Call] = true
	case agent.EventCallDone, agent.EventCallUnknown:
		g.calls[e.Call.Call] = false
	}
}

// due takes out what can be told now, in the order in which it came, and forgets
// what comes too late.
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
			list = append(list, l)
		}
	}
	g.early = rest
	return list
}

type place int

const (
	early place = iota // what it is a piece of was not opened yet
	fits
	late // what it is a piece of was told
)

func (g *liveOrder) place(l live.Event) place {
	going, begun := g.calls[l.Data.Call]
	switch {
	case l.Run != g.run || l.Turn > g.turn:
		return early
	case l.Turn < g.turn:
		return late
	case l.Type != agent.EventCallProgress && g.answered:
		return late
	case l.Type != agent.EventCallProgress:
		return fits
	case !begun:
		return early
	case going:
		return fits
	}
	return late
}
