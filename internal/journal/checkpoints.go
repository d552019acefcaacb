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
	last agent.TurnSnapshot
	// begun means that the run has had a turn.
	begun bool
	// tools has the tool counts at each checkpoint, for runs that fork there.
	tools map[int64][]agent.ToolCount
}

// at takes the next event. It reports whether a checkpoint lies before the event, and
// whether one lies behind it.
func (w *walk) at(e agent.Event) (before, behind bool) {
	switch {
	case e.Started != nil && e.Started.HasFirstTurn():
		*w = walk{run: *e.Started, tools: w.tools}
	case e.Started != nil: // an imported run, which begins within the turn of the other
		w.run = *e.Started
	case e.Forked != nil:
		w.last.Tools = w.tools[e.Forked.At()]
	case e.Type == agent.EventTurnStarted:
		before, w.begun = !w.begun, true
		w.turn = e.Turn
	case e.Type == agent.EventTurnEnded && e.Snapshot != nil:
		behind, w.turn, w.last = true, e.Turn, *e.Snapshot
		if w.tools == nil {
			w.tools = map[int64][]agent.ToolCount{}
		}
		w.tools[e.Seq] = e.Snapshot.Tools
	}
	return before, behind
}

func (w *walk) checkpoint(session string, e agent.Event) agent.Checkpoint {
	return agent.Checkpoint{
		ID: agent.CheckpointID(session, e.Seq), Run: w.run.Run, Agent: name(w.run.Spec), Turn: e.Turn, Time: e.Time, Usage: w.last.Usage, Cost: w.last.Cost, Tools: w.last.Tools,
	}
}

func name(s *agent.Spec) string {
	if s == nil {
		return ""
	}
	return s.Name
}

// Checkpoints returns the checkpoints of a session's log in their order: for each run the
// one before its first turn, and one for each turn. [Fill] adds what has to be read from
// the conversation.
func Checkpoints(v *store.View, session string) (points []agent.Checkpoint) {
	var w walk
	events := v.Events()
	for i, e := range events {
		before, behind := w.at(e)
		switch {
		case before:
			points = append(points, w.checkpoint(session, events[i-1]))
		case behind:
			points = append(points, w.checkpoint(session, e))
		}
	}
	return points
}

// Find returns the checkpoint with an id: one of [Checkpoints], the place before a run,
// or the session's beginning. If the session has none with this id, the error is
// [agent.CodeNotFound].
func Find(v *store.View, session, id string) (agent.Checkpoint, error) {
	seq, err := agent.CheckpointSeq(session, id)
	if err != nil {
		return agent.Checkpoint{}, err
	}
	return checkpointAt(v, session, seq)
}

// checkpointAt returns the checkpoint after an event.
func checkpointAt(v *store.View, session string, seq int64) (agent.Checkpoint, error) {
	id := agent.CheckpointID(session, seq)
	if seq == 0 {
		return agent.Checkpoint{ID: id}, nil
	}
	var w walk
	// One event further: a checkpoint before a run is known only by the event that
	// follows.
	events := v.UpTo(seq + 1).Events()
	for i, e := range events {
		old := w
		before, behind := w.at(e)
		switch {
		case behind && e.Seq == seq:
			return Fill(v, w.checkpoint(session, e)), nil
		case (before || e.Started != nil && e.Started.HasFirstTurn() && i > 0) && e.Seq == seq+1:
			if !before {
				w = old
			}
			return Fill(v, w.checkpoint(session, events[i-1])), nil
		case e.Outcome != nil && e.Seq == seq: // after the last run
			return Fill(v, w.checkpoint(session, e)), nil
		}
	}
	return agent.Checkpoint{}, agent.Errorf(agent.CodeNotFound, "%s is no checkpoint of the session; see fermata checkpoints %s", id, session).WithPath("checkpoint")
}

// Fill adds to a checkpoint what is read from the conversation.
func Fill(v *store.View, p agent.Checkpoint) agent.Checkpoint {
	at := v.UpTo(p.Seq())
	entries := at.Entries()
	p.Messages = len(entries)
	for _, e := range slices.Backward(entries) {
		if e.Role == agent.RoleAssistant && p.Text == "" {
			p.Text = e.Text()
		}
		p.Compacted = p.Compacted || e.Note == agent.NoteSummary
	}
	p.Pending = pending(v, p)
	return p
}

// pending returns the calls of the turn after a checkpoint that have no result, if the
// log ends within that turn.
func pending(v *store.View, p agent.Checkpoint) (calls []agent.ToolCall) {
	for _, e := range v.Events()[len(v.UpTo(p.Seq()).Events()):] {
		switch {
		case e.Type == agent.EventTurnEnded || e.Outcome != nil:
			return nil
		case e.Message != nil:
			calls = append(calls, e.Message.ToolCalls()...)
		case e.Call != nil && e.Call.Status != "":
			calls = slices.DeleteFunc(calls, func(c agent.ToolCall) bool { return c.ID == e.Call.Call })
		}
	}
	return calls
}

// NeedsReply reports whether the model has something to answer at a checkpoint. A flow's
// function can always be asked again.
func NeedsReply(v *store.View, p agent.Checkpoint) bool {
	at := v.UpTo(p.Seq())
	if IsFlow(at) {
		return true
	}
	entries := at.Entries()
	return len(entries) > 0 && entries[len(entries)-1].Role != agent.RoleAssistant
}

// Last returns the last checkpoint of a run at which the model has something to answer. A
// retry begins there. If there is none the error is [agent.CodeNotFound].
func Last(v *store.View, session, run string) (agent.Checkpoint, error) {
	// First: an earlier checkpoint would lose the message that arrived after the last turn.
	if p, ok := behindEnd(v, session, run); ok {
		return p, nil
	}
	for _, p := range slices.Backward(Checkpoints(v, session)) {
		if p.Run == run && NeedsReply(v, p) {
			return Fill(v, p), nil
		}
	}
	return agent.Checkpoint{}, agent.Errorf(agent.CodeNotFound, "run %s has no checkpoint to continue from; start a new run", run).WithPath("from.retry")
}

// behindEnd returns the checkpoint at a run's end, if a message arrived after its last
// turn. The run accepted the message, so it has to be answered.
func behindEnd(v *store.View, session, run string) (agent.Checkpoint, bool) {
	end := int64(0)
	for _, e := range slices.Backward(v.Events()) {
		switch {
		case e.Outcome != nil && e.Outcome.Run == run:
			end = e.Seq
		case end > 0 && e.Message != nil:
			p, err := checkpointAt(v, session, end)
			return p, err == nil && NeedsReply(v, p)
		case end > 0 && e.Snapshot != nil:
			return agent.Checkpoint{}, false
		}
	}
	return agent.Checkpoint{}, false
}

// First returns the checkpoint before a run's first turn. Its input is part of the
// conversation there; see [Before].
func First(v *store.View, session, run string) (agent.Checkpoint, error) {
	for _, p := range Checkpoints(v, session) {
		if p.Run == run {
			return Fill(v, p), nil
		}
	}
	return agent.Checkpoint{}, noRun(run)
}

// Before returns the checkpoint before a run, without the run's input.
func Before(v *store.View, session, run string) (agent.Checkpoint, error) {
	for i, e := range v.Events() {
		if e.Started != nil && e.Started.Run == run {
			return origin(v, session, i)
		}
	}
	return agent.Checkpoint{}, noRun(run)
}

// origin returns the checkpoint at which a run began. i is the index of its Started
// event.
func origin(v *store.View, session string, i int) (agent.Checkpoint, error) {
	events := v.Events()
	switch e := events[i]; {
	case !e.Started.HasFirstTurn():
		return agent.Checkpoint{}, agent.Errorf(agent.CodeInvalidInput, "run %s came here in the middle of its work; name one of its checkpoints", e.Started.Run).WithPath("run")
	case e.Started.Carry == agent.CarryReset:
		return checkpointAt(v, session, 0)
	case i+1 < len(events) && events[i+1].Forked != nil:
		return checkpointAt(v, session, events[i+1].Forked.At())
	}
	return checkpointAt(v, session, events[i].Seq-1)
}

func noRun(run string) error {
	return agent.Errorf(agent.CodeNotFound, "the session's log has no run %s that made a turn; see fermata runs", run).WithPath("run")
}

// BeforeLastMessage returns the checkpoint before the last message of a person before p, and
// that message. An edited message takes its place there. If several messages arrived at once the error
// is [agent.CodeInvalidInput], since the others would be lost.
func BeforeLastMessage(v *store.View, session string, p agent.Checkpoint) (agent.Checkpoint, agent.Message, error) {
	entries := v.UpTo(p.Seq()).Entries()
	for _, e := range slices.Backward(entries) {
		if e.Role != agent.RoleUser || e.Note != "" {
			continue
		}
		at, err := before(v, session, e.Seq)
		if err != nil {
			return at, e.Message, err
		}
		said := func(o store.Entry) bool { return o.Seq > at.Seq() && o.Role == agent.RoleUser && o.Note == "" }
		if first := slices.IndexFunc(entries, said); entries[first].Seq != e.Seq {
			return at, e.Message, agent.Errorf(agent.CodeInvalidInput, "several messages were said at once behind %s; fork there, and say what they are to be", at.ID).WithPath("edit")
		}
		return at, e.Message, nil
	}
	return agent.Checkpoint{}, agent.Message{}, agent.Errorf(agent.CodeNotFound, "nobody has said anything before %s", p.ID).WithPath("checkpoint")
}

// before returns the last checkpoint before an event.
func before(v *store.View, session string, seq int64) (agent.Checkpoint, error) {
	events := v.UpTo(seq - 1).Events()
	for i, e := range slices.Backward(events) {
		switch {
		case e.Snapshot != nil:
			return checkpointAt(v, session, e.Seq)
		case e.Started != nil && e.Started.HasFirstTurn():
			return origin(v, session, i)
		}
	}
	return checkpointAt(v, session, 0)
}
