package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Seq returns the number of the view's last event; zero if it has none.
func (v *View) Seq() int64 {
	if n := len(v.events); n > 0 {
		return v.events[n-1].Seq
	}
	return 0
}

// Spec returns the recorded Spec of the view's last run; nil if no run started.
func (v *View) Spec() *agent.Spec {
	for i := len(v.events) - 1; i >= 0; i-- {
		if s := v.events[i].Started; s != nil {
			return changedSpec(s.Spec, v.events[i+1:])
		}
	}
	return nil
}

// changedSpec returns a spec with the later changes of its sources' tools and of its instructions applied.
func changedSpec(spec *agent.Spec, since []agent.Event) *agent.Spec {
	for i := range since {
		if change := since[i].ToolsChange; change != nil && spec != nil {
			now := change.ApplyTo(*spec)
			spec = &now
		}
		if change := since[i].Instructions; change != nil && spec != nil {
			now := change.ApplyTo(*spec)
			spec = &now
		}
	}
	return spec
}

// Entry is a message of a log, with the number and the time of its event.
type Entry struct {
	Seq int64
	agent.Message
	Time time.Time
}

// Entries returns the messages that the view's last run knows: those of the session, or
// since the last run that began with carry: reset, after forks and compactions.
func (v *View) Entries() []Entry { return known(v.events) }

// Messages returns the messages of [View.Entries].
func (v *View) Messages() []agent.Message {
	entries := v.Entries()
	out := make([]agent.Message, len(entries))
	for i, e := range entries {
		out[i] = e.Message
	}
	return out
}

// Suspended returns the number of the event of the last suspension that is known; zero for none.
func (v *View) Suspended() int64 {
	line := KnownEvents(v.events)
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].Suspension != nil {
			return line[i].Seq
		}
	}
	return 0
}

// KnownEvents returns the events that the last run of a log builds on. It leaves out the events after a
// checkpoint from which a later run started.
func KnownEvents(events []agent.Event) []agent.Event {
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i] // an Event is large
		if e.Forked == nil {
			continue
		}
		began := i
		// The start of the forked run comes just before its forked event, and belongs to
		// it.
		if i > 0 && events[i-1].Started != nil {
			began = i - 1
		}
		return slices.Concat(KnownEvents(UpTo(events[:began], e.Forked.At())), events[began:])
	}
	return events
}

func known(events []agent.Event) []Entry {
	line := KnownEvents(events)
	out := make([]Entry, 0, messagesIn(line))
	for i := range line {
		e := &line[i]
		var rest []Entry
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			out = out[:0]
		case e.Compaction != nil:
			out, rest = split(out, *e.Compaction)
		}
		if e.Message != nil {
			out = append(out, Entry{e.Seq, *e.Message, e.Time})
		}
		out = append(out, rest...)
	}
	return out
}

// messagesIn counts the messages among events.
func messagesIn(events []agent.Event) (n int) {
	for i := range events {
		if events[i].Message != nil {
			n++
		}
	}
	return n
}

// split returns the entries that a compaction keeps: the ones before its summary, and
// the ones after it.
func split(entries []Entry, c agent.Compaction) (first, last []Entry) {
	from := len(entries)
	if c.KeepFrom > 0 {
		if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Seq == c.KeepFrom }); i >= 0 {
			from = i
		}
	}
	return slices.Clone(entries[:min(c.KeepFirst, from)]), entries[from:]
}

// UpTo returns the events up to a number. They share the slice.
func UpTo(events []agent.Event, seq int64) []agent.Event {
	n, _ := slices.BinarySearchFunc(events, seq+1, func(e agent.Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
	return events[:n:n]
}

// UpTo returns the view as it was after an event.
func (v *View) UpTo(seq int64) *View {
	return &View{events: UpTo(v.events, seq), size: v.size, knows: v.knows}
}

// State returns the session's state as the view's last run knows it, by key. Do not
// change the values.
func (v *View) State() map[string]json.RawMessage { return state(v.events) }

func state(events []agent.Event) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	line := KnownEvents(events)
	for i, e := range line {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			clear(out)
		case e.Started != nil && (i+1 == len(line) || line[i+1].Forked == nil):
			dropScratch(out, e.Started)
		case e.Migrated != nil:
			out = maps.Clone(e.Migrated.State)
			if i > 0 && line[i-1].Started != nil { // at a run's start the migration has the state of the run before
				dropScratch(out, line[i-1].Started)
			}
		case e.Snapshot != nil:
			put(out, e.Snapshot.StateChanges)
		}
	}
	return out
}

// dropScratch deletes what an earlier run kept for itself alone. A fork and an imported run continue
// another run, and keep it.
func dropScratch(state map[string]json.RawMessage, s *agent.Started) {
	if s.Spec != nil && s.Imported == nil {
		maps.DeleteFunc(state, func(key string, _ json.RawMessage) bool { return !s.Spec.PersistsState(key) })
	}
}

// put sets keys; null deletes one.
func put(state, set map[string]json.RawMessage) {
	for k, v := range set {
		if string(v) == "null" {
			delete(state, k)
			continue
		}
		state[k] = v
	}
}

// LastRun returns the events of the view's last run. Ids of calls and numbers of turns begin again in
// each run, so what looks for them has to look here.
func (v *View) LastRun() []agent.Event {
	for i, e := range slices.Backward(v.events) {
		if e.Started != nil && e.Started.HasFirstTurn() {
			return v.events[i:]
		}
	}
	return v.events
}

// Call returns a tool call of the view's last run by the runtime's id, and whether there
// is one.
func (v *View) Call(id string) (agent.ToolCall, bool) {
	for _, e := range slices.Backward(v.LastRun()) {
		if e.Message == nil || e.Message.Role != agent.RoleAssistant {
			continue
		}
		for _, c := range e.Message.ToolCalls() {
			if c.ID == id {
				return c, true
			}
		}
	}
	return agent.ToolCall{}, false
}
