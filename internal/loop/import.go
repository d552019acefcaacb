package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// CheckPortable returns an error if the run can't be exported and continue elsewhere from its state.
//
// The error is [agent.CodeBusy] if the run is not suspended, is about to continue as new, or has
// children that have not ended. It is [agent.CodeInvalidInput] if the run is itself a child.
func (s *State) CheckPortable() error {
	switch {
	case s.Parent.Start != nil:
		return agent.Errorf(agent.CodeInvalidInput, "session %s works for session %s; only a session of its own can be moved", s.Session, s.Parent.Start.Parent.Session).WithPath("session")
	case s.Status() != agent.StatusSuspended || s.Spec == nil || s.End.Stopping != nil || !(&step{State: *s}).canRest():
		return agent.Errorf(agent.CodeBusy, "session %s is %s; only a suspended or ended session can be moved: pause it first", s.Session, s.Status())
	case s.Phase == RunContinuing: // an answer may have ended the wait: the next execution decides what follows
		e := agent.Errorf(agent.CodeBusy, "session %s is continuing as new; try again in a moment", s.Session)
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
		return agent.Errorf(agent.CodeBusy, "session %s has sub-agents that have not ended (%s), and they can't move: let them end, or stop them", s.Session, strings.Join(live, ", "))
	}
	return nil
}

// CheckAnswers returns why a suspended run refuses answers that come with its import; nil if it
// takes them all; by is who imports it. They are as good as a signal's: nothing proves who gives them.
func (s *State) CheckAnswers(m Moment, by string, answers []agent.AnswerTo) error {
	if len(answers) == 0 {
		return nil
	}
	try := newStep(*s, m)
	try.Origin.startedBy(by)
	// First: a late answer would be recorded, though it decides nothing.
	for _, a := range answers {
		if _, err := try.findRequest(a.Request); err != nil {
			return err
		}
	}
	return try.commandReceived(CommandReceived{Command: agent.AnswersCommand{Answers: answers}})
}

// imported continues a run that was suspended elsewhere. It stays suspended, with everything that it
// waits for; its open requests keep their ids.
func (s *step) imported(in Imported) {
	err := in.Err
	if err == nil {
		err = s.checkImport(in.State)
	}
	// The answers themselves come as the first verb (see workflows). Here, since an import that is
	// refused here is not used up.
	if err == nil {
		if bad := in.State.CheckAnswers(s.Moment, s.Origin.Start.By, s.Origin.Start.Answers); bad != nil {
			err = asError(bad)
		}
	}
	if err != nil {
		s.fail(err)
		return
	}
	// These three belong to this run and this store. All else comes from the imported state.
	run, by, fence := s.Run, s.Origin.Start.By, s.Log.Fence
	s.State = in.State
	s.unshare()
	s.recount()
	s.Log.setFence(fence)
	former := s.Run // of the imported state: s.Run is set to this run below
	s.V, s.Run = StateVersion, run
	s.importMemory(by)
	s.Counters.Grants = nil // whoever imports is asked again
	if s.Revision >= importAsksAgainSince {
		s.Requests.forgetAlways()
	}
	s.Origin.adopt(former, in.Export)
	s.Origin.startedBy(by)
	s.continued()         // drops what only the other execution had: timers, checks
	s.Requests.adopt(run) // requests name the run that answers go to
	s.Calls.adopt(former)
	s.record(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{
		Run: run, By: by, Spec: in.Spec, Imported: &agent.Imported{Export: in.Export, Run: former},
	}})
	// The run may report that it is suspended only once the store here has an event of that.
	s.record(agent.Event{Type: agent.EventRunSuspended, Suspension: s.Suspension()})
	s.Suspensions.restored(s.Log.Seq)
}

// checkImport returns why a run can't continue here from an imported state; nil if it can.
func (s *step) checkImport(at State) *agent.Error {
	// The exporter has checked this, too, but nothing proves it.
	if err := at.CheckPortable(); err != nil {
		return asError(err)
	}
	why := at.inconsistency()
	switch {
	case at.Session != s.Session:
		why = "it is of session " + at.Session
	case len(at.Log.Tail) > 0:
		why = "it has a part of the log in it"
	case slices.ContainsFunc(slices.Concat(at.Messages.Files(), at.Calls.Files(), at.Children.Files()), func(f *agent.File) bool { return f.Session != s.Session || f.Check() != nil }):
		why = "a message or a result that waits has a file of another session"
	}
	if why != "" {
		return agent.Errorf(agent.CodeIncompatible, "import refused: the state can't be gone on with as session %s: %s", s.Session, why).WithPath("import")
	}
	return nil
}

// CheckLength refuses an imported state that could not be carried over once all that may still come waits in it, with
// [agent.CodeTooLarge]. It decides by what an encoder writes, so no workflow may call it.
func (s State) CheckLength() error {
	s.Log = Log{} // the import gives it another one
	st := newStep(s, Moment{})
	st.recount() // an export may say anything about its sizes
	text, err := json.Marshal(st.State)
	if err != nil {
		return fmt.Errorf("measuring an imported state: %w", err)
	}
	if n, most := len(text)+max(0, st.space()), maxState-alongShare; n > most {
		return agent.Errorf(agent.CodeTooLarge, "import refused: with all that may come to wait in it, the state has %d bytes; at most %d are taken", n, most).WithPath("import")
	}
	return nil
}

// matchesRun reports whether said names this run: by its id, or by the one that it had before an
// import.
func (s *State) matchesRun(said string) bool {
	return wire.MatchesRunID(said, s.Run) || s.Origin.FormerRun != "" && wire.MatchesRunID(said, s.Origin.FormerRun)
}
