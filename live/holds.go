package live

import "github.com/fermata-agents/fermata/agent"

// Holds carries holds between worker processes: one that is added in one process ends
// the steps that others have in flight below it, before their runs hear of it.
//
// A hold may come late, twice, or be lost. The runs tell each other of it besides, from
// parent to child, and that is what counts: a cancel that is heard here stops steps, and
// ends no run. Implementations are used from many goroutines at once.
type Holds interface {
	// Publish tells other processes that a session, and all below it, is held. It is
	// called within workflow tasks, and returns at once.
	Publish(h agent.HoldRef)
	// Follow hears of the holds of a root session, and of all below it, until leave is
	// called, which is once. A worker follows a root while it has steps of its tree in
	// flight. Follow and leave return at once, and hear may be called before Follow
	// returns. The hold of another root may be heard, too: it is not heeded.
	Follow(root string, hear func(agent.HoldRef)) (leave func())
}
