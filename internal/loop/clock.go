package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// due is a time at which the machine has something to do, and what that is.
type due struct {
	at  time.Time
	why string
}

// or returns the earlier of two times; a zero time does not count.
func (d due) or(at time.Time, why string) due {
	if at.IsZero() || !d.at.IsZero() && !at.Before(d.at) {
		return d
	}
	return due{at, why}
}

// reached reports whether a time has come. A zero time never comes.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// nextDue returns when the machine has to look at the clock again; zero if nothing will be due.
func (s *step) nextDue() (d due) {
	d = d.or(s.Log.RetryAt, "storing the transcript again")
	if s.outcomeDecided() { // only storing the log and the children's ends have a time left
		waits := s.Workspace.open() && !s.Workspace.Ending || !s.Workspace.open() && s.Log.SealingSeq == 0 && !s.Log.hasUnsealed()
		if s.Phase == RunEnding && s.Children.anyNotEnded() && waits {
			d = d.or(s.Children.EndWaitUntil, "leaving the agents below")
		}
		return d
	}
	d = d.or(s.parentCheckDue(), "looking after the run above").or(s.Children.checkDue(), "looking after the runs below")
	// A child in the foreground keeps the run in this execution: the time would stay due.
	if !s.bindsExecution() && s.Phase != RunContinuing {
		d = d.or(s.Suspensions.continueAsNewAt(), "going on in a new execution")
	}
	if a := s.End.Grace; a != nil {
		d = d.or(a.Until, "the end of the grace")
	}
	d = d.or(s.stopDue(), "the deadline of the stop")
	r := s.Requests.due()
	d = d.or(r.at, r.why).or(s.Park.due(), "the time it waits for").or(s.Calls.waitDue(), "the time that a step waits for")
	d = d.or(s.lookDue(), "looking at the files that it watches").or(s.ownerFailsAt(), "the end of the time in which people may resume it")
	if s.timeLimitEndsRun() {
		d = d.or(s.Budget.deadline(), "the end of the working time")
	}
	return d
}

// setTimer asks for one timer, at the next time when something is due. A timer that is set already
// for a time that has come stays. To ask again would postpone it with each input, and frequent
// signals could delay a deadline for ever.
func (s *step) setTimer() {
	next := s.nextDue()
	// A time that is due and stays due is looked at once a second.
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
	s.NextTimer = time.Time{} // first: setTimer asks for no timer whose time is in NextTimer
	s.Log.tick(s.At)
	if s.outcomeDecided() {
		return nil // the rule that ends the run looks at the time itself
	}
	if reached(s.parentCheckDue(), s.At) {
		s.checkParent()
	}
	if reached(s.Children.checkDue(), s.At) {
		s.checkChildren()
	}
	if a := s.End.Grace; a != nil && reached(a.Until, s.At) {
		s.graceOver()
	}
	s.expireRequests()
	if reached(s.Park.due(), s.At) {
		s.conditionMet(MetCondition{})
	}
	s.endDueWaits()
	if reached(s.ownerFailsAt(), s.At) {
		s.ownerFails(agent.CodeExpired, "nobody resumed or answered it in the time that resume_within allows")
	}
	s.advanceStop()
	if !s.outcomeDecided() && s.timeLimitEndsRun() && reached(s.Budget.deadline(), s.At) {
		s.outOfTime()
	}
	return nil
}
