package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Request is an open one.
type Request struct {
	agent.Request
	// Call is the call that waits for it; empty for a limit.
	CallID   string `json:"call_id,omitempty"`
	Reminded bool   `json:"reminded,omitempty"`
	// Again tells that the call asks itself: it is made again with the answer.
	Again bool `json:"again,omitempty"`
	// Kept is what the call keeps with its question; it is handed back with the answer.
	Kept json.RawMessage `json:"kept,omitempty"`
}

// Decided is what became of a request, kept for those who come late.
type Decided struct {
	ID  string    `json:"id"`
	How string    `json:"how"` // answered by ana, rejected by its deadline …
	At  time.Time `json:"at"`
	// Approver is whose token decided it: the token is spent.
	Approver string `json:"approver,omitempty"`
}

// maxDecided bounds how many decided requests are remembered by what became of them.
const maxDecided = 64

// ask opens a request.
func (s *step) ask(r agent.Request, call string, p agent.Patience, by agent.Initiator, cause string) {
	s.wait(by, cause, r.Text)
	s.Numbers.Request++
	r.ID, r.Session, r.Run, r.Suspension, r.Agent = agent.RequestID(s.Numbers.Request), s.Session, s.Run, s.Wait.ID, s.agent()
	r.Opened = s.now()
	if p.Deadline > 0 {
		r.Deadline, r.Default = s.now().Add(time.Duration(p.Deadline)), p.Default
	}
	if p.Remind > 0 {
		r.RemindAt = s.now().Add(time.Duration(p.Remind))
	}
	s.Requests = append(s.Requests, Request{Request: r, CallID: call})
	s.changed = true
	s.record(agent.Event{Type: agent.RequestOpened, Request: &r})
}

// The runtime's own questions are asked with these choices.
const (
	choiceContinue = "continue"
	choiceStop     = "stop"
)

// askLimit asks what to do about a limit in the place of failing. That it was
// asked for is known by the code.
func (s *step) askLimit(err *agent.Error) {
	p := s.patience()
	if d := s.Spec.Asking.Default; d == choiceContinue || d == choiceStop {
		p.Default = d
	}
	s.ask(agent.Request{
		Type: agent.LimitAsk, Text: err.Message, Choices: []string{choiceContinue, choiceStop}, Cause: err.Code,
	}, "", p, agent.ByPolicy, string(err.Code))
}

// find finds an open request, or says why there is none.
func (s *step) find(id string) (int, error) {
	i := slices.IndexFunc(s.Requests, func(r Request) bool { return r.ID == id })
	if i >= 0 {
		return i, nil
	}
	open := "nothing is open now"
	if ids := s.openIDs(); len(ids) > 0 {
		open = "open are " + strings.Join(ids, ", ")
	}
	if d := slices.IndexFunc(s.Decided, func(d Decided) bool { return d.ID == id }); d >= 0 {
		return 0, s.refuseAs(agent.Stale, "request", "request %s was %s at %s; %s", id, s.Decided[d].How, s.Decided[d].At.Format(time.TimeOnly), open)
	}
	var n int
	if _, err := fmt.Sscanf(id, "q-%d", &n); err == nil && n > 0 && n <= s.Numbers.Request {
		return 0, s.refuseAs(agent.Stale, "request", "request %s is not open any more; %s", id, open)
	}
	return 0, s.refuseAs(agent.NotFound, "request", "there is no request %s; %s", id, open)
}

func (s *step) openIDs() (ids []string) {
	for _, r := range s.Requests {
		ids = append(ids, r.ID)
	}
	return ids
}

// decision is one answer to one request.
type decision struct {
	request  string
	answer   *agent.AnswerOrder
	approve  *agent.ApproveOrder
	reject   *agent.RejectOrder
	by       string
	approver string // who proved to be one
}

// decide carries an answer out. It is checked before anything changes.
func (s *step) decide(d decision) error {
	if s.spent(d) {
		return s.refuseAs(agent.Spent, "token", "the token of %s has decided request %s already", d.approver, d.request)
	}
	i, err := s.find(d.request)
	if err != nil {
		return err
	}
	r := s.Requests[i]
	if err := s.mayDecide(r, d); err != nil {
		return err
	}
	switch {
	case d.approve != nil:
		s.approved(r, d)
	case d.reject != nil:
		s.rejected(r, d)
	default:
		s.replyTo(r, d)
	}
	return nil
}

// spent tells whether a token was used: it is good for one decision.
func (s *step) spent(d decision) bool {
	return d.approver != "" && slices.ContainsFunc(s.Decided, func(o Decided) bool { return o.ID == d.request && o.Approver == d.approver })
}

// mayDecide refuses an answer of another kind than the request's, one of somebody
// who is no approver, and one to other arguments than those that are asked about.
func (s *step) mayDecide(r Request, d decision) error {
	kind := "answer"
	switch {
	case d.approve != nil:
		kind = "approve"
	case d.reject != nil:
		kind = "reject"
	}
	wants := map[agent.RequestType][]string{
		agent.Question: {"answer"}, agent.LimitAsk: {"answer"}, agent.Approval: {"approve", "reject"}, agent.ClientTool: {"answer", "reject"},
	}[r.Type]
	if r.Again {
		wants = []string{"answer", "reject"}
	}
	if !slices.Contains(wants, kind) {
		return s.refuseAs(agent.InvalidInput, "request", "request %s is of type %s; it takes %s, not %s", r.ID, r.Type, strings.Join(wants, " or "), kind)
	}
	if len(r.Approvers) > 0 && !slices.Contains(r.Approvers, d.approver) {
		return s.refuseAs(agent.Denied, "token", "request %s takes a decision of %s only, proved with a token, by update", r.ID, strings.Join(r.Approvers, " or "))
	}
	if a := d.answer; a != nil && a.Choice != nil && *a.Choice >= len(r.Choices) {
		return s.refuseAs(agent.InvalidInput, "choice", "request %s has %d choices, numbered from 0", r.ID, len(r.Choices))
	}
	if r.Again {
		return s.mayAnswer(r, d)
	}
	if d.approve == nil {
		return nil
	}
	if tool, _ := s.Spec.Tool(r.Call.Tool); len(d.approve.Arguments) > 0 && tool.By != "" {
		return s.refuseAs(agent.InvalidInput, "arguments", "the arguments of %s can't be edited: reject the call and say why", r.Call.Tool)
	}
	return s.sameDigest(r, d.approve.Digest)
}

func (s *step) sameDigest(r Request, digest string) error {
	switch {
	case digest == "" && r.Confirm == agent.ConfirmDigest:
		return s.refuseAs(agent.InvalidInput, "digest", "request %s wants its digest (%s) named, to be sure which arguments were seen", r.ID, r.Digest)
	case digest != "" && digest != r.Digest:
		return s.refuseAs(agent.Stale, "digest", "request %s has other arguments than those that were approved: its digest is %s", r.ID, r.Digest)
	}
	return nil
}

func (s *step) replyTo(r Request, d decision) {
	a, text := d.answer, r.said(d.answer)
	s.close(r, d, "answer", "answered")
	if r.Type == agent.LimitAsk {
		s.limitDecided(r, text)
		return
	}
	if r.Again {
		s.callAgain(r, agent.ToolAnswer{Text: text, Choice: a.Choice, Data: a.Data, By: d.by})
		return
	}
	s.result(r.CallID, agent.CallOK, text)
}

// said is an answer as a text.
func (r Request) said(a *agent.AnswerOrder) string {
	switch {
	case a.Choice != nil:
		return r.Choices[*a.Choice]
	case len(a.Data) > 0:
		return string(a.Data)
	}
	return a.Text
}

func (s *step) rejected(r Request, d decision) {
	s.close(r, d, "reject", "rejected")
	if r.Again {
		s.callAgain(r, agent.ToolAnswer{Text: d.reject.Reason, By: d.by, Declined: true})
		return
	}
	if r.Type == agent.ClientTool {
		s.result(r.CallID, agent.CallFailed, d.reject.Reason)
		return
	}
	s.tellCall(agent.CallRefused, r.CallID)
	s.result(r.CallID, agent.CallRejected, "Not executed: it was not approved. "+d.reject.Reason)
}

func (s *step) approved(r Request, d decision) {
	s.close(r, d, "approve", "approved")
	i := s.callIndex(r.CallID)
	c := &s.Calls[i]
	c.State, c.Request, c.Approved, c.Approver = Waiting, "", true, d.approver
	if d.approve.Always {
		s.Always = append(s.Always, c.Tool)
		s.approveOthers(c.Tool, d)
	}
	if len(d.approve.Arguments) > 0 {
		tool, _ := s.Spec.Tool(c.Tool)
		c.Arguments, c.Edited = unveiled(d.approve.Arguments, c.Arguments, tool), true
	}
	s.tellCall(agent.CallApproved, r.CallID)
}

// approveOthers approves what else of a tool is asked for, where the same person may.
func (s *step) approveOthers(tool string, d decision) {
	for _, r := range slices.Clone(s.Requests) {
		if r.Type != agent.Approval || r.Call.Tool != tool || r.Confirm != "" {
			continue
		}
		other := d
		other.request, other.approve = r.ID, &agent.ApproveOrder{Request: r.ID}
		if s.mayDecide(r, other) == nil {
			s.approved(r, other)
		}
	}
}

// close takes a request from the open ones.
func (s *step) close(r Request, d decision, what, how string) {
	s.Requests = slices.DeleteFunc(s.Requests, func(o Request) bool { return o.ID == r.ID })
	a := agent.Answered{Request: r.ID, Decision: what, By: d.by, Approver: d.approver}
	if d.approve != nil {
		a.Edited, a.Reason = len(d.approve.Arguments) > 0, d.approve.Note
	}
	if d.reject != nil {
		a.Reason = d.reject.Reason
	}
	s.record(agent.Event{Type: agent.RequestAnswered, Answer: &a})
	if who := firstOf(d.approver, d.by); who != "" {
		how += " by " + who
	}
	s.decided(r.ID, how)
	s.Decided[len(s.Decided)-1].Approver = d.approver
	s.resumed = agent.Resumed{Cause: agent.ByOperator, By: d.by}
}

func (s *step) decided(id, how string) {
	s.changed = true
	s.Decided = append(s.Decided, Decided{ID: id, How: how, At: s.now()})
	if n := len(s.Decided) - maxDecided; n > 0 {
		s.Decided = slices.Clone(s.Decided[n:])
	}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// result gives the call behind a request its result.
func (s *step) result(call string, status agent.CallStatus, text string) {
	i := s.callIndex(call)
	s.Calls[i].Request = ""
	s.settle(i, agent.ToolResult{Call: call, Tool: s.Calls[i].Tool, Status: status, Text: text})
}

func (s *step) callIndex(id string) int {
	return slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == id })
}

func (s *step) tellCall(t agent.EventType, id string) {
	s.record(agent.Event{Type: t, Call: &agent.CallNote{Call: id, Tool: s.Calls[s.callIndex(id)].Tool}})
}

// limitDecided renews the limit that asked, and no other, or ends the run. What
// is neither of the two choices is said to the model, which goes on.
func (s *step) limitDecided(r Request, text string) {
	if text == choiceStop {
		s.fail(&agent.Error{Code: r.Cause, Message: r.Text + "; it was decided to stop"})
		return
	}
	s.renew(r.Cause)
	if text != choiceContinue {
		s.steer(agent.TextMessage(agent.RoleUser, text))
	}
}

func (s *step) renew(limit agent.Code) {
	switch limit {
	case agent.LimitTurns:
		s.Base.Turns = s.Turn
	case agent.LimitTokens:
		s.Base.Tokens = s.Usage.Total()
	case agent.LimitCost:
		s.Base.CostUSD = s.Cost
	case agent.LimitTime:
		s.restart()
	}
	s.record(agent.Event{Type: agent.LimitExtended, Extended: limit})
}

// restart lets the working time begin anew.
func (s *step) restart() {
	from := s.now()
	if s.Wait != nil && s.Wait.Resting {
		from = s.Since // goneOn adds the rest
	}
	s.Deadline = from.Add(time.Duration(s.Limits.WallClock))
}

// expire decides a request by its deadline.
func (s *step) expire(r Request) {
	s.Requests = slices.DeleteFunc(s.Requests, func(o Request) bool { return o.ID == r.ID })
	s.record(agent.Event{Type: agent.RequestExpired, Answer: &agent.Answered{Request: r.ID, Decision: r.Default}})
	s.decided(r.ID, "decided by its deadline")
	s.resumed = agent.Resumed{Cause: agent.ByTimeout}
	switch {
	case r.Type == agent.LimitAsk:
		s.limitDecided(r, firstOf(r.Default, choiceStop))
	case r.Type == agent.Approval && r.Default == agent.DefaultApprove:
		i := s.callIndex(r.CallID)
		s.Calls[i].State, s.Calls[i].Request, s.Calls[i].Approved = Waiting, "", true
	case r.Type == agent.Approval:
		s.result(r.CallID, agent.CallRejected, "Not executed: nobody approved it in time.")
	case r.Again:
		s.callAgain(r, agent.ToolAnswer{Text: r.Default, Declined: r.Default == "", Expired: true})
	case r.Default != "":
		s.result(r.CallID, agent.CallOK, r.Default)
	default:
		s.result(r.CallID, agent.CallFailed, "Nobody answered in time.")
	}
}

// memo is the request as listings show it.
func (r Request) memo() agent.MemoRequest {
	const most = 200
	m := agent.MemoRequest{
		ID: r.ID, Type: r.Type, Text: r.Text, Choices: r.Choices, Digest: r.Digest, Approvers: r.Approvers,
		Opened: r.Opened, Deadline: r.Deadline, Reminded: r.Reminded,
	}
	if text := []rune(m.Text); len(text) > most {
		m.Text = string(text[:most-1]) + "…"
	}
	if r.Call != nil {
		m.Tool = r.Call.Tool
	}
	return m
}
