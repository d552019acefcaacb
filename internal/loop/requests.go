package loop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Requests is the part that keeps what people are asked.
type Requests struct {
	Open    []Request `json:"open,omitempty"`
	Decided []Decided `json:"decided,omitempty"` // the last ones
	// Always are tools whose calls need no approval any more.
	Always []string `json:"always,omitempty"`
}

// Request is an open request.
type Request struct {
	agent.Request
	// CallID is the call that waits for the answer; empty for a limit.
	CallID   string `json:"call_id,omitempty"`
	Reminded bool   `json:"reminded,omitempty"`
	// RetryCall means that the call's tool asks. The call is made again with the answer.
	RetryCall bool `json:"retry_call,omitempty"`
	// ToolState is what the tool keeps with its question. The call gets it back with the
	// answer.
	ToolState json.RawMessage `json:"tool_state,omitempty"`
	// Name, QuestionDigest and MustFit are those of the tool's question.
	Name           string `json:"name,omitempty"`
	QuestionDigest string `json:"question_digest,omitempty"`
	MustFit        bool   `json:"must_fit,omitempty"`
	// Size is the request's length in JSON at most.
	Size int `json:"size,omitempty"`
}

// Decided is what became of a request, for answers that come late.
type Decided struct {
	ID  string    `json:"id"`
	How string    `json:"how"` // answered by ana, decided by its deadline …
	At  time.Time `json:"at"`
	// Approver is the principal whose token decided the request. That token is used up.
	Approver string `json:"approver,omitempty"`
}

// maxDecided bounds how many decided requests are remembered.
const maxDecided = 64

func (r Requests) clone() Requests {
	r.Open, r.Decided, r.Always = slices.Clone(r.Open), slices.Clip(r.Decided), slices.Clip(r.Always)
	return r
}

// find returns the index of an open request; -1 if it is not open.
func (r Requests) find(id string) int {
	return slices.IndexFunc(r.Open, func(o Request) bool { return o.ID == id })
}

func (r Requests) ids() (ids []string) {
	for _, o := range r.Open {
		ids = append(ids, o.ID)
	}
	return ids
}

func (r Requests) size() (n int) {
	for _, o := range r.Open {
		n += o.Size
	}
	return n
}

// sized returns the request with its Size. words is the part of its text that the runtime
// did not write. The arguments of its call do not count: the call has them.
func (r Request) sized(words string) Request {
	r.Size = requestFrame + jsonLen(words) + r.contextJSONLen() + textsJSONLen(r.Choices) + rawJSONLen(r.Schema) + textsJSONLen(r.Approvers) +
		jsonLen(r.Default) + rawJSONLen(r.ToolState) + jsonLen(r.Session) + jsonLen(r.Step) + jsonLen(r.Name) + digestJSONLen(r.QuestionDigest)
	return r
}

// contextJSONLen returns the greatest length of the request's context in JSON. The runtime's words may
// change in a later build, so they count as long as they may be.
func (r Request) contextJSONLen() int {
	if most := ownContext(r.Request); most > 0 && r.Context != "" {
		return most
	}
	return jsonLen(r.Context)
}

// ownContext returns how long the context of a request may be in JSON, if the runtime writes it; else 0.
func ownContext(r agent.Request) int {
	switch {
	case r.Type == agent.RequestLimit:
		return maxProgress
	case r.Type == agent.RequestQuestion && r.Cause == causeUnknown:
		return maxWhy
	}
	return 0
}

// causeUnknown marks the question whether a flow's step has had its effect.
const causeUnknown = agent.Code(agent.CallUnknown)

// jsonLen returns its length in JSON at most. How has names of people, and is cut.
func (d Decided) jsonLen() int { return verbFrame + maxName + jsonLen(d.Approver) }

// wireRequest returns an open request as the wire shows it, with the arguments of its call.
func (s *State) wireRequest(o Request) agent.Request {
	r := o.Request
	i := s.Calls.find(o.CallID)
	if r.Call == nil || o.RetryCall || i < 0 {
		return r
	}
	call := *r.Call
	call.Arguments = s.Calls.List[i].Arguments
	if tool, _ := s.Spec.Tool(call.Tool); r.Type == agent.RequestApproval {
		call.Arguments = redactedArguments(call.Arguments, tool)
	}
	r.Call = &call
	return r
}

// DigestOf returns the digest that an open request shows, or one that waits for its late answer; empty for
// others.
func (s *State) DigestOf(request string) string {
	i := s.Requests.find(request)
	if i < 0 {
		late, _ := s.Late.find(request) // a token for a late approval has it, too
		return late.Digest
	}
	return s.Requests.Open[i].Digest
}

// decided returns what became of a request that is not open any more.
func (r Requests) decided(id string) (Decided, bool) {
	i := slices.IndexFunc(r.Decided, func(d Decided) bool { return d.ID == id })
	if i < 0 {
		return Decided{}, false
	}
	return r.Decided[i], true
}

// tokenUsed reports whether an approver's token has decided a request already.
func (r Requests) tokenUsed(id, approver string) bool {
	return approver != "" && slices.ContainsFunc(r.Decided, func(o Decided) bool { return o.ID == id && o.Approver == approver })
}

// open adds a request, without the arguments of its call: the call has them.
func (r *Requests) open(o Request) {
	if o.Call != nil {
		// A copy: the event of the request points to the same call, and keeps its arguments.
		call := *o.Call
		call.Arguments = nil
		o.Call = &call
	}
	r.Open = append(r.Open, o)
}

// close removes a request from the open ones, and remembers what became of it.
func (r *Requests) close(d Decided) {
	d.How = fit(d.How, maxName)
	r.Open = slices.DeleteFunc(r.Open, func(o Request) bool { return o.ID == d.ID })
	r.Decided = lastWithin(append(r.Decided, d), maxDecided, decidedShare, Decided.jsonLen)
}

// clear removes the open requests. Nobody can answer a run that ends.
func (r *Requests) clear() { r.Open = nil }

// allowAlways lets a tool's later calls be made without an approval.
func (r *Requests) allowAlways(tool string) {
	if !slices.Contains(r.Always, tool) {
		r.Always = append(r.Always, tool)
	}
}

// forgetAlways has all later calls asked for again.
func (r *Requests) forgetAlways() { r.Always = nil }

func (r *Requests) remind(i int) { r.Open[i].Reminded = true }

// asks reports whether a request of a type is open.
func (r Requests) asks(t agent.RequestType) bool {
	return slices.ContainsFunc(r.Open, func(q Request) bool { return q.Type == t })
}

// recount computes the sizes again, after an import.
func (r *Requests) recount() {
	for i, o := range r.Open {
		if most := ownContext(o.Request); most > 0 {
			o.Text, o.Context = fit(o.Text, maxReason), fit(o.Context, most)
		}
		r.Open[i] = o.sized(o.Text)
	}
}

// adopt makes the open requests those of the run that continues an imported one.
func (r *Requests) adopt(run string) {
	for i := range r.Open {
		r.Open[i].Run = run
	}
}

// reasons returns the open requests as reasons to wait.
func (r Requests) reasons() (all reasons) {
	for _, o := range r.Open {
		why := reason{kind: agent.SuspensionInputRequired, owner: agent.OwnerOperator, expires: o.Deadline, finds: []string{string(o.Type)}}
		for _, a := range o.Approvers {
			why.finds = append(why.finds, "approver:"+a)
		}
		all = append(all, why)
	}
	return all
}

// due returns when the next request expires or has its reminder.
func (r Requests) due() (d due) {
	for _, o := range r.Open {
		d = d.or(o.Deadline, "the deadline of "+o.ID)
		if !o.Reminded {
			d = d.or(o.RemindAt, "the reminder of "+o.ID)
		}
	}
	return d
}

// memo returns the request as listings show it.
func (r Request) memo() agent.MemoRequest {
	m := agent.MemoRequest{
		ID: r.ID, Type: r.Type, Text: firstCharacters(r.Text, 200), Choices: r.Choices, Digest: r.Digest, Approvers: r.Approvers,
		Opened: r.Opened, Deadline: r.Deadline, Default: firstCharacters(r.Default, 100), Reminded: r.Reminded, Step: r.Step,
	}
	if r.Call != nil {
		m.Tool = r.Call.Tool
	}
	return m
}

// firstCharacters returns the beginning of a text, at most so many characters long.
func firstCharacters(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return text
}

// redacted returns the request without what people, models or a flow's data say in it. The memo has
// the choices, so a default that is one of them stays.
func redacted(m agent.MemoRequest) agent.MemoRequest {
	m.Text, m.Step = "", "" // a path may have keys of the flow's data
	if m.Type == agent.RequestQuestion && m.Default != "" && !slices.Contains(m.Choices, m.Default) {
		m.Default = "…"
	}
	return m
}

// timed returns a request with its times, the step that asks, and then its size; see sized for words.
func (s *step) timed(o Request, p agent.AnswerTimeouts, words string) Request {
	r := &o.Request
	if i := s.Calls.find(o.CallID); i >= 0 {
		r.Step = s.stepPath(s.Calls.List[i])
	}
	if p.Deadline > 0 {
		r.Deadline, r.Default = s.now().Add(time.Duration(p.Deadline)), p.Default
	}
	if p.Remind > 0 {
		r.RemindAt = s.now().Add(time.Duration(p.Remind))
	}
	return o.sized(words)
}

// openRequest opens a request and returns its id.
func (s *step) openRequest(o Request, by agent.Initiator, cause string) string {
	r := &o.Request
	// First: the request names the suspension that it belongs to. A flow's other steps go on,
	// so its requests belong to none.
	if !s.isFlow() || r.Type == agent.RequestLimit {
		s.openSuspension(by, cause, r.Text)
		r.Suspension = s.Suspensions.Open.ID
	}
	s.Counters.Request++
	r.ID, r.Session, r.Run, r.Agent = requestID(s.Counters.Request), s.Session, s.Run, s.agent()
	r.Opened = s.now()
	s.Requests.open(o)
	s.changed = true
	s.record(agent.Event{Type: agent.EventRequestOpened, Request: r})
	return r.ID
}

// The choices of the requests that the runtime opens itself.
const (
	choiceContinue = "continue"
	choiceStop     = "stop"
)

// askLimit opens a request about a limit instead of failing. Cause is the limit's code:
// limitDecided renews that limit.
func (s *step) askLimit(err *agent.Error) {
	p := s.answerTimeouts()
	// Any other default is an answer to a question, and none to a limit.
	if d := s.Spec.AnswerTimeouts.Default; d == choiceContinue || d == choiceStop {
		p.Default = d
	}
	s.openRequest(s.timed(Request{Request: agent.Request{
		Type: agent.RequestLimit, Text: err.Message, Context: fit(s.progress(), maxProgress), Choices: []string{choiceContinue, choiceStop}, Cause: err.Code,
	}}, p, ""), agent.InitiatorPolicy, string(err.Code))
}

// closeUnanswered closes a request that nobody answered.
func (s *step) closeUnanswered(id, how string) {
	s.changed = true
	s.Requests.close(Decided{ID: id, How: how, At: s.now()})
}

// expireRequests decides the requests whose deadline has come, and marks reminders.
func (s *step) expireRequests() {
	for _, r := range slices.Clone(s.Requests.Open) {
		i := s.Requests.find(r.ID)
		switch {
		case i < 0 || s.outcomeDecided(): // an earlier one ended the run, which closes all
		case reached(r.Deadline, s.At):
			s.expire(r)
		case !r.Reminded && reached(r.RemindAt, s.At):
			s.Requests.remind(i)
			s.changed = true
			s.record(agent.Event{Type: agent.EventRequestReminded, Answer: &agent.Answered{Request: r.ID}})
		}
	}
}

// expire decides a request by its deadline.
func (s *step) expire(r Request) {
	s.record(agent.Event{Type: agent.EventRequestExpired, Answer: &agent.Answered{Request: r.ID, Decision: r.Default}})
	s.closeUnanswered(r.ID, "decided by its deadline")
	s.Late.expired(r, s.now())
	s.noteDeadline(r)
	s.resumed = agent.Resumed{Cause: agent.InitiatorTimeout}
	i := s.Calls.find(r.CallID)
	switch {
	case r.Type == agent.RequestLimit:
		s.limitDecided(r, firstOf(r.Default, choiceStop), nil)
	case s.decideStep(i, stepDecision{Approved: r.Default == agent.DefaultApprove, Expired: true}):
	case r.Type == agent.RequestApproval && r.Default == agent.DefaultApprove:
		s.Calls.approve(i, "", nil)
	case r.Type == agent.RequestApproval:
		s.setResult(i, agent.CallRejected, "Not executed: nobody approved it in time.")
	case r.RetryCall:
		s.retryCall(r, agent.ToolAnswer{Text: r.Default, Declined: r.Default == "", Expired: true})
	case s.decideUnknown(i, firstOf(r.Default, string(wire.UnknownFail)), false):
	case r.Default != "":
		s.setResultSized(i, agent.CallOK, r.Default, len(r.Default))
	default:
		s.setResult(i, agent.CallFailed, "Nobody answered in time.")
	}
}
