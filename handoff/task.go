package handoff

// Task returns the first message of a sub-agent, which knows nothing else of its parent.
func Task(task, context string) string {
	if context == "" {
		return task
	}
	return task + "\n\nWhat you have to know:\n" + context
}
