package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Bounds of what a hook of a turn says, in JSON bytes.
const (
	maxMoveWhy     = 128
	maxOffered     = 64 // names and patterns
	maxOfferedName = 128
)

// mayCallHook reports whether the next hook of the last turn may be called. It is called between two
// turns, as a check of an answer is.
func (s *step) mayCallHook() bool {
	return s.Hooks.Due && s.ready() && s.mayBeginTurn() && !s.Log.blocksTurns() && !s.historyForbidsCalls()
}

// turnBudget returns the limit of turns as a hook sees it.
func (s *State) turnBudget() *agent.TurnBudget {
	b := &agent.TurnBudget{Limit: s.Budget.Limits.OwnTurns, Max: s.Budget.Limits.OwnTurns, Extensions: s.Adaptive.Extensions}
	used := s.ownTurns() - s.Budget.OwnTurnsAtRenewal
	if n, limit, ok := s.adaptiveTurns(); ok {
		used, b.Limit = n, limit
	}
	b.Remaining = max(0, b.Limit-used)
	return b
}

// turnDecided reads what a hook of a turn has returned. wrong says why it could not be called.
func (s *step) turnDecided(k agent.Check, r agent.ToolResult) (d *agent.TurnDecision, wrong string) {
	d = &agent.TurnDecision{}
	switch {
	case r.Status == agent.CallSkipped || r.Status != agent.CallOK && s.End.Stopping != nil:
		return nil, ""
	case r.Status != agent.CallOK:
		wrong = s.whyFailed(r)
	case json.Unmarshal([]byte(r.Text), d) != nil:
		wrong = "what it said is no decision"
	default:
		if err := d.Check(); err != nil {
			wrong = err.Error()
		} else if n := d.Next; n != nil && n.Model != "" && !slices.Contains(s.Spec.Models(), n.Model) {
			wrong = fmt.Sprintf("next.model is %s, and the agent's models are %s", quote(n.Model), strings.Join(s.Spec.Models(), ", "))
		}
	}
	if wrong != "" {
		s.Checks.failed(wrong)
		if d = nil; k.OnError == agent.CheckErrorAccept {
			d = &agent.TurnDecision{}
		}
	} else {
		d.Reason, d.Message = fit(d.Reason, maxReason), fit(d.Message, maxHookNote)
		if d.Next != nil {
			d.Next.Tools = d.Next.Tools[:min(len(d.Next.Tools), maxOffered)]
			for i, name := range d.Next.Tools {
				d.Next.Tools[i] = fit(name, maxOfferedName)
			}
		}
	}
	s.Checks.decideTurn(d)
	return d, wrong
}

// takeDecision does what a hook of a turn has decided.
func (s *step) takeDecision(k agent.Check, at CurrentCheck) {
	d := at.Decision
	if d == nil || s.End.Stopping != nil { // it was cut off, or failed and the run is held: the rules call it again
		return
	}
	s.Hooks.called(len(s.Spec.ChecksAt(agent.PointAfterTurn)), d.Next)
	if d.Message != "" {
		s.recordNoteSized(agent.NoteHook, d.Message, len(d.Message))
	}
	if d.Action != agent.TurnFail {
		s.Recovery.reset(agent.FailureUnclearRequest, agent.FailureScopeTooLarge)
	}
	switch d.Action {
	case agent.TurnExtend:
		s.extendLimit(*d)
	case agent.TurnStop:
		s.stopByHook(*d)
	case agent.TurnAsk:
		s.askLimit(agent.Errorf(agent.CodeUnable, "%s", d.Reason))
	case agent.TurnFail:
		s.failByHook(k, *d)
	}
}

// extendLimit moves the adaptive limit up, within its bound.
func (s *step) extendLimit(d agent.TurnDecision) {
	_, limit, ok := s.adaptiveTurns()
	to := min(max(limit+d.By, d.Until), s.Budget.Limits.OwnTurns)
	if !ok || to <= limit {
		return
	}
	m := agent.LimitMove{Limit: "own_turns", From: limit, To: to, Turn: s.Turn.N, Reason: agent.MovedByHook, Why: fit(d.Reason, maxMoveWhy)}
	s.Adaptive.move(m)
	s.record(agent.Event{Type: agent.EventLimitMoved, Moved: &m})
}

// stopByHook stops the run, as a person's stop does.
func (s *step) stopByHook(d agent.TurnDecision) {
	s.resumed = agent.Resumed{Cause: agent.InitiatorPolicy}
	o := agent.StopCommand{}
	o.Reason = firstOf(d.Reason, agent.ReasonPostTurn)
	_ = s.stop(o) // refused only during a stop, which takeDecision has looked for
}

// hookRemedies are what a run does about what a hook reports, if the Spec's recovery does not say.
var hookRemedies = map[agent.FailureKind]agent.Remedy{
	agent.FailureUnclearRequest:  {Do: agent.RecoverAsk},
	agent.FailureScopeTooLarge:   {Do: agent.RecoverCorrect, Times: 3},
	agent.FailurePolicyViolation: {Do: agent.RecoverHandoff},
}

// failByHook does what the Spec's recovery says about a failure that a hook reports.
func (s *step) failByHook(k agent.Check, d agent.TurnDecision) {
	code, what := agent.CodeUnable, "the request is not clear"
	switch d.Failure {
	case agent.FailureScopeTooLarge:
		what = "the work is too large for one step; do a smaller part of it first"
	case agent.FailurePolicyViolation:
		code, what = agent.CodeDenied, "a policy was broken"
	}
	err := agent.Errorf(code, "%s, says the check %s: %s", what, k.Name, short(d.Reason))
	s.learn(d.Failure, err)
	if !s.recover(d.Failure, "", err) {
		s.recoverBy(hookRemedies[d.Failure], d.Failure, "", err)
	}
}
