package loop

import "github.com/fermata-agents/fermata/agent"

// atLimit does at a limit what the Spec's recovery says. If that names nothing, it fails the run, asks
// a person, or gives the model one last reply.
func (s *step) atLimit(err *agent.Error, on agent.LimitAction) {
	kind := agent.FailureKind(err.Code)
	if s.learn(kind, err); s.recover(kind, "", err) {
		return
	}
	s.stopAtLimit(kind, err, on)
}

// stopAtLimit does what on_limit or on_loop says.
func (s *step) stopAtLimit(kind agent.FailureKind, err *agent.Error, on agent.LimitAction) {
	switch {
	case on == agent.LimitActionAsk:
		s.askLimit(err)
	case on == agent.LimitActionFinalize && (kind == agent.FailureLimitTurns || kind == agent.FailureLimitTime):
		s.handOff(Failure{Kind: kind, Error: err, Final: true})
	default:
		s.fail(err)
	}
}

// outOfTime ends the run when its working time is over.
func (s *step) outOfTime() {
	err := s.Budget.timeLimitError()
	if s.Phase != RunActive && s.Phase != RunContinuing { // it has no log yet, and so no handoff
		s.fail(err)
		return
	}
	s.atLimit(err, s.Spec.OnLimit)
}

// timeLimitEndsRun reports whether the run ends when its working time is over. If a person is to be
// asked, that happens before the next turn. An idle daemon that makes its summary has done
// its work. A stop has a deadline of its own.
func (s *step) timeLimitEndsRun() bool {
	return !s.Budget.deadline().IsZero() && !s.idling() && s.End.Stopping == nil && (s.Spec == nil || !s.asksAtTimeLimit())
}

// asksAtTimeLimit reports whether a person is asked when the working time is over.
func (s *step) asksAtTimeLimit() bool {
	if r, named := s.Spec.Recovery[agent.FailureLimitTime]; named {
		return r.Do == agent.RecoverAsk
	}
	return s.Spec.OnLimit == agent.LimitActionAsk
}

// limitBeforeTurn returns the error of the first limit that is used up before a turn, the adaptive
// one last; nil if none is.
func (s *step) limitBeforeTurn() *agent.Error {
	if err := s.exhaustedLimit(); err != nil {
		return err
	}
	if used, limit, ok := s.adaptiveTurns(); ok && used >= limit {
		return agent.Errorf(agent.CodeLimitTurns, "the run has made the %d model calls that limits.adaptive allows so far, and its last turn gave no reason for more", limit)
	}
	return nil
}
