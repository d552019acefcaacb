package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Verbs is the part that knows which verbs were processed, so that a second arrival of
// one changes nothing.
type Verbs struct {
	// Processed are the last verbs with an id, and what became of them.
	Processed []Processed `json:"processed,omitempty"`
	Size      int         `json:"size,omitempty"` // of the processed
	// Refused are the last that were refused and could not be told.
	Refused []agent.RefusedVerb `json:"refused,omitempty"`
	// Spent are the tokens of verbs that decide no request, until they expire: each is good
	// for one verb. A token for a request is spent with the request.
	Spent []Spent `json:"spent,omitempty"`
}

// Spent is a token that was used, and until when somebody could use it again, in seconds of
// Unix time.
type Spent struct {
	Nonce string `json:"nonce"`
	Until int64  `json:"until"`
}

// Processed is a verb with an id and what became of it: a second arrival gets the same
// answer (wire §2).
type Processed struct {
	ID string `json:"id"`
	// Sum is that of the verb and its payload (see [agent.SumOf]).
	Sum        string       `json:"sum"`
	Status     agent.Status `json:"status"`
	Suspension string       `json:"suspension,omitempty"`
	Seq        int64        `json:"seq"`
	Effect     agent.Effect `json:"effect"`
}

// Bounds of what a run remembers of verbs.
const (
	maxProcessed = 1000
	maxSpent     = 400
	maxRefused   = 8
	maxRefusal   = 1 << 10 // the weight of why
	maxName      = 256     // that of the field, and of the verb
)

func (v Verbs) clone() Verbs {
	v.Processed, v.Refused, v.Spent = slices.Clip(v.Processed), slices.Clip(v.Refused), slices.Clip(v.Spent)
	return v
}

// find is what became of a verb with an id.
func (v Verbs) find(id string) (Processed, bool) {
	i := slices.IndexFunc(v.Processed, func(p Processed) bool { return id != "" && p.ID == id })
	if i < 0 {
		return Processed{}, false
	}
	return v.Processed[i], true
}

// processed remembers what became of a verb, if it has an id.
func (v *Verbs) processed(p Processed) {
	if p.ID == "" {
		return
	}
	v.Processed, v.Size = append(v.Processed, p), v.Size+p.inJSON()
	v.forget()
}

// forget drops the oldest verbs until the others keep their share.
func (v *Verbs) forget() {
	n := 0
	for ; len(v.Processed)-n > maxProcessed || v.Size > verbShare-spentShare; n++ {
		v.Size -= v.Processed[n].inJSON()
	}
	if n > 0 {
		v.Processed = slices.Clone(v.Processed[n:])
	}
}

// recount counts anew how long what is remembered is.
func (v *Verbs) recount() {
	v.Size = 0
	for _, p := range v.Processed {
		v.Size += p.inJSON()
	}
	v.forget()
	v.Refused = v.Refused[max(0, len(v.Refused)-maxRefused):]
}

func (p Processed) inJSON() int { return verbFrame + sumFrame + inJSON(p.ID) + len(p.Suspension) }

// refused remembers a verb that was refused and could not be told.
func (v *Verbs) refused(r agent.RefusedVerb) {
	v.Refused = append(v.Refused, r)
	if n := len(v.Refused) - maxRefused; n > 0 {
		v.Refused = slices.Clone(v.Refused[n:])
	}
}

// said obeys a verb, or refuses it before anything changes. A known id comes before all else,
// also before the run's end: the first answer is good for ever. A refusal is not remembered.
func (s *step) said(in Said) error {
	sum := ""
	if in.ID != "" {
		sum = agent.SumOf(in.Command)
	}
	p, known := s.Verbs.find(in.ID)
	if known && p.Sum == sum {
		s.do(Acknowledge{s.ack(p)})
		return nil
	}
	s.verb, s.id, s.sum, s.effect = in.Command.Verb(), in.ID, sum, agent.Accepted
	err := s.guard(in.Command.Common())
	if known {
		err = s.refuseAs(agent.InvalidInput, "id", "id %s is that of another verb or payload; use a new id for what is new", in.ID)
	}
	if err == nil {
		err = s.obey(in)
	}
	if err == nil {
		return nil
	}
	s.verb = ""
	e := *asError(err)
	e.Message = string(in.Command.Verb()) + " refused: " + e.Message
	return &e
}

func asError(err error) *agent.Error {
	if e, ok := errors.AsType[*agent.Error](err); ok {
		return e
	}
	return agent.Errorf(agent.Internal, "%w", err)
}

// guard refuses what was said to another run of the session, or to one at its end.
func (s *step) guard(o agent.Order) error {
	if o.Run != "" && !s.names(o.Run) {
		return s.refuseAs(agent.Stale, "run", "it is for run %s; the session's live run is %s", o.Run, s.Run)
	}
	if s.over() && s.verb != agent.Cancel {
		return s.refuseAs(agent.Closed, "", "the run is at its end (%s)", s.End.Outcome.Status)
	}
	return nil
}

// spend takes the token of a verb that decides no request, which is good once. Stop and cancel
// are taken also where no more tokens can be remembered: to say them again changes nothing.
func (s *step) spend(p Proof, verb agent.Verb) error {
	if p.Nonce == "" {
		return nil
	}
	now := s.At.Unix()
	s.Verbs.Spent = slices.DeleteFunc(slices.Clone(s.Verbs.Spent), func(t Spent) bool { return t.Until <= now })
	switch {
	case slices.ContainsFunc(s.Verbs.Spent, func(t Spent) bool { return t.Nonce == p.Nonce }):
		return s.refuseAs(agent.Spent, "token", "the token of %s was used already; ask for a new one", p.Principal)
	case len(s.Verbs.Spent) >= maxSpent && (verb == agent.Stop || verb == agent.Cancel):
		return nil
	case len(s.Verbs.Spent) >= maxSpent:
		return s.refuseAs(agent.QueueFull, "token", "the run remembers the last %d tokens until they expire, and can't take another now: wait until the first does, or mint tokens that are good for a shorter time", maxSpent)
	}
	s.Verbs.Spent = append(s.Verbs.Spent, Spent{p.Nonce, p.Expires.Unix()})
	return nil
}

// permitted refuses what nobody has vouched for and the policy binds with which the run
// began: a signal can't prove who says it. What came as an update was held to the policy
// that its worker had then; what that decided does not change when the policy does.
func (s *step) permitted(in Said) error {
	if in.Vouched {
		return nil
	}
	for _, verb := range agent.VerbsOf(in.Command) {
		if err := s.Policy().Refuses(s.Labels(), verb, ""); err != nil {
			return s.refuseAs(err.Code, err.Path, "%s", err.Message)
		}
	}
	return nil
}

func (s *step) obey(in Said) error {
	if err := s.permitted(in); err != nil {
		return err
	}
	own := in.proof("")
	if err := s.spend(own, in.Command.Verb()); err != nil {
		return err
	}
	if session, id, c, ok := s.addressed(in.Command); ok {
		return s.passOn(session, id, c)
	}
	switch c := by(in.Command, own.Principal).(type) {
	case agent.PauseOrder:
		return s.holdAs(agent.ByOperator, agent.Pause, c.Order, c.Reason, 0)
	case agent.InterruptOrder:
		return s.holdAs(agent.ByOperator, agent.Interrupt, c.Order, c.Reason, c.Grace)
	case agent.ResumeOrder:
		if err := s.tooOld(s.resumeBy()); err != nil {
			return err
		}
		return s.resume(c)
	case agent.StopOrder:
		return s.stop(c)
	case agent.CancelOrder:
		return s.cancelled(firstOf(c.Reason, agent.ReasonRequested))
	case agent.SendOrder:
		return s.send(c, in.ID)
	case agent.AnswerOrder:
		return s.decide(decision{request: c.Request, answer: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.ApproveOrder:
		return s.decide(decision{request: c.Request, approve: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.RejectOrder:
		return s.decide(decision{request: c.Request, reject: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.AnswersOrder:
		return s.answers(c, in)
	case agent.EmitOrder:
		return s.emit(c, in)
	}
	return agent.Errorf(agent.Internal, "the machine knows no verb %T", in.Command)
}

// proof is what proves who decides a request, or says the whole verb; the zero value if
// nothing does.
func (in Said) proof(request string) Proof {
	for _, p := range in.Proved {
		if p.Request == request {
			return p
		}
	}
	return Proof{}
}

func (in Said) approver(request string) string { return in.proof(request).Principal }

// by makes a verb that of who proved to say it, whatever it claims itself.
func by(c agent.Command, principal string) agent.Command {
	if principal == "" {
		return c
	}
	switch c := c.(type) {
	case agent.PauseOrder:
		c.By = principal
		return c
	case agent.InterruptOrder:
		c.By = principal
		return c
	case agent.ResumeOrder:
		c.By = principal
		return c
	case agent.StopOrder:
		c.By = principal
		return c
	case agent.SendOrder:
		c.By = principal
		return c
	case agent.EmitOrder:
		c.By = principal
		return c
	}
	return c
}

// resume lifts the session's own hold, or wakes a run that waits for nothing that
// somebody has to say.
func (s *step) resume(o agent.ResumeOrder) error {
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.Stale, "", "the run is being stopped")
	case s.Rest.Wait == nil:
		return s.refuseAs(agent.NotSuspended, "", "the run is not suspended, it is %s", s.Status())
	case o.Suspension != "" && o.Suspension != s.Rest.Wait.ID:
		return s.refuseAs(agent.Stale, "suspension", "%s is not open; open is %s", o.Suspension, s.Rest.Wait.ID)
	case s.Holds.own() == nil && s.Holds.any():
		return s.refuseAs(agent.HeldByParent, "", "the run is held by session %s; resume that one", s.Holds.List[0].Session)
	case s.Holds.own() == nil && len(s.Requests.Open) > 0:
		return s.refuseAs(agent.NeedsAnswer, "", "the run waits for the answer to %s", strings.Join(s.Requests.ids(), ", "))
	}
	if s.Holds.own() == nil && s.Park == nil {
		return s.refuseAs(agent.NotSuspended, "", "the run waits for the agents that it gave work to; resume or answer %s", strings.Join(s.restingBelow(), ", "))
	}
	message := agent.TextMessage(agent.RoleUser, o.Message)
	if message.By = o.By; o.Message != "" && !s.mayWait(message) {
		return s.fullOf("message")
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.ByOperator, By: o.By}
	}
	s.resumed.Fresh = o.Fresh
	if s.Holds.own() != nil {
		s.removeHold(agent.HoldOwn)
		s.tellChildren(s.pass(agent.Resume, 0))
	} else if !s.idling() {
		s.leavePark()
	} else if o.Message == "" {
		s.steerOwn(wakeMessage("Somebody resumed you, and said no more."))
	}
	s.goOnWith("Somebody resumed you.", "")
	if o.Fresh {
		s.fresh()
	}
	if o.Message != "" {
		s.steer(message)
	}
	return nil
}

// answers decides all requests or none.
func (s *step) answers(o agent.AnswersOrder, in Said) error {
	var all []decision
	for i, a := range o.Answers {
		if strings.Contains(a.Request, "/") {
			return s.refuseAs(agent.InvalidInput, fmt.Sprintf("answers[%d].request", i), "%s is asked by a run below this one; answer it alone, or there", a.Request)
		}
		d := decision{request: a.Request, answer: a.Answer, approve: a.Approve, reject: a.Reject, by: o.By, approver: in.approver(a.Request)}
		at, err := s.find(a.Request)
		if err == nil {
			err = s.mayDecide(s.Requests.Open[at], d)
		}
		if err != nil {
			e := *asError(err)
			e.Path = fmt.Sprintf("answers[%d].%s", i, e.Path)
			return &e
		}
		all = append(all, d)
	}
	for _, d := range all {
		// One that "always" decided on the way needs no decision of its own any more.
		if s.Requests.find(d.request) >= 0 {
			if err := s.decide(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// already leaves things as they are: the same or a stronger verb stands.
func (s *step) already() error { s.effect = agent.Already; return nil }

// refusedVerb remembers a verb that was refused and could not be told.
func (s *step) refusedVerb(in Refused) {
	why := *in.Err
	why.Message, why.Path = fit(why.Message, maxRefusal), fit(why.Path, maxName)
	r := agent.RefusedVerb{Verb: fit(in.Verb, maxName), How: "signal", At: s.now(), Error: &why}
	s.Verbs.refused(r)
	if s.Life != Ended { // what is stored then is all: the status alone shows it
		s.tell(agent.Event{Type: agent.VerbRefused, Refusal: &r})
	}
}

// acknowledge answers the verb of this step, and remembers the answer.
func (s *step) acknowledge() {
	if s.verb == "" {
		return
	}
	p := Processed{ID: s.id, Sum: s.sum, Status: s.Status(), Seq: s.Log.Seq, Effect: s.effect}
	if s.Rest.Wait != nil {
		p.Suspension = s.Rest.Wait.ID
	}
	s.Verbs.processed(p)
	s.do(Acknowledge{s.ack(p)})
}

func (s *step) ack(p Processed) agent.Ack {
	return agent.Ack{V: agent.Version, Session: s.Session, Run: s.Run, Status: p.Status, Suspension: p.Suspension, Seq: p.Seq, Effect: p.Effect}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
