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

// next is when the machine has to look at the clock again; zero while nothing is due.
func (s *step) next() (d due) {
	d = d.or(s.Log.Again, "storing the transcript again")
	if s.over() {
		if s.Life == Ending && s.Children.working() && s.Log.Sealing == 0 && !s.Log.open() {
			d = d.or(s.Children.LeaveBy, "leaving the agents below")
		}
		return d
	}
	d = d.or(s.leaseDue(), "looking after the run above").or(s.Children.lookDue(), "looking after the runs below")
	if !s.foreground() && s.Life != Carrying {
		d = d.or(s.Rest.carryAt(), "going on in a new execution")
	}
	if a := s.End.Aborting; a != nil {
		d = d.or(a.Until, "the end of the grace")
	}
	d = d.or(s.stopDue(), "the deadline of the stop")
	r := s.Requests.due()
	d = d.or(r.at, r.why).or(s.Park.due(), "the time it waits for")
	if s.clockRuns() {
		d = d.or(s.Budget.deadline(), "the end of the working time")
	}
	return d
}

// wake asks for a Tick at the next time that something is due, if that is another than was
// asked for. What is due now was looked at if this step is a Tick, which is not asked for
// any more then. Else the Tick that was asked for is about to come, and stays: whoever
// speaks often puts no deadline off.
func (s *step) wake() {
	next := s.next()
	if soon := s.At.Add(time.Second); reached(next.at, s.At) {
		if !s.Wake.IsZero() && !s.Wake.After(soon) {
			return
		}
		next.at = soon
	}
	if next.at.Equal(s.Wake) {
		return
	}
	s.Wake = next.at
	s.do(Wake{At: next.at, Why: next.why})
}

// tick does all that is due.
func (s *step) tick() error {
	s.Wake = time.Time{} // it has rung
	s.Log.tick(s.At)
	if s.over() {
		return nil // a rule looks whether it is time to leave
	}
	if reached(s.leaseDue(), s.At) {
		s.look()
	}
	if reached(s.Children.lookDue(), s.At) {
		s.lookAfter()
	}
	if a := s.End.Aborting; a != nil && reached(a.Until, s.At) {
		s.givenUp()
	}
	s.tickRequests()
	if reached(s.Park.due(), s.At) {
		s.met(Met{})
	}
	s.tickStopping()
	if !s.over() && s.clockRuns() && reached(s.Budget.deadline(), s.At) {
		s.fail(s.Budget.outOfTime())
	}
	return nil
}
