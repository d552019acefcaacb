package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// answerBy returns until when a person may decide a request of the run; zero if there is no
// bound. An idle daemon may wait however long.
func (s *State) answerBy() time.Time {
	w := s.Suspensions.Open
	if w == nil || s.Spec == nil || s.Spec.ResumeWithin == 0 || s.idling() && !s.Holds.any() {
		return time.Time{}
	}
	since := w.At
	// The time in which calls were still coming back does not count.
	if w.AtRest {
		since = s.Suspensions.Since
	}
	return since.Add(time.Duration(s.Spec.ResumeWithin))
}

// resumeBy returns until when a person may resume the run; zero if there is no bound. A hold
// that came later has an age of its own. Else a hold on an old park could never be removed,
// and would keep the run from what it waits for.
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

// checkAge refuses a person's verb that comes too late to let the run continue. A parent, a
// time and an event are not bounded: only people forget runs.
func (s *step) checkAge(by time.Time) error {
	if by.IsZero() || !s.At.After(by) || s.End.Stopping != nil {
		return nil
	}
	return s.refuseAs(agent.CodeExpired, "", "%s could be resumed until %s (resume_within); stop or cancel the run, and fork its session",
		s.Suspensions.Open.ID, by.UTC().Format(time.RFC3339))
}
