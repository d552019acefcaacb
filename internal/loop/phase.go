package loop

import (
	"fmt"
	"slices"
)

// RunPhase is where a run stands between its beginning and its end.
type RunPhase string

// The phases of a run. docs/loop.md shows these remarks, and those of the phases below.
const (
	RunNew        RunPhase = ""            // before the first input
	RunOpening    RunPhase = "opening"     // waits for the Spec and the head of the session's log
	RunLocating   RunPhase = "locating"    // waits for the point in the log where the run begins
	RunImporting  RunPhase = "importing"   // waits for the state of a run that was suspended elsewhere
	RunListing    RunPhase = "listing"     // waits for a workspace of the run's own, and for the tools of the Spec's sources
	RunActive     RunPhase = "active"      // takes turns, or is suspended
	RunContinuing RunPhase = "continuing"  // between two executions: waits for the last seal before continue-as-new
	RunDraining   RunPhase = "draining"    // waits for the sub-agents that a stop has told to stop
	RunHandingOff RunPhase = "handing_off" // waits for the handoff of a stop
	RunEnding     RunPhase = "ending"      // waits for the run's last seal
	RunEnded      RunPhase = "ended"       // the workflow completes
)

// TurnPhase is where the turn of an active run stands.
type TurnPhase string

// The phases of a turn.
const (
	TurnReady       TurnPhase = ""            // between two turns
	TurnAsking      TurnPhase = "asking"      // waits for the model's reply
	TurnWorking     TurnPhase = "working"     // waits for the tool calls of the reply, or for a check of the answer
	TurnAdvancing   TurnPhase = "advancing"   // waits for a flow's next steps
	TurnSummarizing TurnPhase = "summarizing" // waits for a summary by the model, without tools. It counts as no turn
)

// CallState is where a tool call stands.
type CallState string

// The states of a call.
const (
	CallPending          CallState = "pending"           // waits until nothing prevents its start
	CallAwaitingAnswer   CallState = "awaiting_answer"   // waits for the answer to its request
	CallAwaitingChildren CallState = "awaiting_children" // waits for sub-agents
	CallAwaitingEvent    CallState = "awaiting_event"    // a flow's step that waits for an event or a time
	CallRunning          CallState = "running"           // a tool is at work
	CallDone             CallState = "done"              // has its one result
)

// transitions lists where each phase of a machine may lead.
type transitions[P ~string] map[P][]P

// The three machines, as docs/loop.md draws them.
var (
	runTransitions = transitions[RunPhase]{
		RunNew:        {RunOpening},
		RunOpening:    {RunLocating, RunImporting, RunListing, RunActive, RunEnded},
		RunLocating:   {RunListing, RunActive, RunEnded},
		RunImporting:  {RunActive, RunEnded},
		RunListing:    {RunActive, RunEnding, RunEnded}, // ending: a workspace is left
		RunActive:     {RunContinuing, RunDraining, RunHandingOff, RunEnding},
		RunContinuing: {RunActive, RunEnding},
		RunDraining:   {RunHandingOff, RunEnding},
		RunHandingOff: {RunEnding},
		RunEnding:     {RunEnded},
	}
	turnTransitions = transitions[TurnPhase]{
		TurnReady:       {TurnAsking, TurnAdvancing, TurnSummarizing, TurnWorking}, // working: checks of an answer
		TurnAsking:      {TurnAsking, TurnWorking, TurnSummarizing, TurnReady},
		TurnAdvancing:   {TurnWorking, TurnReady},
		TurnWorking:     {TurnAdvancing, TurnReady},
		TurnSummarizing: {TurnSummarizing, TurnReady}, // itself: an outdated hold stopped the call
	}
	callTransitions = transitions[CallState]{
		CallPending:          {CallRunning, CallAwaitingAnswer, CallAwaitingChildren, CallAwaitingEvent, CallDone},
		CallAwaitingAnswer:   {CallPending, CallDone},
		CallRunning:          {CallAwaitingAnswer, CallAwaitingEvent, CallDone},
		CallAwaitingChildren: {CallDone},
		CallAwaitingEvent:    {CallPending, CallDone},
	}
)

// enter changes a phase; nothing else does. A change that the table does not have is a bug.
// The panic fails the workflow task and not the run, so a corrected build can continue.
func enter[P ~string](moves transitions[P], at *P, to P) {
	if !slices.Contains(moves[*at], to) {
		panic(fmt.Sprintf("the machine has no transition of %T from %q to %q", to, *at, to))
	}
	*at = to
}
