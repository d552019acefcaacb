package loop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// checkReturned takes the result of the current check's call, and records its verdict.
func (s *step) checkReturned(r agent.ToolResult) {
	at, k := s.Checks.Current, s.currentCheck()
	u := s.checkUpdate()
	u.Status, u.Model, u.Usage, u.Cost = r.Status, at.Model, at.Usage, at.Cost
	if !at.Since.IsZero() {
		u.Duration = agent.Duration(s.At.Sub(at.Since))
	}
	if at.Point == agent.PointAfterTurn {
		u.Decision, u.Error = s.turnDecided(k, r)
	} else if r.Status == agent.CallOK || r.Status != agent.CallSkipped && s.End.Stopping == nil {
		v, wrong := s.verdictOf(k, r)
		if v != nil {
			v.Text, v.ToParent = "", false // only hooks around a suspension or a resume say these
		}
		if v == nil {
			s.Checks.failed(wrong)
			v = failedVerdict(k, wrong)
		}
		s.Checks.decide(v)
		u.Verdict, u.Error = v, wrong
	}
	s.record(agent.Event{Type: agent.EventCheckDone, Check: u})
}

// Bounds of a verdict, in bytes of JSON: the log has it, and the model reads it.
const (
	maxReasoning = 4 << 10
	maxEvidence  = 512
	maxEvidences = 16
)

// verdictOf reads the verdict in a call's result. wrong says why there is none.
func (s *step) verdictOf(k agent.Check, r agent.ToolResult) (v *agent.Verdict, wrong string) {
	if r.Status != agent.CallOK {
		return nil, s.whyFailed(r)
	}
	raw := []byte(r.Text)
	if k.Kind() == agent.CheckByAgent {
		var said childAnswer
		if err := json.Unmarshal(raw, &said); err != nil {
			return nil, "the agent's answer could not be read"
		}
		raw = said.Output
	}
	v = &agent.Verdict{}
	if err := json.Unmarshal(raw, v); err != nil || v.Decision == "" {
		return nil, "what it said is no verdict"
	}
	v.Text, v.Skip = fit(v.Text, maxHookText), maySkip(k, v)
	v.Reasoning, v.NextStep = fit(v.Reasoning, maxReasoning), fit(v.NextStep, maxReasoning)
	v.Evidence = v.Evidence[:min(len(v.Evidence), maxEvidences)]
	for i, e := range v.Evidence {
		v.Evidence[i] = fit(e, maxEvidence)
	}
	return v, ""
}

// whyFailed returns why a check's call failed, and is never empty: a call that says nothing has failed too.
func (s *step) whyFailed(r agent.ToolResult) string {
	why := fit(r.Text, maxReasoning)
	if why == "" && s.Revision >= silentFailureSince {
		return "it did not say why"
	}
	return why
}

// failedVerdict returns what a check counts as that could not be made; nil if the run is held.
func failedVerdict(k agent.Check, wrong string) *agent.Verdict {
	v := &agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "The check could not be made: " + wrong}
	switch k.OnError {
	case agent.CheckErrorAccept:
		v.Decision = agent.DecisionAccept
	case agent.CheckErrorHold:
		return nil
	}
	return v
}

// hasVerdict reports whether the current check's call is done.
func (s *step) hasVerdict() bool {
	if !s.awaitsCalls() || s.Checks.Current == nil {
		return false
	}
	i := s.Calls.find(s.Checks.Current.Call)
	return i >= 0 && s.Calls.List[i].State == CallDone
}

// takeVerdict does what the current check's verdict asks for.
func (s *step) takeVerdict() {
	k, at := s.currentCheck(), s.Checks.end()
	s.Calls.removeCheck(at.Call)
	if len(s.Calls.List) == 0 { // it was made between two turns
		s.Turn.end()
	}
	if at.Verdict == nil && at.Decision == nil && at.Failed != "" && s.End.Stopping == nil {
		s.holdForLostWorkers(agent.Errorf(agent.CodeToolFailed, "the check %s could not be made: %s", k.Name, at.Failed))
	}
	switch at.Point {
	case agent.PointVerify:
		s.takeVerdictOnAnswer(k, at)
	case agent.PointBeforeRun:
		s.takeVerdictOnTask(k, at)
	case agent.PointBeforeCalls:
		s.takeVerdictOnCalls(k, at)
	case agent.PointStalled:
		s.takeVerdictOnStall(k, at)
	case agent.PointAfterTurn:
		s.takeDecision(k, at)
	}
}

// takeVerdictOnAnswer does what a verdict on the answer that waits asks for.
func (s *step) takeVerdictOnAnswer(k agent.Check, at CurrentCheck) {
	switch v := at.Verdict; {
	case s.End.Stopping != nil:
		s.takeVerdictAtEnd(k, v)
	case v == nil: // it was cut off, or failed and the run is held: the rules make it again
	case v.Decision == agent.DecisionVeto:
		s.countAsked(k)
		s.vetoed(k, at)
	default:
		if s.acceptedBy(k, *v) {
			s.verified()
		}
	}
}

// acceptedBy notes that a check accepts the answer, and reports whether it was the last one.
func (s *step) acceptedBy(k agent.Check, v agent.Verdict) (all bool) {
	checks := s.Spec.ChecksAt(agent.PointVerify)
	s.countAsked(k)
	s.Checks.skipLater(skippedBy(v, checks))
	return s.Checks.accepted(len(checks))
}

// takeVerdictAtEnd takes a verdict while the run ends. A run that hands off at a limit completes after
// all, if its last check accepts, or each check behind it is skipped. Else the handoff is made:
// [step.useProposal] takes the text of an answer that was not vetoed. After a stop no verdict counts.
func (s *step) takeVerdictAtEnd(k agent.Check, v *agent.Verdict) {
	switch {
	case s.End.Stopping.Failure == nil || v != nil && v.Decision != agent.DecisionAccept:
		s.Checks.dropProposal()
		return
	case v == nil:
		return
	}
	all, ends := s.acceptedBy(k, *v), s.daemon() == nil && !s.messagesWait()
	for ends && !all {
		why := s.skipsNext()
		if why == "" {
			return
		}
		all = s.skipCheck(why)
	}
	if ends {
		s.completeWith(*s.Checks.Proposal)
	}
}

// useProposal takes the text of an answer that waits for its checks when the run hands off at a limit:
// it is the last reply, and the model is not asked for another one.
func (s *step) useProposal() {
	p := s.Checks.Proposal
	if p == nil {
		return
	}
	if f := s.End.Stopping.Failure; f != nil && f.Final {
		s.Turn.setText(p.Text)
		s.End.keepSummary("")
	}
	s.Checks.dropProposal()
}

// verified completes the run with the answer that all checks have accepted. A message that waits
// makes the model go on.
func (s *step) verified() {
	p := s.Checks.Proposal
	s.Checks.dropProposal()
	if s.deliver(true) {
		return
	}
	s.completeWith(*p)
}

// vetoed tells the model why its answer was not accepted, or ends the run after too many vetoes.
func (s *step) vetoed(k agent.Check, at CurrentCheck) {
	v, p := *at.Verdict, *s.Checks.Proposal
	s.noteVeto()
	capped := s.Checks.vetoed(s.Spec.Verify.Max)
	switch why := quote(firstOf(v.Reasoning, v.NextStep, k.FeedbackFallback)); {
	case k.Max > 0 && s.Checks.vetoedBy(at.Index, k):
		s.failWith(p, agent.Errorf(agent.CodeVerifyCapped, "the check %s has vetoed the answer %d times, as often as its max allows; the last time: %s", k.Name, k.Max, why))
		return
	case capped:
		s.failWith(p, agent.Errorf(agent.CodeVerifyCapped, "the checks have vetoed the answer %d times, as often as verify.max allows; the last one was %s: %s", s.Checks.Vetoes, k.Name, why))
		return
	}
	m := agent.TextMessage(agent.RoleUser, feedback(k, v))
	m.Note = agent.NoteVerify
	s.recordMessage(m, feedbackSize(k, at))
}

// feedbackSize returns how many bytes a veto's feedback counts (see weight.go). The runtime's own
// sentences count none: the error of a check that failed, and a veto without a call (see vetoUnseen).
func feedbackSize(k agent.Check, at CurrentCheck) int {
	switch v := *at.Verdict; {
	case at.Failed != "", at.Call == "":
		return 0
	case v.Reasoning == "" && v.NextStep == "":
		return len(k.FeedbackFallback) + verdictSize(v)
	default:
		return verdictSize(v)
	}
}

// verdictSize returns how many bytes a verdict counts: its texts.
func verdictSize(v agent.Verdict) int {
	n := len(v.Reasoning) + len(v.NextStep)
	for _, e := range v.Evidence {
		n += len(e)
	}
	return n
}

// feedback returns what the model reads after a veto.
func feedback(k agent.Check, v agent.Verdict) string {
	return fmt.Sprintf("Your answer was not accepted by the check %s.\n\n%s\n\nGo on with the task, and then answer again.", k.Name, vetoText(k, v))
}

// vetoText returns what a veto says.
func vetoText(k agent.Check, v agent.Verdict) string {
	var said []string
	if v.Reasoning == "" && v.NextStep == "" {
		v.Reasoning = firstOf(k.FeedbackFallback, "It gave no reason. Look again at what you were asked, and whether your work does it.")
	}
	if v.Reasoning != "" {
		said = append(said, v.Reasoning)
	}
	if v.NextStep != "" {
		said = append(said, "Next: "+v.NextStep)
	}
	if len(v.Evidence) > 0 {
		said = append(said, "Evidence:\n- "+strings.Join(v.Evidence, "\n- "))
	}
	return strings.Join(said, "\n\n")
}

// checkCount returns how the outcome counts the checks; nil if the agent has none.
func (s *State) checkCount() *agent.CheckCount {
	if !s.verifies() {
		return nil
	}
	n := &agent.CheckCount{Invocations: s.Checks.Invocations, Vetoes: s.Checks.Vetoes, CapReached: s.Checks.Capped, CapReachedBy: s.Checks.CappedBy}
	if most := s.Spec.Verify.Max; most > 0 {
		n.Max = &most
	}
	return n
}
