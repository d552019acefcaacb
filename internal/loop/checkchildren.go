package loop

import (
	"slices"
	"time"
)

// checkDue returns when to check children that may have ended without a report; zero if there are
// none.
func (c Children) checkDue() time.Time {
	if !slices.ContainsFunc(c.List, func(one Child) bool { return one.Detached && one.notEnded() }) {
		return time.Time{}
	}
	return c.CheckAt
}

// checkChildren checks the children that may have ended without a report.
func (s *step) checkChildren() {
	for _, c := range s.Children.List {
		if c.Detached && c.notEnded() {
			s.do(CheckChild{Session: c.Session, Run: c.Run})
		}
	}
	s.Children.scheduleCheck(s.Origin.Started, s.At)
}

// checkEnded handles a child's report that it has ended. A signal may be forged, so the run asks
// Temporal for the outcome. Temporal delivers the result of a child that began in this execution
// by itself, so the run asks only about detached ones.
func (s *step) checkEnded(i int) error {
	c := s.Children.List[i]
	if c.Ending {
		return s.refuse("the end of %s is looked for already", c.Session)
	}
	// Ending is set for the others, too: if a new execution begins before the result comes, that
	// execution has to ask (lookForEnds).
	s.Children.ending(i, s.At)
	if c.Detached {
		s.lookForEnd(c)
	}
	return nil
}

// lookForEnds asks, in a new execution, for the ends of children that had reported them before it.
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
