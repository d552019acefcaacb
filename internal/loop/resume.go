package loop

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// resume removes the run's own hold. Without a hold it wakes a parked run.
func (s *step) resume(o agent.ResumeCommand) error {
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.CodeStale, "", "%s", s.End.doing())
	case s.Suspensions.Open == nil:
		return s.refuseAs(agent.CodeNotSuspended, "", "the run is not suspended, it is %s", s.Status())
	case o.Suspension != "" && o.Suspension != s.Suspensions.Open.ID:
		return s.refuseAs(agent.CodeStale, "suspension", "%s is not open; open is %s", o.Suspension, s.Suspensions.Open.ID)
	case s.Holds.own() == nil && s.Holds.any():
		return s.refuseAs(agent.CodeHeldByParent, "", "the run is held by session %s; resume that one", s.Holds.List[0].Session)
	case s.Holds.own() == nil && len(s.Requests.Open) > 0:
		return s.refuseAs(agent.CodeNeedsAnswer, "", "the run waits for the answer to %s", strings.Join(s.Requests.ids(), ", "))
	}
	if s.isFlow() && len(o.Parts) > 0 {
		return s.refuseFlowFiles()
	}
	// Only children or a missing grant keep the run: a resume can't end these (decision
	// 0007).
	if s.Holds.own() == nil && s.Park == nil && s.isFlow() && s.resumeSteps(o) {
		return nil
	}
	if s.Holds.own() == nil && s.Park == nil {
		return s.refuseAs(agent.CodeNotSuspended, "", "%s", s.waitsForOthers())
	}
	message := agent.Message{Role: agent.RoleUser, By: o.By, Parts: agent.SendCommand{Text: o.Message, Parts: o.Parts}.AllParts()}
	said := len(message.Parts) > 0
	// The message comes with the resume, so it must not be dropped for want of space.
	if said && !s.messageFits(message) {
		return s.checkRoom("message")
	}
	if err := s.mayShow(o.Parts); err != nil {
		return err
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: o.By}
	}
	s.resumed.FromSummary = o.FromSummary
	// Not both: resuming a paused tree must not wake its parked runs (decision 0007).
	if s.Holds.own() != nil {
		s.removeHold(agent.HoldOwn)
		s.orderChildren(s.passHolds(agent.VerbResume, 0))
	} else if !s.idling() {
		s.endPark()
	} else if !said {
		s.steerOwn(wakeMessage("Somebody resumed you, and said no more."))
	}
	cause := "Somebody resumed you."
	if s.resumed.Cause == agent.InitiatorParent {
		cause = "The agent above you resumed you."
	}
	s.resumeWith(cause, message.Words())
	if o.FromSummary {
		s.summarizeFirst()
	}
	if said {
		s.resumed.Mode = agent.ResumedMessage
		s.steer(message)
	}
	return nil
}
