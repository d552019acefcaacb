package observe

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// Observer receives the events of a worker's runs (OA-110). Each observer of a worker has a
// queue and a goroutine of its own. So a slow, panicking or hanging observer delays no run
// and no other observer. Its methods are called one at a time, but by each worker that has
// it. A panic is logged, and the next event comes all the same.
//
// The context ends when the worker has stopped and waits for the observer no longer. Then an
// observer should return at once.
type Observer interface {
	// Event receives an event of a run that this worker executes. The events of a run come
	// in the order of its log. A replay does not repeat events. A workflow task that was
	// lost with its worker is run again, and repeats its events, with the same numbers.
	// Events that wait in the queue of a killed worker are lost; the numbers show it.
	Event(context.Context, RunEvent)
	// Gap receives the numbers of events that found no room in the queue, or that the worker
	// could not deliver before it stopped. It comes between the run's events before and
	// after the gap.
	Gap(context.Context, Gap)
}

// Gap names the events of a run that an observer does not receive. They are in the log:
// client.Events reads them.
type Gap struct {
	// Session is the run's. If very many runs have lost events at once, Run and Agent are empty, From
	// and To are zero, and Session is a top session: the events are of it or of sessions below it.
	// If these are too many as well, Session is empty too.
	Session string
	Run     string
	Agent   string // empty if the run failed before it had one
	// From and To are the numbers of the first and the last lost event.
	From, To int64
	// Events counts the lost events. It is more than To-From+1 if some were repeated.
	Events int64
}

// CallObserver is an [Observer] that also wraps model and tool calls, as to make spans. Such
// a call waits for these methods, as it does for middleware, so they should return at once.
// They must be safe for concurrent use. A panic is logged, and the call is made all the same.
type CallObserver interface {
	Observer
	// Model wraps every model, within all other middleware, so it sees every attempt.
	// [model.CallInfo] says which run it belongs to.
	Model(next model.Model) model.Model
	// Tool is called when an attempt at a tool call begins. For calls that the run's workflow
	// makes, see [RunEvent.Outside]. It returns the context for
	// the tool, and a function that is called when the attempt is over.
	Tool(ctx context.Context, call *tool.Call, trace agent.Trace) (_ context.Context, over func(agent.CallStatus))
}

// RunEvent is an event of a run. It shares memory with the run: an observer must not change
// what it points to.
type RunEvent struct {
	Session string
	Run     string
	Agent   string // empty if the run failed before it had one
	Model   string // the agent's model, by its full name
	Event   agent.Event
	// TraceSegment is where the event's spans belong, as it was before the event.
	TraceSegment agent.TraceSegment
	// Outside is the call that the event ends, if it is one of an activity, a workflow or a
	// Nexus operation of the user's own; nil otherwise. The run's workflow makes such a call, so
	// [CallObserver.Tool] is not called for it.
	Outside *OutsideCall
}

// OutsideCall is a call that the run's workflow has made.
type OutsideCall struct {
	Kind  agent.TemporalKind
	Began time.Time
	// GaveUp means that the run did not wait for the result any more, as after a hold.
	GaveUp bool
}

// Auditor records who did what. Unlike an [Observer] it is waited for: what it cannot
// record does not take effect. Its methods are called within workflow tasks and should
// take milliseconds. It must be safe for concurrent use. Replays are not recorded again;
// a task that was lost with its worker is.
type Auditor interface {
	// Command records a verb before it takes effect, or its refusal.
	Command(RunCommand) error
	// Event records a run's event before it is stored.
	Event(RunEvent) error
}

// RunCommand is a verb that a run received by update or signal.
type RunCommand struct {
	Session string
	Run     string
	Agent   string // empty if the run has none yet
	Verb    agent.Verb
	// Data is the verb's payload, with its token if there is one. It may not be JSON.
	Data []byte
	// ID is the verb's id, if Data has none.
	ID string
	// Principals are named by the command's tokens. The tokens were verified if Refused
	// is nil.
	Principals []string
	// Signal means that it came as a signal, and the run decides later. A refusal is then
	// an event.
	Signal bool
	// Refused is why the run refuses it; nil if it does not.
	Refused error
}
