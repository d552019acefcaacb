package handoff

// Task is what a run below another is asked: it knows nothing of its parent but
// this.
func Task(task, context string) string {
	if context == "" {
		return task
	}
	return task + "\n\nWhat you have to know:\n" + context
}
