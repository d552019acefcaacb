package store

import (
	"reflect"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// A model knows less than a log has: a compaction, a reset or a fork made it forget
// what was before. What it still knows of that is written as a few events, a base, into
// the chunk that has what made it forget: a reader needs the base and the events from a
// number on, and nothing before.

// forgets reports whether events change what is known of those before them.
func forgets(events []agent.Event) bool {
	return slices.ContainsFunc(events, func(e agent.Event) bool {
		return e.Compaction != nil || e.Forked != nil || e.Started != nil && e.Started.Carry == agent.CarryReset
	})
}

// condense finds the events from which on a log has to be read, and makes the base of
// what is before; nil if all of it has to be read. What a view shows of base and rest is
// what it shows of the whole.
func condense(whole []agent.Event) (k *Known, base []agent.Event) {
	line := KnownEvents(whole)
	if k = knownFrom(line); k == nil {
		return nil, nil
	}
	from := k.From
	base = baseOf(line, from)
	rest := slices.Concat(base, whole[len(UpTo(whole, from-1)):])
	if !reflect.DeepEqual(known(rest), known(whole)) || !reflect.DeepEqual(state(rest), state(whole)) ||
		(&View{events: rest}).Spec() != (&View{events: whole}).Spec() {
		return nil, nil // kept in an order in which events can't be written
	}
	return k, base
}

// knownFrom finds the last event that made a model forget, and the first one that is not
// to stand in a base: of the messages that a compaction has kept at the end, or the event
// itself.
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

// baseOf is what is known of the events before one, as events: how their last run
// began, what was said that is still known, the last checkpoint, and the state.
func baseOf(line []agent.Event, from int64) (base []agent.Event) {
	old := UpTo(line, from-1)
	if len(old) == 0 {
		return nil
	}
	said := known(line)
	for _, e := range old {
		if e.Started != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Started != nil }) {
			started := *e.Started
			started.Spec = relisted(started.Spec, old[len(UpTo(old, e.Seq)):])
			e.Started = &started
			base = append(base, e)
		}
		if e.Snapshot != nil && !later(old, e.Seq, func(l agent.Event) bool { return l.Snapshot != nil }) {
			c := *e.Snapshot
			c.StateChanges = nil // it is in the state
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

// View is a log up to one event. It is never changed.
type View struct {
	events []agent.Event
	size   int
	// knows reports what the view begins with; nil for a whole log.
	knows *Known
	// prev is where the view stands in memory that this one grew from.
	prev string
}

// whole reports whether a view shows all of its log.
func (v *View) whole() bool { return v.knows == nil }

// then is the view continued by more events of the log.
func (v *View) then(events []agent.Event, size int) *View {
	return &View{events: slices.Concat(v.events, events), size: v.size + size, knows: v.knows}
}

// Events lists the log's events. Those of [Log.Known] are what is known. The slice must
// not be changed.
func (v *View) Events() []agent.Event { return v.events }

// With returns the view continued by the events of an open tail, up to the
// event with the number upTo. Events that the view has already are skipped, so
// a tail may be younger or older than the view.
func (v *View) With(tail []agent.Event, upTo int64) *View {
	last := v.Seq()
	events := slices.Clip(v.events)
	for _, e := range tail {
		if e.Seq > last && e.Seq <= upTo {
			events = append(events, e)
		}
	}
	for len(events) > 0 && events[len(events)-1].Seq > upTo {
		events = events[:len(events)-1]
	}
	return &View{events: events, size: v.size, knows: v.knows}
}
