package agent

import (
	"encoding/json"
	"strconv"
	"time"
)

// The live events (docs/wire.md §9): they have no cursor, are not recorded, and may be
// lost. Whoever reads only what is recorded misses nothing.
const (
	EventDeltaText     EventType = "delta.text"     // continues the text of the turn's reply
	EventDeltaThinking EventType = "delta.thinking" // continues the thinking of the turn's reply
	EventDeltaReset    EventType = "delta.reset"    // the model is asked again: the turn's pieces so far are void
	EventDeltaDropped  EventType = "delta.dropped"  // the reader was slow, and pieces were dropped here
	EventCallProgress  EventType = "call.progress"  // a tool's remark while it works
)

// WireEvent is an event as readers get it (docs/wire.md §9): one form for every type,
// for what is recorded and for what is live.
type WireEvent struct {
	V int `json:"v"`
	// Cursor is where a reader comes back: it gets what came after. Empty for live
	// events.
	Cursor  string    `json:"cursor,omitempty"`
	Type    EventType `json:"type"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"` // whose log it is read from
	// Run is the run that the event is of. In a session that was forked off
	// another one, it may be a run of that one.
	Run  string `json:"run"`
	Turn int    `json:"turn,omitempty"`
	// Data is one JSON object, of the type's own shape (docs/events.md).
	Data json.RawMessage `json:"data"`
}

// Wire is the event as readers get it, in the log of a session and of a run. It
// fails, with [CodeInternal], only where JSON that the event holds is none.
func (e Event) Wire(session, run string) (WireEvent, error) {
	data, err := json.Marshal(e.data())
	if err != nil {
		return WireEvent{}, Errorf(CodeInternal, "event %d of session %s can't be written: %w", e.Seq, session, err)
	}
	return WireEvent{
		V: Version, Cursor: Cursor(e.Seq), Type: e.Type, Time: e.Time.UTC(), Session: session, Run: run, Turn: e.Turn, Data: data,
	}, nil
}

// Cursor names the place in a log behind an event.
func Cursor(seq int64) string { return strconv.FormatInt(seq, 10) }

// data is what the event says, in its wire form: an object, never nil.
func (e Event) data() any {
	switch {
	case e.Started != nil:
		return wireStart(*e.Started)
	case e.Compaction != nil:
		return wireCompaction{*e.Compaction, e.Message}
	case e.Message != nil:
		return e.Message
	case e.Call != nil:
		return wireCall{*e.Call, e.Call.Status == CallOK}
	case e.Snapshot != nil:
		return wireCheckpoint{CheckpointID(e.Seq), *e.Snapshot}
	case e.Outcome != nil:
		return e.Outcome
	case e.Suspension != nil:
		return e.Suspension
	case e.Resumed != nil:
		return e.Resumed
	case e.Hold != nil:
		return e.Hold
	case e.Request != nil:
		return e.Request
	}
	return e.rest()
}

func (e Event) rest() any {
	switch {
	case e.Answer != nil:
		return e.Answer
	case e.Child != nil:
		return e.Child
	case e.Refusal != nil:
		return e.Refusal
	case e.Forked != nil:
		return e.Forked
	case e.ToolsChange != nil:
		return e.ToolsChange
	case e.Migrated != nil:
		return e.Migrated
	case e.Delay != nil:
		return e.Delay
	case e.Extended != "":
		return wireLimit{e.Extended}
	}
	return struct{}{}
}

// wireStarted is a start without the recorded Spec, which is long and for the
// runtime: its name and its model are enough to know who speaks.
type wireStarted struct {
	Agent       string `json:"agent,omitempty"`
	Model       string `json:"model,omitempty"`
	By          string `json:"by,omitempty"`
	Carry       Carry  `json:"carry,omitempty"`
	Recovered   string `json:"recovered,omitempty"`
	Unrecovered string `json:"unrecovered,omitempty"`
	// Imported tells of a run of another cluster that this one goes on with.
	Imported *Imported `json:"imported,omitempty"`
}

func wireStart(s Started) wireStarted {
	w := wireStarted{Imported: s.Imported, By: s.By, Carry: s.Carry, Recovered: s.Recovered, Unrecovered: s.Unrecovered}
	if s.Spec != nil {
		w.Agent, w.Model = s.Spec.Name, s.Spec.Model
	}
	return w
}

type wireCompaction struct {
	Compaction
	Message *Message `json:"message,omitempty"`
}

type wireCall struct {
	CallUpdate
	OK bool `json:"ok,omitempty"`
}

type wireCheckpoint struct {
	ID string `json:"checkpoint"`
	TurnSnapshot
}

type wireLimit struct {
	Limit Code `json:"limit"`
}
