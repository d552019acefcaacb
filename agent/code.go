package agent

import (
	"maps"
	"slices"
)

// A Code says what went wrong. Codes are recorded in histories and printed by the plain
// temporal command, so they are added and never renamed (docs/wire.md §7). A Code is
// itself an error: errors.Is(err, agent.CodeStale) works also across Temporal.
type Code string

// Codes of a refused call, or of a failure that the caller met.
const (
	CodeInvalidInput       Code = "invalid_input"       // wrong, unknown, blank or too deep; Path says where
	CodeTooLarge           Code = "too_large"           // over a documented size
	CodeUnknownAgent       Code = "unknown_agent"       // not in this worker's build, or not among a flow's agents
	CodeUnknownTool        Code = "unknown_tool"        // not in this worker's build, or not among a flow's tools
	CodeUnknownModel       Code = "unknown_model"       // not in this worker's build, or not among a flow's models
	CodeNotFound           Code = "not_found"           // no such session, run, request or checkpoint
	CodeBusy               Code = "busy"                // the session already has a live run
	CodeStale              Code = "stale"               // the run or suspension is not the one that is open; another caller was faster
	CodeNotSuspended       Code = "not_suspended"       // resume: the run is not suspended
	CodeNeedsAnswer        Code = "needs_answer"        // resume: the run waits for an answer
	CodeHeldByParent       Code = "held_by_parent"      // resume: an ancestor holds the run
	CodeExpired            Code = "expired"             // a token, an export or a suspension has expired
	CodeUsed               Code = "used"                // the token or export was used before
	CodeBadSignature       Code = "bad_signature"       // the token or export was not signed with a known key
	CodeClosed             Code = "closed"              // the run has ended
	CodeQueueFull          Code = "queue_full"          // the queue of events is full
	CodeDenied             Code = "denied"              // a policy forbids it
	CodeAmbiguous          Code = "ambiguous"           // a callback fits several things that the run waits for
	CodeIncompatible       Code = "incompatible"        // the state or the client has another version
	CodeMigrationMissing   Code = "migration_missing"   // no chain of migrations leads to the state's version
	CodeMigrationAmbiguous Code = "migration_ambiguous" // two equally short chains of migrations lead there
	CodeMigrationFailed    Code = "migration_failed"    // a migration of the state failed
	CodeChunkMissing       Code = "chunk_missing"       // a part of the transcript is not in the store
	CodeChunkDamaged       Code = "chunk_damaged"       // a part of the transcript is not what was stored
	CodeStoreUnavailable   Code = "store_unavailable"   // the store did not answer
	CodeUnreachable        Code = "unreachable"         // the Temporal server did not answer
	CodeNoWorker           Code = "no_worker"           // no worker polls the task queue
	CodeNotSetUp           Code = "not_set_up"          // search attributes or the store are missing
	CodeTimeout            Code = "timeout"             // the caller's own deadline passed
	CodeSkillChanged       Code = "skill_changed"       // a worker has other files of a skill than the run began with
	CodeNotWritten         Code = "not_written"         // output, or a local file, could not be written
)

// Codes of a run that failed. [Outcome].Reason is the code.
const (
	CodeLimitTurns    Code = "limit_turns"
	CodeLimitTokens   Code = "limit_tokens"
	CodeLimitCost     Code = "limit_cost"
	CodeLimitTime     Code = "limit_time"
	CodeLoopDetected  Code = "loop_detected" // the model repeats one call again and again
	CodeStuck         Code = "stuck"         // under completion "tool", the model writes text and never calls a tool
	CodeToolsMissing  Code = "tools_missing" // the run ended without the tools that it has to use
	CodeVerifyCapped  Code = "verify_capped" // the checks have vetoed the answer as often as they may
	CodeRefusal       Code = "refusal"       // the model refused
	CodeProviderAuth  Code = "provider_auth" // the provider does not accept the key
	CodeProviderError Code = "provider_error"
	CodeBadOutput     Code = "bad_output" // a reply was cut off, or does not fit the schema, twice; or a value of a flow does not fit
	CodeToolFailed    Code = "tool_failed"
	CodeUnable        Code = "unable"       // the model said that it can't do its task
	CodeChildFailed   Code = "child_failed" // a sub-agent's run could not be started
	CodeWorkerLost    Code = "worker_lost"  // one call has crashed as many workers as it may
	CodeFlowFailed    Code = "flow_failed"  // a flow's own code between its steps failed, or panicked
	CodeStepFailed    Code = "step_failed"  // a step of a flow failed, and the flow returned its error
	CodeJoinFailed    Code = "join_failed"  // results of a flow's steps can't be put together
	CodeInternal      Code = "internal"
)

// Error returns the code itself, so that a Code can be the target of errors.Is.
func (c Code) Error() string { return string(c) }

// class says what a code means for a command and for an HTTP server.
type class struct {
	exit, http int
	retryable  bool
}

// classes is the table of docs/wire.md §7. It has every code.
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
	CodeAmbiguous:          {6, 409, false},
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
	CodeSkillChanged:       {6, 422, false},
	CodeNotWritten:         {1, 500, false},
	CodeLimitTurns:         {1, 500, false},
	CodeLimitTokens:        {1, 500, false},
	CodeLimitCost:          {1, 500, false},
	CodeLimitTime:          {1, 500, false},
	CodeLoopDetected:       {1, 500, false},
	CodeStuck:              {1, 500, false},
	CodeToolsMissing:       {1, 500, false},
	CodeVerifyCapped:       {1, 500, false},
	CodeRefusal:            {1, 500, false},
	CodeProviderAuth:       {1, 500, false},
	CodeProviderError:      {1, 500, false},
	CodeBadOutput:          {1, 500, false},
	CodeToolFailed:         {1, 500, false},
	CodeUnable:             {1, 500, false},
	CodeChildFailed:        {1, 500, false},
	CodeWorkerLost:         {1, 500, false},
	CodeFlowFailed:         {1, 500, false},
	CodeStepFailed:         {1, 500, false},
	CodeJoinFailed:         {1, 500, false},
	CodeInternal:           {1, 500, false},
}

// Known reports whether the code is one of this package. A plain Go error that leaves an
// activity carries the name of its Go type instead, which is not known.
func (c Code) Known() bool { _, ok := classes[c]; return ok }

// ExitStatus returns the exit status of a command that ends with this code; 1 for an
// unknown code.
func (c Code) ExitStatus() int {
	if k, ok := classes[c]; ok {
		return k.exit
	}
	return 1
}

// HTTPStatus returns the status of an HTTP answer with this code; 500 for an unknown
// code.
func (c Code) HTTPStatus() int {
	if k, ok := classes[c]; ok {
		return k.http
	}
	return 500
}

// Retryable reports whether the same call, unchanged, may succeed later.
func (c Code) Retryable() bool { return classes[c].retryable }

// HelpURL returns the address of the page that explains the code.
func (c Code) HelpURL() string {
	return "https://github.com/fermata-agents/fermata/blob/main/docs/errors/" + string(c) + ".md"
}

// Codes returns every code, in alphabetical order.
func Codes() []Code {
	return slices.Sorted(maps.Keys(classes))
}
