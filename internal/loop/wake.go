package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// next is when the machine has to look at the clock again; zero where nothing is due.
func (s *step) next() (at time.Time) {
	if s.over() {
		if s.Phase == Ending && s.liveChildren() && s.Log.Sealing == 0 && len(s.Log.Tail) == 0 {
			at = s.LeaveBy
		}
		return earlier(at, s.Log.Again)
	}
	at = earlier(earlier(s.leaseDue(), s.lookDue()), s.Log.Again)
	if w := s.Wait; w != nil && w.Saved && !w.Carried && !s.foreground() && s.Phase != Carrying {
		at = earlier(at, s.Since.Add(carryAfter))
	}
	if s.Giving != nil {
		at = earlier(at, s.Giving.Until)
	}
	if s.Stopping != nil {
		at = earlier(at, s.stopDue())
	}
	for _, r := range s.Requests {
		at = earlier(at, r.Deadline)
		if !r.Reminded {
			at = earlier(at, r.RemindAt)
		}
	}
	if s.Park != nil && s.Park.Met == nil {
		at = earlier(at, s.Park.next())
	}
	if s.clockRuns() {
		at = earlier(at, s.Deadline)
	}
	return at
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
	at := s.next()
	if soon := s.At.Add(time.Second); !at.IsZero() && !at.After(s.At) {
		at = soon // what is due now was looked at in this step
	}
	if at.Equal(s.Wake) {
		return
	}
	s.Wake = at
	s.do(Wake{At: at})
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
