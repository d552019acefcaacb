package agent

import (
	"slices"
	"strings"
	"time"
)

// Resumable returns nil if a resume without a message would succeed at a time, else the
// reason of the refusal. The codes are [CodeClosed] if the run has ended, [CodeStale]
// while it is being stopped, [CodeNotSuspended], [CodeHeldByParent], [CodeNeedsAnswer]
// and [CodeExpired].
func (s RunStatus) Resumable(at time.Time) error {
	err := s.refusal(at)
	if err == nil {
		return nil
	}
	err.Session, err.Run, err.Status = s.Session, s.Run, s.Status
	if s.Suspension != nil {
		err.Suspension = s.Suspension.ID
	}
	return err
}

func (s RunStatus) refusal(at time.Time) *Error {
	w := s.Suspension
	switch {
	case s.Status.Ended():
		return Errorf(CodeClosed, "the run is at its end (%s)", s.Status)
	case s.Reason == ReasonStopping:
		return Errorf(CodeStale, "the run is being stopped")
	case s.Reason == ReasonCancelling:
		return Errorf(CodeStale, "the run is being cancelled")
	case w == nil:
		return Errorf(CodeNotSuspended, "the run is not suspended, it is %s", s.Status)
	case !w.ResumeBy.IsZero() && at.After(w.ResumeBy):
		return Errorf(CodeExpired, "%s could be resumed until %s (resume_within)", w.ID, w.ResumeBy.UTC().Format(time.RFC3339))
	// Before requests: a run that is held and asks may lose its own hold, and then waits
	// for the answer.
	case slices.ContainsFunc(w.Holds, func(h Hold) bool { return h.From == HoldOwn }):
		return nil
	case len(w.Holds) > 0:
		return Errorf(CodeHeldByParent, "the run is held by session %s; resume that one", w.Holds[0].Session)
	case len(w.Requests) > 0:
		return Errorf(CodeNeedsAnswer, "the run waits for the answer to %s", strings.Join(requestIDs(w.Requests), ", "))
	case w.Kind != SuspensionParked:
		return Errorf(CodeNotSuspended, "the run waits for agents below it (%s), and not for a resume", w.Kind)
	}
	return nil
}

func requestIDs(list []Request) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}
