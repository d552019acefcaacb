package signals

// WorkflowType is the workflow type of every run, whatever its agent. A run with a
// misspelled agent fails with a code; one with a misspelled type would wait for ever.
const WorkflowType = "fermata.run"

// TaskQueue is the default task queue of runs and their activities.
const TaskQueue = "fermata"

// OperationType is the type of the workflow that carries out a Nexus operation
// (agents.Operation). It starts a run as its child.
const OperationType = "fermata.operation"
