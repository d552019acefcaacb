package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// EventType names a durable event (docs/wire.md §9). The set is open: readers skip what they do not know.
type EventType string

// The durable events of a run.
const (
	EventRunStarted    EventType = "run.started"
	EventRunCompleted  EventType = "run.completed"
	EventRunFailed     EventType = "run.failed"
	EventRunCancelled  EventType = "run.cancelled"
	EventRunStopped    EventType = "run.stopped"
	EventRunSuspended  EventType = "run.suspended"
	EventRunResumed    EventType = "run.resumed"
	EventHoldAdded     EventType = "hold.added"
	EventHoldRemoved   EventType = "hold.removed"
	EventTurnStarted   EventType = "turn.started"
	EventTurnEnded     EventType = "turn.ended"
	EventMessage       EventType = "message"
	EventModelRetried  EventType = "model.retried" // a reply that was cut off is not kept; the model is asked again
	EventModelDelayed  EventType = "model.delayed" // the model is asked again later: the provider asked to wait
	EventCallRequested EventType = "call.requested"
	EventCallStarted   EventType = "call.started"
	EventCallDone      EventType = "call.done"
	EventCallUnknown   EventType = "call.unknown" // begun, and nobody knows how it ended
	EventCallApproved  EventType = "call.approved"
	EventCallRejected  EventType = "call.rejected"

	EventRequestOpened    EventType = "request.opened"
	EventRequestAnswered  EventType = "request.answered"
	EventRequestExpired   EventType = "request.expired" // its deadline decided it
	EventRequestReminded  EventType = "request.reminded"
	EventRequestForwarded EventType = "request.forwarded" // an answer went to the run below that asked

	EventChildStarted   EventType = "child.started"
	EventChildSuspended EventType = "child.suspended"
	EventChildResumed   EventType = "child.resumed"
	EventChildEnded     EventType = "child.ended"

	EventCompacted     EventType = "compacted"      // the model knows a summary of what came before
	EventForked        EventType = "forked"         // the run knows the log up to a checkpoint, and not what came after it
	EventLimitExtended EventType = "limit.extended" // somebody let the run go on past a limit
	EventStateMigrated EventType = "state.migrated" // the session's state was brought to the version of the run's agent
	EventToolsChanged  EventType = "tools.changed"  // a source has other tools now
	EventVerbRefused   EventType = "verb.refused"   // it came as a signal and could not be told
)

// Event is one line of a session's log. The log is the session: its messages,
// its checkpoints (turn.ended) and its runs are events of it, numbered without
// a gap over the session's life. Of the last fields, the one that the type speaks
// of is set.
type Event struct {
	Seq  int64     `json:"seq"`
	Type EventType `json:"type"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn,omitempty"`

	Started     *Started      `json:"started,omitempty"`
	Message     *Message      `json:"message,omitempty"`
	Call        *CallUpdate   `json:"call,omitempty"`
	Snapshot    *TurnSnapshot `json:"snapshot,omitempty"`
	Outcome     *Outcome      `json:"outcome,omitempty"`
	Suspension  *Suspension   `json:"suspension,omitempty"`
	Resumed     *Resumed      `json:"resumed,omitempty"`
	Hold        *Hold         `json:"hold,omitempty"`
	Request     *Request      `json:"request,omitempty"`
	Answer      *Answered     `json:"answer,omitempty"`
	Child       *ChildUpdate  `json:"child,omitempty"`
	Refusal     *RefusedVerb  `json:"refusal,omitempty"`
	Forked      *Forked       `json:"forked,omitempty"`
	Compaction  *Compaction   `json:"compaction,omitempty"`
	Migrated    *Migrated     `json:"migrated,omitempty"`
	Delay       *Delay        `json:"delay,omitempty"`
	ToolsChange *ToolsChange  `json:"tools_change,omitempty"`
	// Extended is the limit that was renewed.
	Extended Code `json:"extended,omitempty"`
}

// Delay says until when a run waits before it asks its model again, and why.
type Delay struct {
	Until time.Time `json:"until"`
	Error *Error    `json:"error"`
}

// Resumed says why a run goes on.
type Resumed struct {
	Suspension string    `json:"suspension"`
	Cause      Initiator `json:"cause"`
	By         string    `json:"by,omitempty"`
	// Event and Payload are what triggered it.
	Event       string `json:"event,omitempty"`
	FromSummary bool   `json:"from_summary,omitempty"`
	// Renewed means that all limits count from here anew: a daemon was woken.
	Renewed bool `json:"renewed,omitempty"`
}

// Answered says what became of a request, and by whom.
type Answered struct {
	Request string `json:"request"`
	// Decision is answer, approve or reject.
	Decision string `json:"decision"`
	By       string `json:"by,omitempty"`
	// Approver is who proved to be one; By is only a claim.
	Approver string `json:"approver,omitempty"`
	Edited   bool   `json:"edited,omitempty"` // the call is made with other arguments
	Reason   string `json:"reason,omitempty"`
}

// ChildUpdate says what became of a run below this one.
type ChildUpdate struct {
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent"`
	Call    string `json:"call,omitempty"`
	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`
}

// Size is about how many bytes the event takes in a chunk.
func (e Event) Size() int {
	const frame = 96 // the event's own fields in JSON
	switch {
	case e.Message != nil:
		return frame + e.Message.Size()
	case e.Started != nil:
		return frame + len(e.Started.Spec.Instructions) + toolsSize(e.Started.Spec.Toolset)
	case e.ToolsChange != nil:
		return frame + toolsSize(e.ToolsChange.Tools)
	case e.Outcome != nil:
		return frame + len(e.Outcome.Text) + len(e.Outcome.Output) + e.Outcome.Handoff.size()
	case e.Request != nil:
		return frame + e.Request.size()
	case e.Snapshot != nil:
		return frame + sizeOf(e.Snapshot.StateChanges)
	case e.Delay != nil:
		return 2*frame + len(e.Delay.Error.Message)
	case e.Migrated != nil:
		return frame + sizeOf(e.Migrated.State)
	case e.Suspension != nil:
		n := 2 * frame
		for _, r := range e.Suspension.Requests {
			n += r.size()
		}
		return n
	}
	return frame
}

func toolsSize(tools []ToolSpec) (n int) {
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Input)
	}
	return n
}

func sizeOf(state map[string]json.RawMessage) (n int) {
	for k, v := range state {
		n += len(k) + len(v)
	}
	return n
}

// Started opens a run's part of the log. It holds the recorded Spec, so that
// neither the model's input nor a run's state has to.
type Started struct {
	Run   string `json:"run"`
	By    string `json:"by,omitempty"`
	Carry Carry  `json:"carry,omitempty"`
	Spec  *Spec  `json:"spec"`
	// Recovered is the terminated run before this one whose last events were
	// brought into the log; Lost says why they could not be.
	Recovered   string `json:"recovered,omitempty"`
	Unrecovered string `json:"unrecovered,omitempty"`
	// Imported is set where the run goes on with one that was suspended elsewhere:
	// that one's turn and calls are its own.
	Imported *Imported `json:"imported,omitempty"`
}

// Imported says where a run comes from that goes on with one of another cluster.
type Imported struct {
	Export string `json:"export"` // the export's id
	Run    string `json:"run"`    // the run there
}

// HasFirstTurn reports whether the run has a first turn of its own: it does not go on in the
// middle of one that another run has begun.
func (s Started) HasFirstTurn() bool { return s.Imported == nil }

// ToolsChange are the tools of a source that has changed them: within a run, or, if some are left
// out, since they were accepted. The model has them from its next turn on.
type ToolsChange struct {
	Source string     `json:"source"`
	Tools  []ToolSpec `json:"tools"`
	// Left names tools that are left out, since nobody has accepted them as they are now: 32
	// at most. The source's own name stands for what it says of its tools.
	Left []string `json:"left,omitempty"`
	// Refused says why they were not taken, if they were not: Tools is empty then, and the
	// model goes on with those that it has.
	Refused *Error `json:"refused,omitempty"`
}

// ApplyTo returns a spec with these tools instead of those that the source had; the same one if
// they were refused.
func (r ToolsChange) ApplyTo(s Spec) Spec {
	if r.Refused != nil {
		return s
	}
	tools := slices.DeleteFunc(slices.Clone(s.Toolset), func(t ToolSpec) bool { return t.of(r.Source) })
	s.Toolset = append(tools, r.Tools...)
	return s
}

// ToolsOf are the tools of a source that a spec has.
func (s Spec) ToolsOf(source string) []ToolSpec {
	return slices.DeleteFunc(slices.Clone(s.Toolset), func(t ToolSpec) bool { return !t.of(source) })
}

func (t ToolSpec) of(source string) bool {
	return t.Executor == "" && strings.HasPrefix(t.Name, source+SourceSeparator)
}

// SourceSeparator stands between the names of a source and of its tool.
const SourceSeparator = "__"

// Migrated is a session's state in the version of the agent that goes on with it.
type Migrated struct {
	From  int                        `json:"from"`
	To    int                        `json:"to"`
	State map[string]json.RawMessage `json:"state"`
}

// CallUpdate says what became of a tool call.
type CallUpdate struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status,omitempty"`
}
