package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

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

// next is when the machine has to look at the clock again; zero where nothing is due.
func (s *step) next() (d due) {
	d = d.or(s.Log.Again, "storing the transcript again")
	if s.over() {
		if s.Phase == Ending && s.liveChildren() && s.Log.Sealing == 0 && len(s.Log.Tail) == 0 {
			d = d.or(s.LeaveBy, "leaving the agents below")
		}
		return d
	}
	d = d.or(s.leaseDue(), "looking after the run above").or(s.lookDue(), "looking after the runs below")
	if w := s.Wait; w != nil && w.Saved && !w.Carried && !s.foreground() && s.Phase != Carrying {
		d = d.or(s.Since.Add(carryAfter), "going on in a new execution")
	}
	if s.Giving != nil {
		d = d.or(s.Giving.Until, "the end of the grace")
	}
	if s.Stopping != nil {
		d = d.or(s.stopDue(), "the deadline of the stop")
	}
	for _, r := range s.Requests {
		d = d.or(r.Deadline, "the deadline of "+r.ID)
		if !r.Reminded {
			d = d.or(r.RemindAt, "the reminder of "+r.ID)
		}
	}
	if s.Park != nil && s.Park.Met == nil {
		d = d.or(s.Park.next(), "the time it waits for")
	}
	if s.clockRuns() {
		d = d.or(s.Deadline, "the end of the working time")
	}
	return d
}

// clockRuns tells whether working time passes and its end ends the run: where a
// limit asks, it is asked at the turn's end. An idle daemon that sums up has done its
// work.
func (s *step) clockRuns() bool {
	resting := s.Wait != nil && s.Wait.Resting || s.idling()
	return !s.Deadline.IsZero() && !resting && s.Stopping == nil && (s.Spec == nil || s.Spec.OnLimit != agent.AskOnReached)
}

// wake asks for a Tick at the next time that something is due, if that is another
// than was asked for.
func (s *step) wake() {
	next := s.next()
	if soon := s.At.Add(time.Second); !next.at.IsZero() && !next.at.After(s.At) {
		next.at = soon // what is due now was looked at in this step
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
	due := func(at time.Time) bool { return !at.IsZero() && !s.At.Before(at) }
	if due(s.Log.Again) {
		s.Log.Again = time.Time{}
	}
	if s.over() {
		return nil // goOn looks whether it is time to leave
	}
	if due(s.leaseDue()) {
		s.Leasing = true
		if len(s.Log.Tail) > 0 {
			s.sealRest(false)
		}
		s.do(Lease{Parent: s.Birth.Parent})
		if s.Early != nil { // nobody told of it: it may never have been laid
			s.do(TellParent{Session: s.Birth.Parent.Session, Report: s.metReport(*s.Early)})
		}
	}
	if due(s.lookDue()) {
		s.lookAfter()
	}
	if s.Giving != nil && due(s.Giving.Until) {
		s.givenUp()
	}
	s.tickRequests(due)
	if s.Park != nil && s.Park.Met == nil && due(s.Park.next()) {
		s.met(Met{})
	}
	if s.Stopping != nil {
		s.tickStopping(due)
	}
	if !s.over() && s.clockRuns() && due(s.Deadline) {
		s.fail(s.outOfTime())
	}
	return nil
}

func (s *step) tickRequests(due func(time.Time) bool) {
	for _, r := range slices.Clone(s.Requests) {
		i := slices.IndexFunc(s.Requests, func(o Request) bool { return o.ID == r.ID })
		switch {
		case i < 0 || s.over(): // the one before it ended the run
		case due(r.Deadline):
			s.expire(r)
		case !r.Reminded && due(r.RemindAt):
			s.Requests[i].Reminded, s.changed = true, true
			s.record(agent.Event{Type: agent.RequestReminded, Answer: &agent.Answered{Request: r.ID}})
		}
	}
}
