package agent

import (
	"maps"
	"slices"
)

// A Code says what went wrong. It is a string that is recorded in histories and
// printed by the plain temporal command: codes are added, never renamed (docs/wire.md §7).
// A Code is itself an error, so errors.Is(err, agent.Stale) works across Temporal.
type Code string

// What a caller did or met.
const (
	CodeInvalidInput       Code = "invalid_input"       // wrong, unknown, blank or too deep; Path says where
	CodeTooLarge           Code = "too_large"           // over a documented size
	CodeUnknownAgent       Code = "unknown_agent"       // not in this worker's build
	CodeUnknownTool        Code = "unknown_tool"        // not in this worker's build
	CodeUnknownModel       Code = "unknown_model"       // not in this worker's build
	CodeNotFound           Code = "not_found"           // no such session, run, request or checkpoint
	CodeBusy               Code = "busy"                // a start on a session with a live run
	CodeStale              Code = "stale"               // another run or suspension than the one that is open; a lost race
	CodeNotSuspended       Code = "not_suspended"       // a resume of a run that does not wait
	CodeNeedsAnswer        Code = "needs_answer"        // a resume of a run that waits for an answer
	CodeHeldByParent       Code = "held_by_parent"      // a resume of a run that an ancestor holds
	CodeExpired            Code = "expired"             // the time of a token, an export or a suspension is over
	CodeUsed               Code = "used"                // a token or an export that was spent
	CodeBadSignature       Code = "bad_signature"       // a token or an export that was not made with a known key
	CodeClosed             Code = "closed"              // the run is at an end
	CodeQueueFull          Code = "queue_full"          // as many events wait as may
	CodeDenied             Code = "denied"              // by policy
	CodeIncompatible       Code = "incompatible"        // state or client of another version
	CodeMigrationMissing   Code = "migration_missing"   // no chain of migrations leads to the state's version
	CodeMigrationAmbiguous Code = "migration_ambiguous" // two chains do, equally short
	CodeMigrationFailed    Code = "migration_failed"    // a migration of the state did not succeed
	CodeChunkMissing       Code = "chunk_missing"       // a part of the transcript is not in the store
	CodeChunkDamaged       Code = "chunk_damaged"       // a part of the transcript is not what was stored
	CodeStoreUnavailable   Code = "store_unavailable"   // the store did not answer
	CodeUnreachable        Code = "unreachable"         // the Temporal server did not answer
	CodeNoWorker           Code = "no_worker"           // nobody polls the task queue
	CodeNotSetUp           Code = "not_set_up"          // search attributes or the store are missing
	CodeTimeout            Code = "timeout"             // the caller's own deadline
	CodeNotWritten         Code = "not_written"         // output, or a file of this machine, can't be written
)

// How a run fails; Reason of its Outcome is the code.
const (
	CodeLimitTurns    Code = "limit_turns"
	CodeLimitTokens   Code = "limit_tokens"
	CodeLimitCost     Code = "limit_cost"
	CodeLimitTime     Code = "limit_time"
	CodeLoopDetected  Code = "loop_detected" // the model repeats one call without end
	CodeStuck         Code = "stuck"         // the model talks and never acts, under completion "tool"
	CodeToolsMissing  Code = "tools_missing" // ended without the tools that it had to use
	CodeRefusal       Code = "refusal"       // the model refused
	CodeProviderAuth  Code = "provider_auth" // the provider does not accept the key
	CodeProviderError Code = "provider_error"
	CodeBadOutput     Code = "bad_output" // the reply was cut off, or does not fit the schema, twice
	CodeToolFailed    Code = "tool_failed"
	CodeChildFailed   Code = "child_failed" // an agent that the run gave work to could not be started
	CodeWorkerLost    Code = "worker_lost"  // a step has lost as many workers as it may
	CodeInternal      Code = "internal"
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
	CodeInvalidInput:       {2, 400, false},
	CodeTooLarge:           {2, 413, false},
	CodeUnknownAgent:       {2, 422, false},
	CodeUnknownTool:        {2, 422, false},
	CodeUnknownModel:       {2, 422, false},
	CodeNotFound:           {6, 404, false},
	CodeBusy:               {6, 409, false},
	CodeStale:              {6, 409, false},
	CodeNotSuspended:       {6, 409, false},
	CodeNeedsAnswer:        {6, 409, false},
	CodeHeldByParent:       {6, 409, false},
	CodeExpired:            {6, 410, false},
	CodeUsed:               {6, 410, false},
	CodeBadSignature:       {6, 403, false},
	CodeClosed:             {6, 410, false},
	CodeQueueFull:          {6, 429, true},
	CodeDenied:             {6, 403, false},
	CodeIncompatible:       {6, 422, false},
	CodeMigrationMissing:   {6, 422, false},
	CodeMigrationAmbiguous: {6, 422, false},
	CodeMigrationFailed:    {6, 422, false},
	CodeChunkMissing:       {1, 500, false},
	CodeChunkDamaged:       {1, 500, false},
	CodeStoreUnavailable:   {1, 503, true},
	CodeUnreachable:        {5, 503, true},
	CodeNoWorker:           {5, 503, true},
	CodeNotSetUp:           {5, 503, false},
	CodeTimeout:            {7, 504, true},
	CodeNotWritten:         {1, 500, false},
	CodeLimitTurns:         {1, 500, false},
	CodeLimitTokens:        {1, 500, false},
	CodeLimitCost:          {1, 500, false},
	CodeLimitTime:          {1, 500, false},
	CodeLoopDetected:       {1, 500, false},
	CodeStuck:              {1, 500, false},
	CodeToolsMissing:       {1, 500, false},
	CodeRefusal:            {1, 500, false},
	CodeProviderAuth:       {1, 500, false},
	CodeProviderError:      {1, 500, false},
	CodeBadOutput:          {1, 500, false},
	CodeToolFailed:         {1, 500, false},
	CodeChildFailed:        {1, 500, false},
	CodeWorkerLost:         {1, 500, false},
	CodeInternal:           {1, 500, false},
}

// Known reports whether the code is one of ours. A plain Go error that crosses an
// activity's boundary arrives with its Go type's name as its type, which is not.
func (c Code) Known() bool { _, ok := classes[c]; return ok }

// ExitStatus is the exit status of a command that ends with this code; 1 for a code that is not ours.
func (c Code) ExitStatus() int {
	if k, ok := classes[c]; ok {
		return k.exit
	}
	return 1
}

// HTTPStatus is the status of an answer with this code; 500 for a code that is not ours.
func (c Code) HTTPStatus() int {
	if k, ok := classes[c]; ok {
		return k.http
	}
	return 500
}

// Retryable reports whether the same thing may succeed when it is tried again unchanged.
func (c Code) Retryable() bool { return classes[c].retryable }

// HelpURL is where the code is explained.
func (c Code) HelpURL() string {
	return "https://github.com/fermata-agents/fermata/blob/main/docs/errors/" + string(c) + ".md"
}

// Codes lists every code, in alphabetical order.
func Codes() []Code {
	return slices.Sorted(maps.Keys(classes))
}
