package loop

import "github.com/fermata-agents/fermata/agent"

// A cancel ends the run. It goes the way of a stop ([Stopping]), which begins nothing new and
// refuses what comes. But it gathers nothing for a handoff: it cancels what is in flight, with the
// grace of an interrupt, and the run ends when nothing is in flight any more. Without the grace, the
// log would call a payment unknown that was made a moment before.

const reasonCancelled = "the run was cancelled"

// cancelling reports whether a cancel waits for what is in flight.
func (s *State) cancelling() bool {
	return s.End.Stopping != nil && s.End.Stopping.Cancels && !s.outcomeDecided()
}

// endsCancelled reports whether the run ends as cancelled, and has not ended yet.
func (s *State) endsCancelled() bool {
	return s.cancelling() || s.Phase == RunEnding && s.End.Outcome.Status == agent.StatusCancelled
}

// canceller is who cancels a run, as far as the machine has to know.
type canceller int

const (
	// byParent is the run's parent, also one that is gone. The parent's end comes in several ways, so
	// another cancel of it may be the same one.
	byParent canceller = iota
	// byCaller is a person or a program, also by Temporal's cancellation, or a parent that was
	// cancelled twice. If a cancel is in progress already, the run does not wait any longer.
	byCaller
)

// cancellerByTemporal is who cancels a run by Temporal's own cancellation. That of a child may come beside
// its parent's cancel, as when somebody cancels a whole tree.
func (s *State) cancellerByTemporal() canceller {
	if s.Parent.Start != nil {
		return byParent
	}
	return byCaller
}

// cancelled cancels the run, in any phase. A run whose outcome is decided keeps it. by is who
// cancels it; empty if nobody said. A caller's second cancel ends the grace of the first one, in the
// whole tree. The reason and by of the first one stay.
func (s *step) cancelled(reason, by string, from canceller) error {
	again := from == byCaller && s.Revision >= cancelGraceSince
	switch {
	case again && s.cancelling():
		s.endCancelled()
		s.cancelChildren(true)
		return nil
	case again && s.endsCancelled() && s.Children.anyNotEnded(): // it waits for their graces
		s.endedBy = s.End.Outcome.By
		s.cancelChildren(true)
		return nil
	case s.outcomeDecided() && s.verb != agent.VerbCancel:
		return s.refuse("the run is ending")
	case s.outcomeDecided() || s.cancelling():
		if from == byParent { // a call met the cancel before the order came
			s.End.explain(by)
		}
		return s.already()
	}
	s.cancel(reason, by)
	return nil
}

// cancel cancels a run whose outcome is not decided.
func (s *step) cancel(reason, by string) {
	s.endedBy = fit(by, maxBy)
	if !s.inFlight() || s.Revision < cancelGraceSince {
		s.end(agent.StatusCancelled, reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
		return
	}
	if s.Turn.Phase == TurnAdvancing { // a flow with steps in flight: nobody waits for its function
		s.leaveAdvancing()
		s.recordTurnEnd()
	}
	for i, c := range s.Calls.List { // before dropReasons: some wait for an answer
		if c.State != CallRunning {
			s.closeCall(i)
		}
	}
	s.giveUpHook()
	s.dropReasons()
	s.changed = true // a flow may be listed with its requests
	s.cancelChildren(false)
	s.cancelInFlight(0, reasonCancelled)
	s.End.startCancel(s.endedBy, reason)
}

// endCancelled ends a run that was cancelled. A call that has not returned is unknown.
func (s *step) endCancelled() {
	p := s.End.Stopping
	s.endedBy = p.By
	s.end(agent.StatusCancelled, p.Reason, func(o *agent.Outcome) { o.Text = s.Turn.Text })
}
