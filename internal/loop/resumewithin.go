package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// answerBy is until when a person may decide what the run asks; zero if there is no bound.
// A daemon that is idle waits for whatever comes, however long.
func (s *State) answerBy() time.Time {
	w := s.Suspensions.Open
	if w == nil || s.Spec == nil || s.Spec.ResumeWithin == 0 || s.idling() && !s.Holds.any() {
		return time.Time{}
	}
	since := w.At
	if w.AtRest {
		since = s.Suspensions.Since
	}
	return since.Add(time.Duration(s.Spec.ResumeWithin))
}

// resumeBy is until when a person may resume the run; zero if there is no bound. A hold
// that was added later has an age of its own: else a hold on an old park could never be
// lifted, and would keep the run from what it waits for.
func (s *State) resumeBy() time.Time {
	by, h := s.answerBy(), s.Holds.own()
	if by.IsZero() || h == nil {
		return by
	}
	if lifted := h.At.Add(time.Duration(s.Spec.ResumeWithin)); lifted.After(by) {
		return lifted
	}
	return by
}

// checkAge refuses what a person says to let a run go on after its time. The parent, a time
// and an event are not asked: nobody forgot those.
func (s *step) checkAge(by time.Time) error {
	if by.IsZero() || !s.At.After(by) || s.End.Stopping != nil {
		return nil
	}
	return s.refuseAs(agent.CodeExpired, "", "%s could be let go on until %s (resume_within); stop or cancel the run, and fork its session",
		s.Suspensions.Open.ID, by.UTC().Format(time.RFC3339))
}
