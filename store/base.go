package store

import (
	"reflect"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// A model knows less than the log has: a compaction, a reset or a fork made it forget
// earlier events. What it still knows of them is written as a few events, a base. The
// base is in the chunk that made it forget. A reader needs the base and the events from a
// number on, and nothing before.

// forgets reports whether events change what is known of those before them.
func forgets(events []agent.Event) bool {
	return slices.ContainsFunc(events, func(e agent.Event) bool {
		return e.Compaction != nil || e.Forked != nil || e.Started != nil && e.Started.Carry == agent.CarryReset
	})
}

// condense finds the event from which a log has to be read, and makes the base of what
// comes before; nil if all of it has to be read. A view of base and rest shows the same
// as a view of the whole log.
func condense(whole []agent.Event) (k *Known, base []agent.Event) {
	line := KnownEvents(whole)
	if k = knownFrom(line); k == nil {
		return nil, nil
	}
	from := k.From
	base = baseOf(line, from)
	rest := slices.Concat(base, whole[len(UpTo(whole, from-1)):])
	// Checked rather than assumed: a wrong base would change what the model knows.
	// Compared by what a reader sees: messages, state, artifacts, skills, notebook, suspension and definition.
	if !reflect.DeepEqual(known(rest), known(whole)) || !reflect.DeepEqual(state(rest), state(whole)) || !slices.Equal(artifacts(rest), artifacts(whole)) ||
		!reflect.DeepEqual(skills(rest), skills(whole)) || !reflect.DeepEqual(notebook(rest), notebook(whole)) ||
		!reflect.DeepEqual((&View{events: rest}).Spec(), (&View{events: whole}).Spec()) || (&View{events: rest}).Suspended() != (&View{events: whole}).Suspended() {
		return nil, nil // the kept messages are in an order that events can't have
	}
	return k, base
}

// knownFrom finds the last event that made a model forget, and the first event after the
// base. That is the first of the messages that a compaction kept, or the event itself.
func knownFrom(line []agent.Event) *Known {
	for _, e := range slices.Backward(line) {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			return &Known{From: e.Seq, Since: e.Seq}
		case e.Compaction != nil && e.Compaction.KeepFrom > 0:
			return &Known{From: min(e.Compaction.KeepFrom, e.Seq), Since: e.Seq}
		case e.Compaction != nil:
			return &Known{From: e.Seq, Since: e.Seq}
		}
	}
	return nil
}

// baseOf returns what is known of the events before one, as events: the start of their
// last run, the messages, artifacts and active skills that are still known, the notebook, the last
// suspension, the last checkpoint, and the state.
func baseOf(line []agent.Event, from int64) (base []agent.Event) {
	old := UpTo(line, from-1)
	if len(old) == 0 {
		return nil
	}
	said, saved, active := known(line), artifacts(old), skills(old)
	for _, e := range old {
		if e.Type == agent.EventSkillActivated && slices.ContainsFunc(active, func(a activeSkill) bool { return a.seq == e.Seq }) {
			base = append(base, e)
		}
		if e.Artifact != nil && slices.Contains(saved, *e.Artifact) {
			base = append(base, e)
		}
		// Only the last start: earlier runs' definitions are not known any more.
		if e.Started != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Started != nil }) {
			started := *e.Started
			started.Spec = changedSpec(started.Spec, old[len(UpTo(old, e.Seq)):])
			e.Started = &started
			base = append(base, e)
		}
		if e.Suspension != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Suspension != nil }) {
			e.Suspension = &agent.Suspension{ID: e.Suspension.ID} // its requests may be long, and are not known any more
			base = append(base, e)
		}
		if e.Notebook != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Notebook != nil }) {
			base = append(base, e)
		}
		if e.Snapshot != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Snapshot != nil }) {
			c := *e.Snapshot
			c.StateChanges = nil // the state below has it
			e.Snapshot = &c
			base = append(base, e)
		}
		if i := slices.IndexFunc(said, func(s Entry) bool { return s.Seq == e.Seq }); i >= 0 {
			base = append(base, agent.Event{Seq: e.Seq, Type: agent.EventMessage, Time: e.Time, Turn: e.Turn, Message: &said[i].Message})
		}
	}
	last := old[len(old)-1]
	return append(base, agent.Event{Seq: last.Seq, Type: agent.EventStateMigrated, Time: last.Time, Turn: last.Turn, Migrated: &agent.Migrated{State: state(old)}})
}

func later(events []agent.Event, seq int64, is func(agent.Event) bool) bool {
	return slices.ContainsFunc(events[len(UpTo(events, seq)):], is)
}

// View is a log up to one event. It never changes.
type View struct {
	events []agent.Event
	size   int
	// knows says where the view begins; nil for a whole log.
	knows *Known
	// prev is the cache key of the view that this one grew from.
	prev string
}

// whole reports whether a view shows its whole log.
func (v *View) whole() bool { return v.knows == nil }

// then returns the view continued by more events of the log.
func (v *View) then(events []agent.Event, size int) *View {
	return &View{events: slices.Concat(v.events, events), size: v.size + size, knows: v.knows}
}

// Events returns the log's events; for a view of [Log.Known], only those that are known.
// Do not change the slice.
func (v *View) Events() []agent.Event { return v.events }

// With returns the view continued by the events of an open tail, up to the event upTo.
// Events that the view already has are skipped, so the tail may be newer or older than
// the view.
func (v *View) With(tail []agent.Event, upTo int64) *View {
	events, newer := UpTo(v.events, upTo), UpTo(tail[len(UpTo(tail, v.Seq())):], upTo)
	switch {
	case len(events) == 0: // what no chunk has is shared, since nobody changes it
		events = newer
	case len(newer) > 0:
		events = slices.Concat(events, newer)
	}
	return &View{events: slices.Clip(events), size: v.size, knows: v.knows}
}
