package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/wire"
)

// takeSteps records the new steps, and opens what they wait for. Steps that need nothing are
// begun by the rules. It reports whether there was space for any of them.
func (s *step) takeSteps(a wire.FlowAnswer) bool {
	from := len(s.Calls.List)
	m := agent.Message{Role: agent.RoleAssistant}
	for i, step := range a.Steps {
		c := step.ToolCall
		c.ID = callID(s.Turn.N, i+1)
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
		s.Calls.addStep(c, step, s.Flow.takeAnswers(c))
	}
	s.recordMessage(m, m.Size())
	s.Turn.work()
	for _, c := range s.Calls.List[from:] {
		s.record(agent.Event{Type: agent.EventCallRequested, Call: s.callUpdate(c, "")})
	}
	// The answer has entries for the new steps alone; the list may have older ones before them.
	r := wire.Reply{
		ArgumentErrors: after(from, a.ArgumentErrors), RuleMatches: after(from, a.RuleMatches), Digests: after(from, a.Digests),
	}
	for i := from; i < len(s.Calls.List); i++ {
		if status, text, ok := s.rejection(i, s.Calls.List[i].ToolCall, r); ok {
			s.setResult(i, status, text)
		}
	}
	rulings, _ := s.applyRules(r)
	s.openSteps(from, r, rulings, a.ParkRequests)
	return slices.ContainsFunc(s.Calls.List[from:], func(c Call) bool { return !c.LeftOut })
}

// after returns a list with n empty elements before the given ones.
func after[T any](n int, list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return append(make([]T, n, n+len(list)), list...)
}

// openSteps opens the requests and waits of the steps from an index on.
func (s *step) openSteps(from int, r wire.Reply, rulings []agent.Rule, parks []wire.ParkRequest) {
	for i := from; i < len(s.Calls.List); i++ {
		c := s.Calls.List[i]
		if c.Tool == agent.AwaitResumptionTool && len(parks) > 0 {
			if c.State == CallPending {
				s.waitInStep(i, parks[0])
			}
			parks = parks[1:]
			continue
		}
		switch {
		case c.State != CallPending:
		case c.Tool == agent.AskUserTool:
			s.askInStep(i)
		case c.Tool == agent.ApproveTool:
			s.approveInStep(i, r)
		default:
			s.openApproval(i, r, rulings[i])
		}
	}
}

// askInStep opens the request of a step that asks a person.
func (s *step) askInStep(i int) {
	c := s.Calls.List[i]
	q, wrong := readQuestion(c.Arguments)
	if wrong != "" {
		s.setResult(i, agent.CallRejected, wrong)
		return
	}
	var more struct{ Schema json.RawMessage }
	if json.Unmarshal(c.Arguments, &more) == nil {
		q.Schema = more.Schema
	}
	p := s.Spec.AnswerTimeouts
	if c.Step.Answer != nil {
		p = *c.Step.Answer
	}
	s.openCallRequest(i, agent.Request{Type: agent.RequestQuestion, Text: q.Text, Context: q.Context, Choices: q.Choices, Schema: q.Schema}, q.Text, p, agent.InitiatorSelf, "question")
}

// answerFits refuses an answer that does not fit the schema of a question: the request stays open for
// a better one. A schema with words that [match] does not compare refuses
// nothing: the function reads the answer, and says what is wrong.
func (s *step) answerFits(r Request, a *agent.AnswerCommand) error {
	said := strings.TrimSpace(r.answerText(a))
	isChoice := slices.ContainsFunc(r.Choices, func(c string) bool { return strings.EqualFold(c, said) })
	if !isChoice && s.takesOnlyChoices(r, len(a.Data) > 0) {
		return s.refuseAs(agent.CodeInvalidInput, "text", "request %s takes one of: %s", r.ID, strings.Join(r.Choices, ", "))
	}
	schema, err := match.Read(r.Schema)
	if len(r.Schema) == 0 || err != nil {
		return nil
	}
	b, fits := s.matchBudget(), false
	before := b.Spent()
	v, err := match.ReadValue([]byte(r.answerText(a)), b)
	if err == nil {
		fits, err = schema.Fits(v, b)
	}
	switch {
	case b.Exceeded():
		return s.refuseUncompared(before)
	case err != nil || !fits:
		return s.refuseAs(agent.CodeInvalidInput, "text", "request %s takes JSON that fits its schema: %s", r.ID, r.Schema)
	}
	return nil
}

// takesOnlyChoices reports whether an answer has to be one of the request's choices: for a yes or no, and
// for what becomes of a step whose outcome is unknown, unless it is data, which is the step's result.
func (s *State) takesOnlyChoices(r Request, isData bool) bool {
	if r.RetryCall {
		return r.MustFit && len(r.Schema) == 0 && len(r.Choices) > 0
	}
	i := s.Calls.find(r.CallID)
	if i < 0 {
		return false
	}
	var in struct {
		OnlyChoices bool `json:"only_choices"`
	}
	c := s.Calls.List[i]
	if c.Unknown != "" {
		return !isData
	}
	return c.Tool == agent.AskUserTool && json.Unmarshal(c.Arguments, &in) == nil && in.OnlyChoices
}

// approveInStep opens the request of a step that asks for an approval of something that is no
// tool call.
func (s *step) approveInStep(i int, r wire.Reply) {
	c := s.Calls.List[i]
	var in struct {
		What    string          `json:"what"`
		Context string          `json:"context"`
		Subject json.RawMessage `json:"subject"`
	}
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		s.setResult(i, agent.CallRejected, "The arguments do not fit: "+err.Error())
		return
	}
	p := s.answerTimeouts()
	if c.Step.Answer != nil {
		p = *c.Step.Answer
	}
	s.openCallRequest(i, agent.Request{
		Type: agent.RequestApproval, Text: in.What, Context: in.Context, Digest: shownOf(r, i, c.Arguments), Confirm: c.Step.Confirm, Approvers: c.Step.Approvers,
		Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments},
	}, in.What, p, agent.InitiatorSelf, string(agent.RequestApproval))
}

// stepDecision is the result of a step that asks for an approval, as package flow reads it.
type stepDecision struct {
	Approved bool            `json:"approved"`
	By       string          `json:"by,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Subject  json.RawMessage `json:"subject,omitempty"` // if the approver has changed it
	Expired  bool            `json:"expired,omitempty"`
}

// decideStep gives a step that asks for an approval its result. It reports whether the call is
// such a step.
func (s *step) decideStep(i int, d stepDecision) bool {
	if i < 0 || s.Calls.List[i].Tool != agent.ApproveTool || !s.isFlow() {
		return false
	}
	text, err := json.Marshal(d)
	if err != nil { // the changed subject is no JSON
		text = []byte(`{"approved":false}`)
	}
	s.setResultSized(i, agent.CallOK, string(text), len(text))
	return true
}

// dropStep gives up an open step whose result the function does not wait for any more.
func (s *step) dropStep(path string) {
	i := slices.IndexFunc(s.Calls.List, func(c Call) bool { return c.ProviderID == path && c.State != CallDone && !c.Dropped })
	if i < 0 {
		return
	}
	s.Calls.drop(i)
	switch c := s.Calls.List[i]; c.State {
	case CallRunning:
		s.do(CancelCall{Call: c.ID}) // its result is recorded when it comes
	case CallAwaitingChildren:
		for _, session := range s.awaitedChildren(c) {
			if k := s.Children.find(session); k >= 0 && s.Children.List[k].notEnded() {
				s.orderChild(k, wire.ParentOrder{Verb: agent.VerbCancel, Own: true, By: "agent:" + s.Session, Reason: reasonDropped})
			}
		}
	case CallAwaitingAnswer:
		s.closeUnanswered(c.Request, "closed: "+reasonDropped)
		s.skip(i, reasonDropped)
	default:
		s.skip(i, reasonDropped)
	}
}

const reasonDropped = "the steps beside it have decided"

// leaveOut skips a new step of a flow that would wait for something, because the state has no space
// for it. It is asked for again when another step has ended. It reports false if no other is open:
// then the step is too long by itself.
func (s *step) leaveOut(i int) bool {
	other := func(c Call) bool { return c.ID != s.Calls.List[i].ID && c.State != CallDone }
	if !s.isFlow() || !slices.ContainsFunc(s.Calls.List, other) {
		return false
	}
	s.Calls.leaveOut(i)
	s.Flow.leaveOut()
	s.skip(i, "more would wait than can be kept")
	return true
}

// keepAnswers keeps the answers to a step's own questions if the step was not finished and is made
// again. If there is no space for them, the step asks again.
func (s *step) keepAnswers(c Call, status agent.CallStatus) {
	if !s.isFlow() || status != agent.CallSkipped || c.Dropped || len(c.Answers) == 0 {
		return
	}
	a := StepAnswers{Path: c.ProviderID, Tool: c.Tool, Arguments: Digest(c.Arguments), Answers: c.Answers, Since: c.Since}
	if a.jsonLen() <= s.space()+c.keptSize()-callFrame-ownWords { // the call's own are gone then
		s.Flow.keepAnswers(a)
	}
}

// recordSteps records what came of steps, and forgets these steps. The function is asked about
// them next.
func (s *step) recordSteps() {
	m := agent.Message{Role: agent.RoleTool}
	bytes, ended, news := 0, false, false
	for _, c := range s.Calls.List {
		if c.State != CallDone {
			continue
		}
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolResult, Result: c.Result})
		bytes += frame + c.Bytes
		s.Flow.keepStateChanges(c.StateChanges)
		ended = ended || !c.LeftOut
		news = news || !c.LeftOut && !c.Dropped // nobody waits for a dropped step
	}
	if ended {
		s.Flow.ended(news)
	}
	s.recordMessage(m, bytes)
	s.Calls.removeDone()
	if len(s.Calls.List) == 0 && s.Turn.Phase == TurnWorking {
		s.Turn.end()
	}
}

// cutOff returns the result of a step that a hold has cut off: what it has done is unknown, even
// if it returned something.
func (s *step) cutOff(i int, r agent.ToolResult) agent.ToolResult {
	c := s.Calls.List[i]
	if !s.isFlow() && (!s.Checks.has(c.ID) || s.End.Stopping != nil) || c.Dropped || r.Status == agent.CallSkipped || r.Status == agent.CallRejected || r.Status == agent.CallOK && !r.Partial {
		return r
	}
	r.Status = agent.CallUnknown
	return r
}

// resolveUnknown decides about a running step of a flow of which nobody knows whether it had its
// effect. One that may be made again counts as not made, so the function's next turn makes it
// again. For others a person is asked, unless the step says otherwise. It reports whether the
// step is taken care of.
func (s *step) resolveUnknown(i int, text string) bool {
	c := s.Calls.List[i]
	tool, _ := s.Spec.Tool(c.Tool)
	switch {
	case s.Checks.has(c.ID) && s.End.Stopping == nil && !s.outcomeDecided(): // it only looks
		s.setResult(i, agent.CallSkipped, "Not finished, and made again.")
		return true
	case !s.isFlow() || s.End.Stopping != nil || s.outcomeDecided() || c.Dropped:
		return false
	case c.Step.MayRepeat(tool):
		s.setResult(i, agent.CallSkipped, "Not finished, and made again. "+text)
		return true
	case c.Step.OnUnknown == wire.UnknownFail:
		return false
	}
	o := Request{CallID: c.ID, Request: agent.Request{
		Type: agent.RequestQuestion, Text: fmt.Sprintf("Has the step %s (%s) had its effect? Make it again, count it as done, or fail it.", c.ProviderID, callName(c)), Context: fit(text, maxWhy),
		Choices: []string{string(wire.UnknownAgain), choiceDone, string(wire.UnknownFail)}, Cause: causeUnknown, Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool},
	}}
	if c.Approver != "" { // else anybody could say what came of a call that only they may allow
		o.Approvers = []string{c.Approver}
	}
	p := s.answerTimeouts()
	p.Default = string(wire.UnknownFail)
	if o = s.timed(o, p, c.ProviderID+callNameWords(c)); !s.mayKeep(i, o) {
		return false
	}
	s.record(agent.Event{Type: agent.EventCallUnknown, Call: s.callUpdate(c, agent.CallUnknown)})
	s.Calls.awaitRequest(i, s.openRequest(o, agent.InitiatorPolicy, string(agent.CallUnknown)))
	s.Calls.markUnknown(i, text)
	return true
}

// choiceDone counts a step whose outcome is unknown as done.
const choiceDone = "done"

// decideUnknown carries out what a person has decided about a step whose outcome is unknown. Data
// is the step's result. It reports whether the step is such a one.
func (s *step) decideUnknown(i int, answer string, isData bool) bool {
	if i < 0 || s.Calls.List[i].Unknown == "" {
		return false
	}
	switch {
	case isData:
		s.setResultSized(i, agent.CallOK, answer, len(answer))
	case answer == string(wire.UnknownAgain):
		s.setResult(i, agent.CallSkipped, "A person has said to make it again.")
	case answer == choiceDone:
		s.setResult(i, agent.CallOK, "")
	default:
		s.setResult(i, agent.CallUnknown, s.Calls.List[i].Unknown)
	}
	return true
}

// maxStepName bounds the name under which a step is counted, as JSON.
const maxStepName = 64

// countedAs returns the name under which the results of a call are counted, and whether it is a
// tool's. A flow's own code, and what it calls in the namespace, has no tool that people would
// know: its step's name counts, without the scopes around it and its number.
func (s *State) countedAs(c Call) (name string, isTool bool) {
	if !s.isFlow() || c.Tool != agent.DoTool && c.Tool != agent.TemporalTool {
		_, isTool = s.Spec.Tool(c.Tool)
		return c.Tool, isTool
	}
	name, _, _ = strings.Cut(c.ProviderID[strings.LastIndex(c.ProviderID, "/")+1:], "#")
	return fit(name, maxStepName), false
}

// callUpdate returns what an event says of a call.
func (s *State) callUpdate(c Call, status agent.CallStatus) *agent.CallUpdate {
	return &agent.CallUpdate{Call: c.ID, Tool: c.Tool, Step: s.stepPath(c), Status: status, Dropped: c.Dropped}
}
