package live

import "github.com/fermata-agents/fermata/agent"

// Holds carries holds between worker processes. A hold that is added in one process stops
// activities below it in the others before their runs learn of it.
//
// A hold may come late, twice, or never. The runs also tell each other, from parent to
// child, and only that is durable: a cancel from here stops activities, but ends no run.
// Implementations must be safe for concurrent use.
type Holds interface {
	// Publish tells other processes that a session and its descendants are held. It is
	// called within workflow tasks and must return at once.
	Publish(h agent.HoldRef)
	// Follow calls receive with the holds of a root session and its descendants, until leave
	// is called. leave is called once. A worker follows a root while it has activities of
	// its tree in flight. Follow and leave must return at once. receive may be called
	// before Follow returns, and with holds of other roots, which are ignored.
	Follow(root string, receive func(agent.HoldRef)) (leave func())
}
