package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

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

// acted notes that a turn had calls, and that one that succeeded brings the run further. To say how
// far it is does neither.
func (s *step) acted(calls []Call) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Tool == agent.ReportProgressTool && s.hasOwnTool(c.Tool) })
	if s.Budget.Limits.Adaptive != nil && len(calls) > 0 {
		s.Adaptive.called()
	}
	if slices.ContainsFunc(calls, func(c Call) bool { return c.Result.Status == agent.CallOK }) {
		s.noteMove(agent.MovedByToolCall)
		s.movedOn()
	}
}

// noteVeto notes that a check refused the model's answer.
func (s *step) noteVeto() {
	s.noteMove(agent.MovedByVeto)
	s.movedOn()
}

// limitBeforeTurn returns the error of the first limit that is used up before a turn, the adaptive
// one last, and then that of idle turns; nil if none is.
func (s *step) limitBeforeTurn() *agent.Error {
	if err := s.exhaustedLimit(); err != nil {
		return err
	}
	if used, limit, ok := s.adaptiveTurns(); ok && used >= limit {
		return agent.Errorf(agent.CodeLimitTurns, "the run has made the %d model calls that limits.adaptive allows so far, and its last turn gave no reason for more", limit)
	}
	return s.idled()
}

// stopBeforeTurn does at [step.limitBeforeTurn] what the Spec says.
func (s *step) stopBeforeTurn() {
	err := s.limitBeforeTurn()
	if err.Code != agent.CodeStuck {
		s.atLimit(err, s.Spec.OnLimit)
		return
	}
	s.Loops.moved() // the run may go on, and only new turns count then
	s.learn(agent.FailureNoProgress, err)
	s.recoverOrFail(agent.FailureNoProgress, err)
}
