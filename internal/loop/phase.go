package loop

import (
	"fmt"
	"slices"
)

// Life is where a run stands between its beginning and its end.
type Life string

// The phases of a run's life.
const (
	New       Life = ""
	Opening   Life = "opening"   // waits for the Spec and the session's head
	Locating  Life = "locating"  // waits for the point in the log where the run begins
	Importing Life = "importing" // waits for the state of a run that was suspended elsewhere
	Listing   Life = "listing"   // waits for the tools of the Spec's sources
	Live      Life = "live"      // takes turns, or waits for somebody
	Carrying  Life = "carrying"  // waits for the last seal before a new execution
	Draining  Life = "draining"  // waits for the sub-agents that a stop ends
	Folding   Life = "folding"   // waits for the handoff
	Ending    Life = "ending"    // waits for the run's last seal
	Ended     Life = "ended"
)

// TurnPhase is where the turn of a live run stands.
type TurnPhase string

// The phases of a turn.
const (
	Ready   TurnPhase = ""        // no turn is in progress
	Asking  TurnPhase = "asking"  // waits for the model's reply
	Working TurnPhase = "working" // waits for the turn's calls
	Summing TurnPhase = "summing" // waits for the model's summary
)

// CallState is where a tool call stands.
type CallState string

// The states of a call.
const (
	Waiting  CallState = "waiting"  // for a slot, the end of a hold or a grace, the turn's other approvals, or a grant of agents
	Awaiting CallState = "awaiting" // the answer to its request
	Below    CallState = "below"    // sub-agents
	Active   CallState = "running"
	Done     CallState = "done"
)

// transitions lists where each phase of a machine may lead.
type transitions[P ~string] map[P][]P

// The three machines, as docs/loop.md draws them.
var (
	lifeMoves = transitions[Life]{
		New:       {Opening},
		Opening:   {Locating, Importing, Listing, Live, Ended},
		Locating:  {Listing, Live, Ended},
		Importing: {Live, Ended},
		Listing:   {Live, Ended},
		Live:      {Carrying, Draining, Folding, Ending},
		Carrying:  {Live, Ending},
		Draining:  {Folding, Ending},
		Folding:   {Ending},
		Ending:    {Ended},
	}
	turnMoves = transitions[TurnPhase]{
		Ready:   {Asking, Summing},
		Asking:  {Asking, Working, Summing, Ready},
		Working: {Ready},
		Summing: {Summing, Asking, Ready},
	}
	callMoves = transitions[CallState]{
		Waiting:  {Active, Awaiting, Below, Done},
		Awaiting: {Waiting, Done},
		Active:   {Awaiting, Done},
		Below:    {Done},
	}
)

// enter changes a phase; nothing else does. A change that its table lacks is a fault of
// ours: the panic fails the workflow's task and not the run, so a mended build goes on.
func enter[P ~string](moves transitions[P], at *P, to P) {
	if !slices.Contains(moves[*at], to) {
		panic(fmt.Sprintf("the machine has no transition of %T from %q to %q", to, *at, to))
	}
	*at = to
}
