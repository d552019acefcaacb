package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// decision is one answer to one request.
type decision struct {
	request  string
	answer   *agent.AnswerCommand
	approve  *agent.ApproveCommand
	reject   *agent.RejectCommand
	by       string
	approver string // the principal of the decision's token; empty without a token
}

// answered returns what the log says of the decision.
func (d decision) answered() agent.Answered {
	a := agent.Answered{Request: d.request, Decision: "answer", By: d.by, Approver: d.approver}
	if d.approve != nil {
		a.Decision, a.Edited, a.AlwaysInSession, a.Reason = "approve", len(d.approve.Arguments) > 0, d.approve.AlwaysInSession, d.approve.Note
	}
	if d.reject != nil {
		a.Decision, a.Reason = "reject", d.reject.Reason
	}
	return a
}

// reach is 1 for an approval of more than one call, and otherwise 0.
func (d decision) reach() int {
	if d.approve != nil && (d.approve.Always || d.approve.AlwaysInSession) {
		return 1
	}
	return 0
}

// decide carries out an answer. Everything is checked before anything changes.
func (s *step) decide(d decision) error {
	// Before findRequest: the request of a used token is closed, and would be refused as stale.
	if s.Requests.tokenUsed(d.request, d.approver) {
		return s.refuseAs(agent.CodeUsed, "token", "the token of %s has decided request %s already", d.approver, d.request)
	}
	i, err := s.findRequest(d.request)
	if err != nil {
		return s.lateAnswer(d, err)
	}
	if err := s.checkAge(s.answerBy()); err != nil {
		return err
	}
	r := s.Requests.Open[i]
	if err := s.mayDecide(r, d); err != nil {
		return err
	}
	switch {
	case d.approve != nil:
		s.approved(r, d)
	case d.reject != nil:
		s.rejected(r, d)
	default:
		s.applyDecision(r, d)
	}
	return nil
}

// mayTake returns why a request does not take an answer, whatever the state is; nil if it does. It checks
// the kind of answer, the approver and the choice.
func (s *step) mayTake(r Request, d decision) error {
	kind := "answer"
	switch {
	case d.approve != nil:
		kind = "approve"
	case d.reject != nil:
		kind = "reject"
	}
	wants := map[agent.RequestType][]string{
		agent.RequestQuestion: {"answer"}, agent.RequestLimit: {"answer"}, agent.RequestApproval: {"approve", "reject"}, agent.RequestClientTool: {"answer", "reject"},
	}[r.Type]
	if r.RetryCall { // the tool asks: a person may decline to answer
		wants = []string{"answer", "reject"}
	}
	if !slices.Contains(wants, kind) {
		return s.refuseAs(agent.CodeInvalidInput, "request", "request %s is of type %s; it takes %s, not %s", r.ID, r.Type, strings.Join(wants, " or "), kind)
	}
	if len(r.Approvers) > 0 && !slices.Contains(r.Approvers, d.approver) {
		return s.refuseAs(agent.CodeDenied, "token", "request %s takes a decision of %s only: make a token with fermata token, and decide with fermata and --token-file, since a signal proves nothing", r.ID, strings.Join(r.Approvers, " or "))
	}
	if a := d.answer; a != nil && a.Choice != nil && *a.Choice >= len(r.Choices) {
		return s.refuseAs(agent.CodeInvalidInput, "choice", "request %s has %d choices, numbered from 0", r.ID, len(r.Choices))
	}
	return nil
}

// mayDecide returns why an answer is refused; nil if it is not. It checks what mayTake checks, the sizes,
// and that the digest is that of the request's arguments.
func (s *step) mayDecide(r Request, d decision) error {
	if err := s.mayTake(r, d); err != nil {
		return err
	}
	if d.answer != nil {
		if err := s.mayShowAnswer(r, d); err != nil {
			return err
		}
	}
	if r.MustFit && d.answer != nil {
		if err := s.answerFits(r, d.answer); err != nil {
			return err
		}
	}
	if r.RetryCall {
		return s.mayAnswer(r, d)
	}
	if r.Type == agent.RequestQuestion && s.isFlow() {
		return s.answerFits(r, d.answer)
	}
	// A text that is no choice becomes a message (limitDecided), so it must fit among those.
	if r.Type == agent.RequestLimit && !s.messageFits(agent.Message{Role: agent.RoleUser, Parts: r.limitParts(d.answer)}) {
		return s.checkRoom("text")
	}
	if d.approve == nil {
		return nil
	}
	if i := s.Calls.find(r.CallID); s.Calls.growth(i, d.approve.Arguments) > s.space() {
		return s.refuseAs(agent.CodeTooLarge, "arguments", "the arguments are too long to be kept beside what else waits: shorten them, or answer other requests first")
	}
	if tool, _ := s.Spec.Tool(r.Call.Tool); len(d.approve.Arguments) > 0 && tool.Executor != "" && tool.Name != agent.ApproveTool {
		return s.refuseAs(agent.CodeInvalidInput, "arguments", "the arguments of %s can't be edited: reject the call and say why", r.Call.Tool)
	}
	if d.approve.AlwaysInSession {
		if err := s.mayAllowInSession(d.approver); err != nil {
			return err
		}
	}
	return s.checkDigest(r, d.approve.Digest)
}

func (s *step) checkDigest(r Request, digest string) error {
	switch {
	case digest == "" && r.Confirm == agent.ConfirmDigest:
		return s.refuseAs(agent.CodeInvalidInput, "digest", "request %s needs its digest (%s) named, to be sure which arguments were seen", r.ID, r.Digest)
	case digest != "" && digest != r.Digest:
		return s.refuseAs(agent.CodeStale, "digest", "request %s has other arguments than those that were approved: its digest is %s", r.ID, r.Digest)
	}
	return nil
}

func (s *step) applyDecision(r Request, d decision) {
	a, text := d.answer, r.answerText(d.answer)
	// First, in all three functions: the log has the answer before what it leads to.
	s.closeRequest(r, d, "answered")
	if r.Type == agent.RequestLimit {
		s.limitDecided(r, text, r.limitParts(a))
		return
	}
	if len(a.Parts) > 0 {
		s.steerAs(r.withAnswer(d), r.answerBytes(d), r.answerJSONLen(d))
	}
	if r.RetryCall {
		s.retryCall(r, agent.ToolAnswer{Text: text, Choice: a.Choice, Data: a.Data, By: d.by})
		return
	}
	if s.decideUnknown(s.Calls.find(r.CallID), text, len(a.Data) > 0) {
		return
	}
	bytes := len(text)
	if text == answeredByFiles { // the runtime's words count no bytes
		bytes = 0
	}
	s.setResultSized(s.Calls.find(r.CallID), agent.CallOK, text, bytes)
}

// answerText returns an answer as text.
func (r Request) answerText(a *agent.AnswerCommand) string {
	switch {
	case a.Choice != nil:
		return r.Choices[*a.Choice]
	case len(a.Data) > 0:
		return string(a.Data)
	case a.Text == "" && len(a.Parts) > 0:
		return answeredByFiles
	}
	return a.Text
}

// answeredByFiles is the text of an answer that has none.
const answeredByFiles = "(see the files in the next message)"

// limitParts returns what the answer to a limit says to the model: a text that is no choice, and files.
func (r Request) limitParts(a *agent.AnswerCommand) []agent.Part {
	said := agent.SendCommand{Text: r.answerText(a), Parts: a.Parts}
	if said.Text == choiceContinue || said.Text == answeredByFiles {
		said.Text = ""
	}
	return said.AllParts()
}

func (s *step) rejected(r Request, d decision) {
	s.closeRequest(r, d, "rejected")
	if r.RetryCall {
		s.retryCall(r, agent.ToolAnswer{Text: d.reject.Reason, By: d.by, Declined: true})
		return
	}
	i := s.Calls.find(r.CallID)
	if r.Type == agent.RequestClientTool {
		s.setResultSized(i, agent.CallFailed, d.reject.Reason, len(d.reject.Reason))
		return
	}
	if s.decideStep(i, stepDecision{By: firstOf(d.approver, d.by), Reason: d.reject.Reason}) {
		return
	}
	s.recordCall(agent.EventCallRejected, i)
	s.setResultSized(i, agent.CallRejected, "Not executed: it was not approved. "+d.reject.Reason, len(d.reject.Reason))
}

func (s *step) approved(r Request, d decision) {
	s.closeRequest(r, d, "approved")
	i := s.Calls.find(r.CallID)
	c := s.Calls.List[i]
	edited := d.approve.Arguments
	if len(edited) > 0 {
		tool, _ := s.Spec.Tool(c.Tool)
		// The approver saw redacted secrets. Where the redaction is unchanged, the secret comes back.
		edited = unredacted(edited, c.Arguments, tool)
	}
	if s.decideStep(i, stepDecision{Approved: true, By: firstOf(d.approver, d.by), Reason: d.approve.Note, Subject: edited}) {
		return
	}
	s.Calls.approve(i, d.approver, edited)
	if d.approve.AlwaysInSession {
		s.allowInSession(c.Tool, d.approver)
	}
	if d.reach() > 0 {
		s.Requests.allowAlways(c.Tool)
		s.approveOthers(c.Tool, d)
	}
	s.recordCall(agent.EventCallApproved, i)
}

// approveOthers approves the other open requests for a tool, if the same person may decide them.
// A request that needs its digest confirmed stays open.
func (s *step) approveOthers(tool string, d decision) {
	for _, r := range slices.Clone(s.Requests.Open) { // a copy: approved closes requests, which deletes from the list
		if r.Type != agent.RequestApproval || r.Call.Tool != tool || r.Confirm != "" {
			continue
		}
		other := d
		other.request, other.approve = r.ID, &agent.ApproveCommand{Request: r.ID}
		if s.mayDecide(r, other) == nil {
			s.approved(r, other)
		}
	}
}

// findRequest returns the index of an open request. If there is none, the error says what became of
// it and which requests are open.
func (s *step) findRequest(id string) (int, error) {
	if i := s.Requests.find(id); i >= 0 {
		return i, nil
	}
	open := "nothing is open now"
	if ids := s.Requests.ids(); len(ids) > 0 {
		open = "open are " + strings.Join(ids, ", ")
	}
	if d, ok := s.Requests.decided(id); ok {
		return 0, s.refuseAs(agent.CodeStale, "request", "request %s was %s at %s; %s", id, d.How, d.At.UTC().Format(time.RFC3339), open)
	}
	// Requests.Decided has only the last ones. A request with a lower number is closed, too.
	if n := requestNumber(id); n > 0 && n <= s.Counters.Request {
		return 0, s.refuseAs(agent.CodeStale, "request", "request %s is not open any more; %s", id, open)
	}
	return 0, s.refuseAs(agent.CodeNotFound, "request", "there is no request %s; %s", id, open)
}

// closeRequest records the answer and removes the request from the open ones.
func (s *step) closeRequest(r Request, d decision, how string) {
	a := d.answered()
	s.record(agent.Event{Type: agent.EventRequestAnswered, Answer: &a})
	if who := firstOf(d.approver, d.by); who != "" {
		how += " by " + who
	}
	s.changed = true
	s.noteDecision(r, d)
	s.Requests.close(Decided{ID: r.ID, How: how, At: s.now(), Approver: d.approver})
	s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: d.by, Mode: agent.ResumedAnswer}
}

func (s *step) recordCall(t agent.EventType, i int) {
	c := s.Calls.List[i]
	s.record(agent.Event{Type: t, Call: s.callUpdate(c, "")})
}

// limitDecided renews the limit that asked, and no other, or ends the run. A text that is neither of
// the two choices renews it, too, and becomes a message to the model.
func (s *step) limitDecided(r Request, text string, said []agent.Part) {
	if text == choiceStop {
		s.fail(&agent.Error{Code: r.Cause, Message: r.Text + "; it was decided to stop"})
		return
	}
	s.renew(r.Cause)
	s.Recovery.resetAll()
	if len(said) > 0 {
		s.steer(agent.Message{Role: agent.RoleUser, Parts: said})
	}
}
