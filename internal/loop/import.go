package loop

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// CheckPortable refuses a run that can't go on elsewhere from its state: with
// [agent.CodeBusy] one that is not suspended, is about to go on in a new execution, or has
// runs below it that are at no end, and with [agent.CodeInvalidInput] one that is below
// another itself.
func (s *State) CheckPortable() error {
	switch {
	case s.Parent.Start != nil:
		return agent.Errorf(agent.CodeInvalidInput, "session %s works for session %s; only a session of its own can be moved", s.Session, s.Parent.Start.Parent.Session).WithPath("session")
	case s.Status() != agent.StatusSuspended || s.Spec == nil || s.End.Stopping != nil || !(&step{State: *s}).nothingInFlight():
		return agent.Errorf(agent.CodeBusy, "session %s is %s; only one that is suspended or at its end can be moved: pause it first", s.Session, s.Status())
	case s.Phase == RunContinuing: // an answer may have ended its turn, which it looks at there
		e := agent.Errorf(agent.CodeBusy, "session %s goes on in a new execution just now; try again in a moment", s.Session)
		e.Retryable = true
		return e
	}
	var live []string
	for _, c := range s.Children.List {
		if c.notEnded() {
			live = append(live, c.Session)
		}
	}
	if len(live) > 0 {
		return agent.Errorf(agent.CodeBusy, "session %s has agents below it that are at no end (%s), and they can't move: let them end, or stop them", s.Session, strings.Join(live, ", "))
	}
	return nil
}

// imported goes on with a run that was suspended elsewhere: it stays suspended,
// with all that it waits for, and nobody is asked again.
func (s *step) imported(in Imported) {
	err := in.Err
	if err == nil {
		err = s.checkImport(in.State)
	}
	if err != nil {
		s.fail(err)
		return
	}
	run, by, fence := s.Run, s.Origin.Start.By, s.Log.Fence
	s.State = in.State.clone()
	s.recount()
	s.Log.setFence(fence)
	former := s.Run
	s.V, s.Run = StateVersion, run
	s.Origin.adopt(former, in.Export)
	s.continued()
	s.Requests.adopt(run) // where they are answered now
	s.Calls.adopt(former)
	s.record(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{
		Run: run, By: by, Spec: in.Spec, Imported: &agent.Imported{Export: in.Export, Run: former},
	}})
	s.record(agent.Event{Type: agent.EventRunSuspended, Suspension: s.Suspension()})
	s.Suspensions.restored(s.Log.Seq)
}

// checkImport reports why a state can't be gone on with here.
func (s *step) checkImport(at State) *agent.Error {
	if err := at.CheckPortable(); err != nil {
		return asError(err)
	}
	why := at.inconsistency()
	switch {
	case at.Session != s.Session:
		why = "it is of session " + at.Session
	case len(at.Log.Tail) > 0:
		why = "it has a part of the log in it"
	}
	if why != "" {
		return agent.Errorf(agent.CodeIncompatible, "import refused: the state can't be gone on with as session %s: %s", s.Session, why).WithPath("import")
	}
	return nil
}

// matchesRun reports whether what was said names this run: by its id, or by the one that
// it had where it was before.
func (s *State) matchesRun(said string) bool {
	return wire.MatchesRunID(said, s.Run) || s.Origin.FormerRun != "" && wire.MatchesRunID(said, s.Origin.FormerRun)
}
