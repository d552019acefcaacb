package loop

import (
	"slices"
	"time"
)

// checkDue is when the run looks after children that may have ended without a report; zero if
// there are none.
func (c Children) checkDue() time.Time {
	if !slices.ContainsFunc(c.List, func(one Child) bool { return one.Detached && one.notEnded() }) {
		return time.Time{}
	}
	return c.CheckAt
}

// checkChildren asks for the children that may have ended without a report.
func (s *step) checkChildren() {
	for _, c := range s.Children.List {
		if c.Detached && c.notEnded() {
			s.do(CheckChild{Session: c.Session, Run: c.Run})
		}
	}
	s.Children.scheduleCheck(s.Origin.Started, s.At)
}

// checkEnded looks after a child that says that it has ended: a signal may be forged, and
// Temporal is asked how the run ended that this one has started. Of a child that began in
// this execution Temporal tells by itself, unless a new execution begins first.
func (s *step) checkEnded(i int) error {
	c := s.Children.List[i]
	if c.Ending {
		return s.refuse("the end of %s is looked for already", c.Session)
	}
	s.Children.ending(i, s.At)
	if c.Detached {
		s.lookForEnd(c)
	}
	return nil
}

// lookForEnds looks, in a new execution, for the children that had told of their end.
func (s *step) lookForEnds() {
	for _, c := range s.Children.List {
		if c.Ending {
			s.lookForEnd(c)
		}
	}
}

func (s *step) lookForEnd(c Child) {
	s.do(CheckChild{Session: c.Session, Run: c.Run, Ending: true})
}
