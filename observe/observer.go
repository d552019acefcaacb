package observe

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// Observer looks on. Nothing waits for it and nothing rests on it: its methods
// return at once. They are called from many goroutines.
type Observer interface {
	// Event hears of an event of a run, in the order of the log. What is replayed is not
	// heard again; a task that was lost with its worker and is done once more is.
	Event(RunEvent)
	// Model is put around every model, within all other middleware: it sees every
	// attempt. [model.CallInfo] says whose it is.
	Model(next model.Model) model.Model
	// Tool is called when an attempt at a tool call begins, and returns the context
	// that the tool is given and what is called when the attempt is over.
	Tool(ctx context.Context, call *tool.Call, trace agent.Trace) (_ context.Context, over func(agent.CallStatus))
}

// RunEvent is an event of a run.
type RunEvent struct {
	Session string
	Run     string
	Agent   string // empty where the run failed before it had one
	Model   string // the agent's, by its full name
	Event   agent.Event
	// TraceSegment is where the event's spans hang: as it was before the event.
	TraceSegment agent.TraceSegment
}

// Auditor keeps a record of who did what. Unlike an [Observer] it is waited for: what it
// returns an error for does not take effect. Its methods are called within workflow tasks,
// from many goroutines, and take milliseconds. What is replayed they do not hear again; a
// task that was lost with its worker and is done once more they do.
type Auditor interface {
	// Command hears of a verb before it takes effect, or of its refusal.
	Command(RunCommand) error
	// Event hears of events of a run before they are stored.
	Event(RunEvent) error
}

// RunCommand is a verb that a run was told, by update or by signal.
type RunCommand struct {
	Session string
	Run     string
	Agent   string // empty where the run has none yet
	Verb    agent.Verb
	// Data is the verb as it came, with whatever token it has. It may be no JSON.
	Data []byte
	// ID is the verb's, if it is not in Data.
	ID string
	// Principals are who the tokens name, which were verified if Refused is nil.
	Principals []string
	// Signal means that it came as a signal, which is weighed later: if it is refused, that
	// is an event.
	Signal bool
	// Refused is why the run does not take it; nil if it does.
	Refused error
}
