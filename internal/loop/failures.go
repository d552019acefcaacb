package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// This file has the failures that the Spec's recovery may name, where the loop meets them.

// truncated drops a reply that was cut off, and does what the Spec's recovery says.
func (s *step) truncated(model string) {
	const why = "it was cut off at its output limit; ask for less, or raise max_output_tokens"
	err := agent.Errorf(agent.CodeBadOutput, "the reply of %s was of no use: %s", model, why)
	s.learn(agent.FailureTruncated, err)
	if _, named := s.Spec.Recovery[agent.FailureTruncated]; !named || s.End.Stopping != nil {
		s.retryReply(model, why)
		return
	}
	s.record(agent.Event{Type: agent.EventModelRetried})
	s.recordTurnEnd()
	s.recoverOrFail(agent.FailureTruncated, err)
}

// providerFailed ends the run after a model call that failed for good, or recovers from it.
func (s *step) providerFailed(err *agent.Error) {
	if err.Code != agent.CodeProviderError && err.Code != agent.CodeProviderAuth {
		s.failUnlessStopping(err)
		return
	}
	s.learn(agent.FailureProvider, err)
	s.recoverOrFail(agent.FailureProvider, err)
}

// repairCall counts a call of finish whose arguments do not fit the output's schema, and reports
// whether the run does something other than to reject the call.
func (s *step) repairCall(fault string) bool {
	err := s.badOutput(fault)
	again := s.Turn.repair(s.Spec.Repairs)
	s.noteVeto()
	if s.recoverFirst(agent.FailureBadOutput, err) {
		return s.Recovery.Note == "" // a correction follows the call's result
	}
	if !again {
		s.recoverOrFail(agent.FailureBadOutput, err)
	}
	return !again
}

// loops ends a run whose model repeats itself, asks a person, or does what the Spec's recovery says.
func (s *step) loops(err *agent.Error) {
	s.learn(agent.FailureLoop, err)
	if s.recover(agent.FailureLoop, "", err) {
		return
	}
	// The run may continue after the answer, so the calls need results.
	if s.Spec.OnLoop == agent.LimitActionAsk {
		s.skipPending("the same call was made too often")
	}
	s.stopAtLimit(agent.FailureLoop, err, s.Spec.OnLoop)
}

// hasUnableTool reports whether return_unable is the runtime's tool here.
func (s *step) hasUnableTool() bool {
	_, named := s.Spec.Recovery[agent.FailureUnable]
	return named && s.hasFinishTool()
}

// returnUnable ends a run whose model said that it can't do its task, or asks a person. A daemon ends
// the task alone: it has others to do, and its next run must not continue this one.
func (s *step) returnUnable(c Call) {
	said := readUnable(c.Arguments)
	err := agent.Errorf(agent.CodeUnable, "the model says that it can't do its task: %s", firstOf(short(said.Rationale), short(firstOf(said.Blockers...)), "it gives no reason"))
	s.learn(agent.FailureUnable, err)
	if s.Spec.Recovery[agent.FailureUnable].Do == agent.RecoverAsk {
		s.askAbout(agent.FailureUnable, err)
		return
	}
	if s.daemon() != nil {
		s.endTask()
		return
	}
	s.handOff(Failure{Kind: agent.FailureUnable, Error: err, Reported: said})
}

// learnFailed keeps the failed calls of a turn that is over as lessons. It does so before any of them
// may end the run.
func (s *step) learnFailed(calls []Call) {
	for _, c := range calls {
		if c.Result.Status == agent.CallFailed && !endsRun(c) && !s.interrupted(c) {
			s.learn(agent.FailureToolError, failedCall(c))
		}
	}
}

// failedCall is the failure of a call.
func failedCall(c Call) *agent.Error {
	return agent.Errorf(agent.CodeToolFailed, "the tool %s failed: %s", c.Tool, short(c.Result.Text))
}

// endsRun reports whether a call is one of the tools with which a model ends its run.
func endsRun(c Call) bool {
	return c.Tool == agent.FinishTool || c.Tool == agent.ReturnUnableTool
}

// failedCalls counts the failed calls of a turn that is over, and recovers from the first tool
// that failed too often.
func (s *step) failedCalls(calls []Call) {
	for _, c := range calls {
		if s.outcomeDecided() || s.End.Stopping != nil { // a remedy has ended the run
			return
		}
		switch {
		case endsRun(c) || s.interrupted(c):
		case c.Result.Status == agent.CallOK:
			s.Recovery.resetTool(c.Tool)
		case c.Result.Status == agent.CallFailed:
			if !s.Requests.asks(agent.RequestLimit) { // one question is enough
				s.recover(agent.FailureToolError, c.Tool, failedCall(c))
			}
		}
	}
}

// denied recovers from calls of a reply that a rule or the parent denied, and reports whether the
// reply's other calls are not made.
func (s *step) denied(rulings []agent.Rule) bool {
	for i, c := range s.Calls.List {
		forbidden := slices.Contains(s.Parent.ForbiddenTools, c.Tool)
		if !forbidden && rulings[i].Do != agent.RulingDeny {
			continue
		}
		err := agent.Errorf(agent.CodeDenied, "the model made a call of %s that is denied: %s", c.Tool, short(c.Result.Text))
		s.learn(agent.FailurePolicyViolation, err)
		return s.recover(agent.FailurePolicyViolation, "", err) && s.Recovery.Note == ""
	}
	s.Recovery.reset(agent.FailurePolicyViolation)
	return false
}
