package agent

// Ready-made policies for conversations that are compacted. Each has the defaults and its own
// instructions; change what you need.

// CompactForBugFix returns a policy whose summaries let a model go on with the fix of a bug.
func CompactForBugFix() CompactionPolicy {
	return CompactionPolicy{Instructions: "You are fixing a bug. Keep how the bug shows and how to reproduce it, its suspected cause, each file and line that matters, " +
		"every change that was made and why, what was tried and did not help, and the next step."}
}

// CompactKeepingTestFailures returns a policy whose summaries keep failed tests as they were printed.
func CompactKeepingTestFailures() CompactionPolicy {
	return CompactionPolicy{Instructions: "Keep every test that fails now, word for word: its name, its message, and the file and line. " +
		"Say which tests were repaired, and with which command the tests are run."}
}

// CompactKeepingPlan returns a policy whose summaries keep the plan that the model follows.
func CompactKeepingPlan() CompactionPolicy {
	return CompactionPolicy{Instructions: "Keep the current plan as it is, step by step: which steps are done, which one is being worked on, which are open, " +
		"and what was decided about the plan and why."}
}
