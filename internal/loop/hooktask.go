package loop

import "github.com/fermata-agents/fermata/agent"

// mayCheckTask reports whether the next check of the run's task may be made. It is made before the first
// turn, as a hook of a turn is called between two. A judge waits until something is left that it may use:
// no turn begins before that either.
func (s *step) mayCheckTask() bool {
	if s.Spec == nil || s.isFlow() || s.ownTurns() > 0 {
		return false
	}
	checks := s.Spec.ChecksAt(agent.PointBeforeRun)
	return s.Hooks.Task < len(checks) && s.ready() && s.mayBeginTurn() && !s.Log.blocksTurns() && !s.historyForbidsCalls() && s.lacksForCheck(checks[s.Hooks.Task]) == ""
}

// checkTask makes the next check of the run's task. A daemon's first task is a message that waits.
func (s *step) checkTask() {
	s.deliver(false)
	s.makeCheck(agent.PointBeforeRun, s.Hooks.Task)
}

// takeVerdictOnTask fails a run whose task a check refuses.
func (s *step) takeVerdictOnTask(k agent.Check, at CurrentCheck) {
	v := at.Verdict
	if v == nil || s.End.Stopping != nil { // it was cut off, or failed and the run is held: the rules make it again
		return
	}
	if v.Decision == agent.DecisionVeto {
		s.fail(agent.Errorf(agent.CodeDenied, "the check %s refuses the task: %s", k.Name, quote(firstOf(v.Reasoning, v.NextStep, k.FeedbackFallback))))
		return
	}
	s.Hooks.taskPassed()
}
