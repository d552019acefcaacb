package signals

// WorkflowType is the type of every run, whatever its agent: a misspelt agent
// fails with a code, where a misspelt type would wait for ever.
const WorkflowType = "fermata.run"

// TaskQueue is where runs and their steps wait for workers unless configured.
const TaskQueue = "fermata"

// Reserved names of verbs. They have no handlers yet.
const (
	Pause     = "pause"
	Interrupt = "interrupt"
	Resume    = "resume"
	Stop      = "stop"
	Cancel    = "cancel"
	Send      = "send"
	Answer    = "answer"
	Approve   = "approve"
	Reject    = "reject"
	Answers   = "answers"
	Emit      = "emit"
)
