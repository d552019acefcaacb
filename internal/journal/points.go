package journal

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// walk goes through a log run by run.
type walk struct {
	run  agent.Started
	turn int
	last agent.Checkpoint
	// begun tells that the run has had a turn.
	begun bool
}

// at takes an event and tells which points lie around it: before it, and behind it.
func (w *walk) at(e agent.Event) (before, behind bool) {
	switch {
	case e.Started != nil && e.Started.Anew():
		*w = walk{run: *e.Started}
	case e.Started != nil: // in the middle of the other's turn
		w.run = *e.Started
	case e.Type == agent.TurnStarted:
		before, w.begun = !w.begun, true
		w.turn = e.Turn
	case e.Type == agent.TurnEnded && e.Checkpoint != nil:
		behind, w.turn, w.last = true, e.Turn, *e.Checkpoint
	}
	return before, behind
}

func (w *walk) point(e agent.Event) agent.Point {
	return agent.Point{
		ID: agent.CheckpointID(e.Seq), Run: w.run.Run, Agent: name(w.run.Spec), Turn: e.Turn, Time: e.Time, Usage: w.last.Usage, Cost: w.last.Cost, Tools: w.last.Tools,
	}
}

func name(s *agent.Spec) string {
	if s == nil {
		return ""
	}
	return s.Name
}

// Points lists a log's checkpoints in their order: for each run the one before
// its first turn, and one for each turn. What has to be read from the
// conversation is filled in by [Fill].
func Points(v *store.View) (points []agent.Point) {
	var w walk
	events := v.Events()
	for i, e := range events {
		before, behind := w.at(e)
		switch {
		case before:
			points = append(points, w.point(events[i-1]))
		case behind:
			points = append(points, w.point(e))
		}
	}
	return points
}

// Find is the point with an id: one of [Points], the place before a run, or the
// session's beginning. Without one it is [agent.NotFound].
func Find(v *store.View, id string) (agent.Point, error) {
	seq, err := agent.CheckpointSeq(id)
	if err != nil {
		return agent.Point{}, err
	}
	if seq == 0 {
		return agent.Point{ID: id}, nil
	}
	var w walk
	events := v.UpTo(seq + 1).Events()
	for i, e := range events {
		old := w
		before, behind := w.at(e)
		switch {
		case behind && e.Seq == seq:
			return Fill(v, w.point(e)), nil
		case (before || e.Started != nil && e.Started.Anew() && i > 0) && e.Seq == seq+1:
			if !before {
				w = old
			}
			return Fill(v, w.point(events[i-1])), nil
		case e.Outcome != nil && e.Seq == seq: // behind the last run
			return Fill(v, w.point(e)), nil
		}
	}
	return agent.Point{}, agent.Errorf(agent.NotFound, "%s is no checkpoint of the session; see fermata checkpoints", id).At("checkpoint")
}

// Fill reads from the conversation what a point shows of it.
func Fill(v *store.View, p agent.Point) agent.Point {
	at := v.UpTo(p.Seq())
	entries := at.Entries()
	p.Messages = len(entries)
	for _, e := range slices.Backward(entries) {
		if e.Role == agent.RoleAssistant && p.Text == "" {
			p.Text = e.TextOf()
		}
		p.Compacted = p.Compacted || e.Note == agent.NoteSummary
	}
	p.Pending = pending(v, p)
	return p
}

// pending are the calls of the turn behind a point that have no result, where the
// log ends with them.
func pending(v *store.View, p agent.Point) (calls []agent.ToolCall) {
	for _, e := range v.Events()[len(v.UpTo(p.Seq()).Events()):] {
		switch {
		case e.Type == agent.TurnEnded || e.Outcome != nil:
			return nil
		case e.Message != nil:
			calls = append(calls, e.Message.ToolCalls()...)
		case e.Call != nil && e.Call.Status != "":
			calls = slices.DeleteFunc(calls, func(c agent.ToolCall) bool { return c.ID == e.Call.Call })
		}
	}
	return calls
}

// Asks tells whether the model has something to answer at a point.
func Asks(v *store.View, p agent.Point) bool {
	entries := v.UpTo(p.Seq()).Entries()
	return len(entries) > 0 && entries[len(entries)-1].Role != agent.RoleAssistant
}

// Last is the last point from which a run can go on: where the model has something
// to answer. It is what a retry begins from; without one it is [agent.NotFound].
func Last(v *store.View, run string) (agent.Point, error) {
	for _, p := range slices.Backward(Points(v)) {
		if p.Run == run && Asks(v, p) {
			return Fill(v, p), nil
		}
	}
	return agent.Point{}, agent.Errorf(agent.NotFound, "run %s has no checkpoint from which it could go on; start it anew", run).At("from.retry")
}

// First is the point before a run's first turn, and Before the one before the run
// itself: its input is not said there.
func First(v *store.View, run string) (agent.Point, error) {
	for _, p := range Points(v) {
		if p.Run == run {
			return Fill(v, p), nil
		}
	}
	return agent.Point{}, noRun(run)
}

// Before is the point before a run.
func Before(v *store.View, run string) (agent.Point, error) {
	for _, e := range v.Events() {
		if e.Started != nil && e.Started.Run == run {
			return Find(v, agent.CheckpointID(e.Seq-1))
		}
	}
	return agent.Point{}, noRun(run)
}

func noRun(run string) error {
	return agent.Errorf(agent.NotFound, "the session's log has no run %s that made a turn; see fermata runs", run).At("run")
}

// Unsaid is the point before the last thing that a person said before another
// point: what is said there stands in its place.
func Unsaid(v *store.View, p agent.Point) (agent.Point, error) {
	for _, e := range slices.Backward(v.UpTo(p.Seq()).Entries()) {
		if e.Role == agent.RoleUser && e.Note == "" {
			return before(v, e.Seq)
		}
	}
	return agent.Point{}, agent.Errorf(agent.NotFound, "nobody has said anything before %s", p.ID).At("checkpoint")
}

// before is the last point before an event.
func before(v *store.View, seq int64) (agent.Point, error) {
	for _, e := range slices.Backward(v.UpTo(seq - 1).Events()) {
		switch {
		case e.Forked != nil:
			return Find(v, e.Forked.Checkpoint)
		case e.Checkpoint != nil:
			return Find(v, agent.CheckpointID(e.Seq))
		case e.Started != nil && e.Started.Anew():
			return Find(v, agent.CheckpointID(e.Seq-1))
		}
	}
	return Find(v, agent.CheckpointID(0))
}
