package loop

import (
	"slices"
	"time"
)

// lookDue is when the run looks after children that may have ended without a report; zero if
// there are none.
func (c Children) lookDue() time.Time {
	if !slices.ContainsFunc(c.List, func(one Child) bool { return one.Alone && one.live() }) {
		return time.Time{}
	}
	return c.LookAt
}

// lookAfter asks for the children that may have ended without a report.
func (s *step) lookAfter() {
	for _, c := range s.Children.List {
		if c.Alone && c.live() {
			s.do(LookAfter{Session: c.Session, Run: c.Run})
		}
	}
	s.Children.looked(s.Origin.Started, s.At)
}

// endTold looks after a child that says that it has ended: a signal may be forged, and
// Temporal is asked how the run ended that this one has started. Of a child that began in
// this execution Temporal tells by itself, unless a new execution begins first.
func (s *step) endTold(i int) error {
	c := s.Children.List[i]
	if c.Ending {
		return s.refuse("the end of %s is looked for already", c.Session)
	}
	s.Children.ending(i, s.At)
	if c.Alone {
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
	s.do(LookAfter{Session: c.Session, Run: c.Run, Ending: true})
}
