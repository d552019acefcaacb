package loop

import "github.com/fermata-agents/fermata/agent"

// A resume with refresh gives the run the instructions that its agent has now. They come as the result of a
// step, like the Spec at the run's beginning: so a replay, and a worker of another build, see those that the
// run got. The resume waits for them as it waits for hooks. refreshpolicy.go has what an agent says about
// all its suspensions.

// mayRefresh refuses a resume that asks for new instructions where there can be none.
func (s *step) mayRefresh() error {
	switch {
	case s.isFlow():
		return s.refuseAs(agent.CodeInvalidInput, "refresh", "a flow has no instructions of its own; resume it without refresh")
	case !s.Suspensions.atRest():
		return s.refuseAs(agent.CodeNotSuspended, "refresh", "new instructions need a suspended run, and it is %s; wait until it is suspended", s.Status())
	}
	return nil
}

// fetchInstructions asks for the newest instructions of the run's agent.
func (s *step) fetchInstructions() {
	s.SuspensionHooks.fetch()
	s.do(Refresh{RefreshArgs{Agent: s.agent()}})
}

// refreshed carries out the resume that waits for instructions. Without them it is refused, and
// the run stays suspended with those that it has.
func (s *step) refreshed(in Refreshed) error {
	switch {
	case in.Policy:
		return s.refreshedByPolicy(in)
	case !s.SuspensionHooks.fetching() || !s.isAtRest():
		return s.refuse("no resume waits for instructions")
	case in.Err != nil:
		p := s.SuspensionHooks.takeResume()
		s.refuseResume(p, s.refuseAs(in.Err.Code, firstOf(in.Err.Path, "refresh"), "%s; resume it without refresh, or on a worker whose build has the agent", in.Err.Message))
	default:
		fresh := agent.NewInstructions(in.Instructions, s.SuspensionHooks.Resume.Command.By)
		s.resumeAllowed(&fresh)
	}
	return nil
}

// takeInstructions records the instructions that a resume brings.
func (s *step) takeInstructions(fresh *agent.InstructionsChange) {
	s.gotInstructions = true
	s.record(agent.Event{Type: agent.EventInstructionsChanged, Instructions: fresh})
	s.knowInstructions(fresh.Digest)
}
