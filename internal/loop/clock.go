package loop

import "time"

// due is a time at which the machine has to look at the clock, and what for.
type due struct {
	at  time.Time
	why string
}

// or is the earlier of two times; a zero one is none.
func (d due) or(at time.Time, why string) due {
	if at.IsZero() || !d.at.IsZero() && !at.Before(d.at) {
		return d
	}
	return due{at, why}
}

// reached reports whether a time has come; a zero one never does.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// nextDue is when the machine has to look at the clock again; zero while nothing is due.
func (s *step) nextDue() (d due) {
	d = d.or(s.Log.RetryAt, "storing the transcript again")
	if s.decided() {
		if s.Phase == RunEnding && s.Children.anyNotEnded() && s.Log.Sealing == 0 && !s.Log.hasUnsealed() {
			d = d.or(s.Children.EndWaitUntil, "leaving the agents below")
		}
		return d
	}
	d = d.or(s.parentCheckDue(), "looking after the run above").or(s.Children.checkDue(), "looking after the runs below")
	if !s.hasForegroundChild() && s.Phase != RunContinuing {
		d = d.or(s.Suspensions.continueAsNewAt(), "going on in a new execution")
	}
	if a := s.End.Aborting; a != nil {
		d = d.or(a.Until, "the end of the grace")
	}
	d = d.or(s.stopDue(), "the deadline of the stop")
	r := s.Requests.due()
	d = d.or(r.at, r.why).or(s.Park.due(), "the time it waits for")
	if s.timeLimitEndsRun() {
		d = d.or(s.Budget.deadline(), "the end of the working time")
	}
	return d
}

// setTimer asks for a Tick at the next time that something is due, if that is another than was
// asked for. What is due now was looked at if this step is a Tick, which is not asked for
// any more then. Else the Tick that was asked for is about to come, and stays: whoever
// speaks often puts no deadline off.
func (s *step) setTimer() {
	next := s.nextDue()
	if soon := s.At.Add(time.Second); reached(next.at, s.At) {
		if !s.NextTimer.IsZero() && !s.NextTimer.After(soon) {
			return
		}
		next.at = soon
	}
	if next.at.Equal(s.NextTimer) {
		return
	}
	s.NextTimer = next.at
	s.do(SetTimer{At: next.at, Reason: next.why})
}

// timerFired does all that is due.
func (s *step) timerFired() error {
	s.NextTimer = time.Time{} // it has rung
	s.Log.tick(s.At)
	if s.decided() {
		return nil // a rule looks whether it is time to leave
	}
	if reached(s.parentCheckDue(), s.At) {
		s.checkParent()
	}
	if reached(s.Children.checkDue(), s.At) {
		s.checkChildren()
	}
	if a := s.End.Aborting; a != nil && reached(a.Until, s.At) {
		s.graceOver()
	}
	s.expireRequests()
	if reached(s.Park.due(), s.At) {
		s.conditionMet(MetCondition{})
	}
	s.advanceStop()
	if !s.decided() && s.timeLimitEndsRun() && reached(s.Budget.deadline(), s.At) {
		s.fail(s.Budget.timeLimitError())
	}
	return nil
}
