package loop

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// childStarted handles that a child has started, or why it could not.
func (s *step) childStarted(in ChildStarted) error {
	i := s.Children.find(in.Session)
	if i < 0 || !s.Children.List[i].notEnded() || s.Children.List[i].Started {
		return s.refuse("child %s is not waited for", in.Session)
	}
	c := s.Children.List[i]
	if in.Err != nil {
		s.childGone(i, &agent.Outcome{V: agent.Version, Type: "outcome", Session: c.Session, Agent: c.Agent, Status: agent.StatusFailed, Reason: string(in.Err.Code), Error: in.Err})
		return nil
	}
	owed := s.Children.started(i, in.Run, s.now())
	s.recordChild(agent.EventChildStarted, i, "")
	for _, o := range owed {
		s.orderChild(i, o)
	}
	if c.Call == "" { // in the background: its call waits only for the start
		s.backgroundResult(s.Children.List[i])
	}
	return nil
}

// reported handles a child's report. A signal may be forged, so everything in it is checked against
// what this run knows of the child.
func (s *step) reported(r wire.ChildReport) error {
	i := s.Children.find(r.Session)
	if r.Run != s.Run {
		return s.refuse("a report of %s is for run %s", r.Session, r.Run)
	}
	if i >= 0 && (r.From == "" || r.From != s.Children.List[i].Run) {
		return s.refuse("a report of %s is from run %s, which is not the one that was started", r.Session, r.From)
	}
	if !r.Status.Known() {
		return s.refuse("a report of %s has a status that is not known", r.Session)
	}
	if r.MetHold != nil && !s.plausibleHold(*r.MetHold) {
		return s.refuse("a report of %s names a hold number that %s has not reached", r.Session, r.MetHold.Session)
	}
	live := i >= 0 && s.Children.List[i].notEnded()
	// The budget first: it has sums and needs no number, so a report that is too old for the
	// status may still bring news of the budget.
	news := live && s.childBudgetReported(r)
	switch {
	case live && r.MetHold != nil:
		s.answerMetHold(i, *r.MetHold)
		return nil
	case live && r.Status.Ended(): // whatever its number: no other report comes after it
		return s.checkEnded(i)
	case news && !s.Children.List[i].isNews(r.Seq):
		if a := s.Ledger.Accounts[s.Ledger.find(r.Session)]; r.Status == agent.StatusSuspended && a.blocked() {
			s.Children.awaitsMore(i, s.now())
			s.answerWaits()
		}
		return nil
	case !live || !s.Children.List[i].isNews(r.Seq):
		return s.refuse("child %s is not waited for, or has reported more already", r.Session)
	}
	if s.Children.reported(i, r, s.now()) {
		t := agent.EventChildResumed
		if r.Status == agent.StatusSuspended {
			t = agent.EventChildSuspended
		}
		s.recordChild(t, i, "")
	}
	s.releaseChild(i)
	s.answerWaits()
	s.Children.trim()
	return nil
}
