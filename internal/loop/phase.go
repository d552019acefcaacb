package loop

import (
	"fmt"
	"slices"
)

// Life is where a run stands between its beginning and its end.
type Life string

// The phases of a run's life. docs/loop.md shows these remarks, and those of the phases below.
const (
	New       Life = ""          // before the first input
	Opening   Life = "opening"   // waits for the Spec and the head of the session's log
	Locating  Life = "locating"  // waits for the point in the log where the run begins
	Importing Life = "importing" // waits for the state of a run that was suspended elsewhere
	Listing   Life = "listing"   // waits for the tools of the Spec's sources
	Live      Life = "live"      // takes turns, or rests
	Carrying  Life = "carrying"  // between two executions: waits for the last seal before continue-as-new
	Draining  Life = "draining"  // waits for the sub-agents that a stop has told to stop
	Folding   Life = "folding"   // waits for the handoff of a stop
	Ending    Life = "ending"    // waits for the run's last seal
	Ended     Life = "ended"     // the workflow completes
)

// TurnPhase is where the turn of a live run stands.
type TurnPhase string

// The phases of a turn.
const (
	Ready   TurnPhase = ""        // between two turns
	Asking  TurnPhase = "asking"  // waits for the model's reply
	Working TurnPhase = "working" // waits for the tool calls of the reply
	Summing TurnPhase = "summing" // waits for a summary of the model: no turn, and no tools
)

// CallState is where a tool call stands.
type CallState string

// The states of a call.
const (
	Waiting  CallState = "waiting"  // waits until nothing keeps it from beginning
	Awaiting CallState = "awaiting" // waits for the answer to its request
	Below    CallState = "below"    // waits for sub-agents
	Active   CallState = "running"  // a tool is at work
	Done     CallState = "done"     // has its one result
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
