package agent

import (
	"maps"
	"slices"
)

// A Code says what went wrong. It is a string that is recorded in histories and
// printed by the plain temporal command: codes are added, never renamed (wire §7).
// A Code is itself an error, so errors.Is(err, agent.Stale) works across Temporal.
type Code string

// What a caller did or met.
const (
	InvalidInput       Code = "invalid_input"       // wrong, unknown, blank or too deep; Path says where
	TooLarge           Code = "too_large"           // over a documented size
	UnknownAgent       Code = "unknown_agent"       // not in this worker's build
	UnknownTool        Code = "unknown_tool"        // not in this worker's build
	UnknownModel       Code = "unknown_model"       // not in this worker's build
	NotFound           Code = "not_found"           // no such session, run, request or checkpoint
	Busy               Code = "busy"                // a start on a session with a live run
	Stale              Code = "stale"               // another run or suspension than the one that is open; a lost race
	NotSuspended       Code = "not_suspended"       // a resume of a run that does not wait
	NeedsAnswer        Code = "needs_answer"        // a resume of a run that waits for an answer
	HeldByParent       Code = "held_by_parent"      // a resume of a run that an ancestor holds
	Expired            Code = "expired"             // the time of a token, an export or a suspension is over
	Spent              Code = "used"                // a token or an export that was spent
	BadSignature       Code = "bad_signature"       // a token or an export that was not made with a known key
	Closed             Code = "closed"              // the run is at an end
	QueueFull          Code = "queue_full"          // as many events wait as may
	Denied             Code = "denied"              // by policy
	Incompatible       Code = "incompatible"        // state or client of another version
	MigrationMissing   Code = "migration_missing"   // no chain of migrations leads to the state's version
	MigrationAmbiguous Code = "migration_ambiguous" // two chains do, equally short
	MigrationFailed    Code = "migration_failed"    // a migration of the state did not succeed
	ChunkMissing       Code = "chunk_missing"       // a part of the transcript is not in the store
	ChunkDamaged       Code = "chunk_damaged"       // a part of the transcript is not what was stored
	StoreUnavailable   Code = "store_unavailable"   // the store did not answer
	Unreachable        Code = "unreachable"         // the Temporal server did not answer
	NoWorker           Code = "no_worker"           // nobody polls the task queue
	NotSetUp           Code = "not_set_up"          // search attributes or the store are missing
	Timeout            Code = "timeout"             // the caller's own deadline
	NotWritten         Code = "not_written"         // output, or a file of this machine, can't be written
)

// How a run fails; Reason of its Outcome is the code.
const (
	LimitTurns    Code = "limit_turns"
	LimitTokens   Code = "limit_tokens"
	LimitCost     Code = "limit_cost"
	LimitTime     Code = "limit_time"
	LoopDetected  Code = "loop_detected" // the model repeats one call without end
	Stuck         Code = "stuck"         // the model talks and never acts, under completion "tool"
	ToolsMissing  Code = "tools_missing" // ended without the tools that it had to use
	Refusal       Code = "refusal"       // the model refused
	ProviderAuth  Code = "provider_auth" // the provider does not accept the key
	ProviderError Code = "provider_error"
	BadOutput     Code = "bad_output" // the reply was cut off, or does not fit the schema, twice
	ToolFailed    Code = "tool_failed"
	ChildFailed   Code = "child_failed" // an agent that the run gave work to could not be started
	WorkerLost    Code = "worker_lost"  // a step has lost as many workers as it may
	Internal      Code = "internal"
)

// Error makes a Code usable with errors.Is.
func (c Code) Error() string { return string(c) }

// class says how a code leaves the process.
type class struct {
	exit, http int
	retryable  bool
}

// classes is the table of wire §7; a code that is not in it is none of ours.
var classes = map[Code]class{
	InvalidInput:       {2, 400, false},
	TooLarge:           {2, 413, false},
	UnknownAgent:       {2, 422, false},
	UnknownTool:        {2, 422, false},
	UnknownModel:       {2, 422, false},
	NotFound:           {6, 404, false},
	Busy:               {6, 409, false},
	Stale:              {6, 409, false},
	NotSuspended:       {6, 409, false},
	NeedsAnswer:        {6, 409, false},
	HeldByParent:       {6, 409, false},
	Expired:            {6, 410, false},
	Spent:              {6, 410, false},
	BadSignature:       {6, 403, false},
	Closed:             {6, 410, false},
	QueueFull:          {6, 429, true},
	Denied:             {6, 403, false},
	Incompatible:       {6, 422, false},
	MigrationMissing:   {6, 422, false},
	MigrationAmbiguous: {6, 422, false},
	MigrationFailed:    {6, 422, false},
	ChunkMissing:       {1, 500, false},
	ChunkDamaged:       {1, 500, false},
	StoreUnavailable:   {1, 503, true},
	Unreachable:        {5, 503, true},
	NoWorker:           {5, 503, true},
	NotSetUp:           {5, 503, false},
	Timeout:            {7, 504, true},
	NotWritten:         {1, 500, false},
	LimitTurns:         {1, 500, false},
	LimitTokens:        {1, 500, false},
	LimitCost:          {1, 500, false},
	LimitTime:          {1, 500, false},
	LoopDetected:       {1, 500, false},
	Stuck:              {1, 500, false},
	ToolsMissing:       {1, 500, false},
	Refusal:            {1, 500, false},
	ProviderAuth:       {1, 500, false},
	ProviderError:      {1, 500, false},
	BadOutput:          {1, 500, false},
	ToolFailed:         {1, 500, false},
	ChildFailed:        {1, 500, false},
	WorkerLost:         {1, 500, false},
	Internal:           {1, 500, false},
}

// Known reports whether the code is one of ours. A plain Go error that crosses an
// activity's boundary arrives with its Go type's name as its type, which is not.
func (c Code) Known() bool { _, ok := classes[c]; return ok }

// Exit is the exit status of a command that ends with this code; 1 for a code that is not ours.
func (c Code) Exit() int {
	if k, ok := classes[c]; ok {
		return k.exit
	}
	return 1
}

// HTTP is the status of an answer with this code; 500 for a code that is not ours.
func (c Code) HTTP() int {
	if k, ok := classes[c]; ok {
		return k.http
	}
	return 500
}

// Retryable reports whether the same thing may succeed when it is tried again unchanged.
func (c Code) Retryable() bool { return classes[c].retryable }

// Help is where the code is explained.
func (c Code) Help() string {
	return "https://github.com/fermata-agents/fermata/blob/main/docs/errors/" + string(c) + ".md"
}

// Codes lists every code, in alphabetical order.
func Codes() []Code {
	return slices.Sorted(maps.Keys(classes))
}
