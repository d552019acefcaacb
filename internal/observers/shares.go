package observers

import (
	"strings"

	"github.com/fermata-agents/fermata/observe"
)

// share is what waits of one top session: of its own events and of those of the sessions below it.
type share struct {
	events, bytes int
	// gaps are those of single runs.
	gaps int
	// lost is the gap of its runs that have none of their own; nil if no such event was lost since the
	// last event of the top session that was taken.
	lost *observe.Gap
	// wide counts the gaps of the whole top session that wait.
	wide int
	// full means that the queue takes none of its events until few of them wait.
	full bool
}

// topOf returns the top session of a session.
func topOf(session string) string {
	top, _, _ := strings.Cut(session, "/")
	return top
}

// shareOf returns the share of a session's top session, also if nothing of it waits. Then the caller adds
// something, or calls forget.
func (q *queue) shareOf(session string) *share {
	top := topOf(session)
	s := q.shares[top]
	if s == nil {
		s = &share{}
		q.shares[top] = s
	}
	return s
}

// forget removes the share of a session's top session if nothing of it waits.
func (q *queue) forget(session string) {
	top := topOf(session)
	if s := q.shares[top]; s != nil && s.events+s.gaps+s.wide == 0 {
		delete(q.shares, top)
	}
}

// refuses reports whether a top session has too much of the queue for one more event of a size: a quarter
// of it while at least half of it waits. So the other half is there for the others. It then has to come
// down to an eighth: otherwise it would have a gap behind each event.
func (q *queue) refuses(s *share, size int) bool {
	part, half := 4, q.events >= maxEvents/2 || q.bytes+size > maxBytes/2
	if s.full {
		part, half = 8, true
	}
	return half && (s.events >= maxEvents/part || s.bytes+size > maxBytes/part)
}

// gapFor returns a new gap for an event of a run, and adds it to the queue. One top session has at most a
// quarter of the gaps of single runs, and then one for all its runs. If there are too many of these too,
// the gap is of no session.
func (q *queue) gapFor(lost observe.Gap) *observe.Gap {
	s, top := q.shareOf(lost.Session), topOf(lost.Session)
	defer q.forget(lost.Session)
	switch {
	case lost.Run != "" && q.gaps < maxGaps && s.gaps < maxGaps/4:
		g := &observe.Gap{Session: lost.Session, Run: lost.Run, Agent: lost.Agent, From: lost.From, To: lost.To}
		q.open[run{lost.Session, lost.Run}] = g
		q.gaps, s.gaps = q.gaps+1, s.gaps+1
		q.push(item{gap: g})
		return g
	case s.lost != nil:
		return s.lost
	case top != "" && q.wide < maxGaps:
		s.lost = &observe.Gap{Session: top}
		q.wide, s.wide = q.wide+1, s.wide+1
		q.push(item{gap: s.lost})
		return s.lost
	case q.counted == nil:
		q.counted = &observe.Gap{}
		q.push(item{gap: q.counted})
	}
	return q.counted
}

// taken removes an item from what waits.
func (q *queue) taken(it item) {
	g := it.gap
	if g != nil && g.Session == "" {
		if g == q.counted {
			q.counted = nil
		}
		return
	}
	s := q.shareOf(it.session())
	switch {
	case g == nil:
		q.events, q.bytes = q.events-1, q.bytes-it.bytes
		s.events, s.bytes = s.events-1, s.bytes-it.bytes
	case g.Run == "":
		if q.wide, s.wide = q.wide-1, s.wide-1; s.lost == g {
			s.lost = nil
		}
	default:
		q.gaps, s.gaps = q.gaps-1, s.gaps-1
		if of := (run{g.Session, g.Run}); q.open[of] == g {
			delete(q.open, of)
		}
	}
	q.forget(it.session())
}
