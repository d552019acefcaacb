package agent

import "time"

// EventType names a durable event (wire §9). The set is open: readers skip what they do not know.
type EventType string

// The durable events of a run.
const (
	RunStarted    EventType = "run.started"
	RunCompleted  EventType = "run.completed"
	RunFailed     EventType = "run.failed"
	RunCancelled  EventType = "run.cancelled"
	TurnStarted   EventType = "turn.started"
	TurnEnded     EventType = "turn.ended"
	Said          EventType = "message"
	ModelRetried  EventType = "model.retried" // a reply that was cut off is not kept; the model is asked again
	CallRequested EventType = "call.requested"
	CallStarted   EventType = "call.started"
	CallDone      EventType = "call.done"
	CallLost      EventType = "call.unknown" // begun, and nobody knows how it ended
)

// Event is one line of a session's log. The log is the session: its messages,
// its checkpoints (turn.ended) and its runs are events of it, numbered without
// a gap over the session's life. Of the last five fields, the one that the type
// speaks of is set.
type Event struct {
	Seq  int64     `json:"seq"`
	Type EventType `json:"type"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn,omitempty"`

	Started    *Started    `json:"started,omitempty"`
	Message    *Message    `json:"message,omitempty"`
	Call       *CallNote   `json:"call,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Outcome    *Outcome    `json:"outcome,omitempty"`
}

// Size is about how many bytes the event takes in a chunk.
func (e Event) Size() int {
	const frame = 96 // the event's own fields in JSON
	switch {
	case e.Message != nil:
		return frame + e.Message.Size()
	case e.Started != nil:
		n := frame + len(e.Started.Spec.Instructions)
		for _, t := range e.Started.Spec.Toolset {
			n += len(t.Name) + len(t.Description) + len(t.Input)
		}
		return n
	case e.Outcome != nil:
		return frame + len(e.Outcome.Text) + len(e.Outcome.Output)
	}
	return frame
}

// Started opens a run's part of the log. It holds the recorded Spec, so that
// neither the model's input nor a run's state has to.
type Started struct {
	Run   string `json:"run"`
	By    string `json:"by,omitempty"`
	Carry Carry  `json:"carry,omitempty"`
	Spec  *Spec  `json:"spec"`
}

// CallNote says what became of a tool call.
type CallNote struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status,omitempty"`
}

// Checkpoint is what a run has used up when a turn has ended.
type Checkpoint struct {
	Usage Usage       `json:"usage"`
	Cost  USD         `json:"cost_usd"`
	Tools []ToolCount `json:"tools,omitempty"`
}
