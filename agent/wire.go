package agent

import (
	"encoding/json"
	"strconv"
	"time"
)

// The live events (docs/wire.md §9). They have no cursor, are not recorded, and may be
// lost. A reader of the recorded events alone still gets everything.
const (
	EventDeltaText     EventType = "delta.text"     // continues the text of the turn's reply
	EventDeltaThinking EventType = "delta.thinking" // continues the thinking of the turn's reply
	EventDeltaReset    EventType = "delta.reset"    // the model is called again: drop the turn's pieces so far
	EventDeltaDropped  EventType = "delta.dropped"  // the reader was slow, and pieces are missing here
	EventCallProgress  EventType = "call.progress"  // what a tool reports while it works
)

// WireEvent is an event as readers get it (docs/wire.md §9). Recorded and live events of
// every type have this form.
type WireEvent struct {
	V int `json:"v"`
	// Cursor is what a reader passes to continue after this event; empty for live events.
	Cursor  string    `json:"cursor,omitempty"`
	Type    EventType `json:"type"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"` // the session whose log was read
	// Run is the run that the event belongs to. In a forked session, it may be a run of
	// the other session.
	Run  string `json:"run"`
	Turn int    `json:"turn,omitempty"`
	// Data is one JSON object. Its shape depends on the type (docs/events.md).
	Data json.RawMessage `json:"data"`
}

// Wire returns the event as readers get it, for the log of a session and a run. It
// returns [CodeInternal] if JSON that the event holds is invalid.
func (e Event) Wire(session, run string) (WireEvent, error) {
	data, err := json.Marshal(e.data(session))
	if err != nil {
		return WireEvent{}, Errorf(CodeInternal, "event %d of session %s can't be written: %w", e.Seq, session, err)
	}
	return WireEvent{
		V: Version, Cursor: Cursor(e.Seq), Type: e.Type, Time: e.Time.UTC(), Session: session, Run: run, Turn: e.Turn, Data: data,
	}, nil
}

// Cursor returns the cursor after an event of a log.
func Cursor(seq int64) string { return strconv.FormatInt(seq, 10) }

// data returns the event's content in its wire form, for the log of a session: an object, never
// nil.
func (e Event) data(session string) any {
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
		return wireCheckpoint{CheckpointID(session, e.Seq), *e.Snapshot}
	case e.Outcome != nil:
		return e.Outcome
	case e.Suspension != nil:
		own := *e.Suspension
		own.Checkpoint = checkpointOf(session, own.Checkpoint)
		return own
	case e.Resumed != nil:
		own := *e.Resumed
		own.Checkpoint = checkpointOf(session, own.Checkpoint)
		return own
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
	case e.Artifact != nil:
		return e.Artifact
	case e.Notebook != nil:
		return e.Notebook
	case e.Progress != nil:
		return e.Progress
	case e.Check != nil:
		return e.Check
	case e.Skill != nil:
		return e.Skill
	case e.Matched != nil:
		return e.Matched
	case e.Forked != nil:
		return e.Forked
	case e.ToolsChange != nil:
		return e.ToolsChange
	case e.Instructions != nil:
		return wireInstructions{e.Instructions.Digest, e.Instructions.By, e.Instructions.Error}
	case e.Migrated != nil:
		return e.Migrated
	case e.Delay != nil:
		return e.Delay
	case e.Moved != nil:
		return e.Moved
	case e.Lesson != nil:
		return e.Lesson
	case e.OwnerFailed != nil:
		return e.OwnerFailed
	case e.Extended != "":
		return wireLimit{e.Extended}
	}
	return struct{}{}
}

// wireInstructions is a change of instructions without the text, which is the runtime's.
type wireInstructions struct {
	Digest string `json:"digest,omitempty"`
	By     string `json:"by,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// wireStarted is a start without the Spec, which is long. Readers need only the agent's
// and the model's name.
type wireStarted struct {
	Agent       string `json:"agent,omitempty"`
	Model       string `json:"model,omitempty"`
	By          string `json:"by,omitempty"`
	Carry       Carry  `json:"carry,omitempty"`
	Recovered   string `json:"recovered,omitempty"`
	Unrecovered string `json:"unrecovered,omitempty"`
	// Imported names the run of another cluster that this one continues.
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
