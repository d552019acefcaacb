package signals

// WorkflowType is the type of every run, whatever its agent: a misspelt agent
// fails with a code, where a misspelt type would wait forever.
const WorkflowType = "fermata.run"

// TaskQueue is where runs and their steps wait for workers unless configured.
const TaskQueue = "fermata"
