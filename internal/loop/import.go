package loop

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Portable refuses a run that can't go on elsewhere from its state: with
// [agent.Busy] one that is not suspended, or has runs below it that are at no end,
// and with [agent.InvalidInput] one that is below another itself.
func (s State) Portable() error {
	switch {
	case s.Birth != nil:
		return agent.Errorf(agent.InvalidInput, "session %s works for session %s; only a session of its own can be moved", s.Session, s.Birth.Parent.Session).At("session")
	case s.Status() != agent.Suspended || s.Spec == nil || s.Stopping != nil || !(&step{State: s}).idle():
		return agent.Errorf(agent.Busy, "session %s is %s; only one that is suspended or at its end can be moved: pause it first", s.Session, s.Status())
	}
	var live []string
	for _, c := range s.Children {
		if c.live() {
			live = append(live, c.Session)
		}
	}
	if len(live) > 0 {
		return agent.Errorf(agent.Busy, "session %s has agents below it that are at no end (%s), and they can't move: let them end, or stop them", s.Session, strings.Join(live, ", "))
	}
	return nil
}

// imported goes on with a run that was suspended elsewhere: it stays suspended,
// with all that it waits for, and nobody is asked again.
func (s *step) imported(in Imported) {
	err := in.Err
	if err == nil {
		err = unfit(in.State)
	}
	if err != nil {
		s.fail(err)
		return
	}
	run, by, fence := s.Run, s.Start.By, s.Log.Fence
	s.State = in.State.clone()
	s.Log.Fence = fence
	former := s.Run
	s.V, s.Run, s.Former, s.Imported = agent.Version, run, former, in.Export
	s.continued()
	for i := range s.Requests {
		s.Requests[i].Run = run // where it is answered now
	}
	for i := range s.Calls {
		s.Calls[i].Of = firstOf(s.Calls[i].Of, former)
	}
	s.record(agent.Event{Type: agent.RunStarted, Started: &agent.Started{
		Run: run, By: by, Spec: in.Spec, Imported: &agent.Imported{Export: in.Export, Run: former},
	}})
	s.record(agent.Event{Type: agent.RunSuspended, Suspension: s.Suspension()})
	s.Wait.Seq, s.Wait.Saved = s.Log.Seq, false
}

// unfit tells why a state can't be gone on with.
func unfit(s State) *agent.Error {
	if err := s.Portable(); err != nil {
		return asError(err)
	}
	if len(s.Log.Tail) > 0 {
		return agent.Errorf(agent.Internal, "the state of session %s has a part of the log in it", s.Session)
	}
	return nil
}

// names tells whether what was said names this run: by its id, or by the one that
// it had where it was before.
func (s State) names(said string) bool {
	return agent.NamesRun(said, s.Run) || s.Former != "" && agent.NamesRun(said, s.Former)
}

// owner is who lets a suspended run go on: exactly one at a time.
func (s State) owner() agent.Owner {
	switch {
	case slices.ContainsFunc(s.Holds, func(h agent.Hold) bool { return h.From == agent.HoldInherited }):
		return agent.OwnedByParent
	case len(s.Holds) > 0 && s.Wait.By == agent.ByParent:
		return agent.OwnedByParent
	case len(s.Holds) > 0 || len(s.Requests) > 0:
		return agent.OwnedByOperator
	case s.Park != nil && len(s.Park.Conditions.List()) == 0:
		return agent.OwnedByOperator
	}
	return agent.OwnedByRuntime
}
