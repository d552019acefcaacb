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
	// Saw hears of an event of a run, in the order of the log. What is replayed is not
	// heard again; a task that was lost with its worker and is done once more is.
	Saw(Seen)
	// Model is put around every model, within all other middleware: it sees every
	// attempt. [model.CallInfo] says whose it is.
	Model(next model.Model) model.Model
	// Tool is called when an attempt at a tool call begins, and returns the context
	// that the tool is given and what is called when the attempt is over.
	Tool(ctx context.Context, call *tool.Call, trace agent.Trace) (_ context.Context, over func(agent.CallStatus))
}

// Seen is an event of a run.
type Seen struct {
	Session string
	Run     string
	Agent   string // empty where the run failed before it had one
	Model   string // the agent's, by its full name
	Event   agent.Event
	// Stint is where the event's spans hang: as it was before the event.
	Stint agent.Stint
}
