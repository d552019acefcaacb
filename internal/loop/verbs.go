package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Verbs is the part that knows which verbs were processed, so that a second arrival of
// one changes nothing.
type Verbs struct {
	// Processed are the last verbs with an id, and what became of them.
	Processed []ProcessedVerb `json:"processed,omitempty"`
	Size      int             `json:"size,omitempty"` // of the processed
	// Refused are the last that were refused and could not be told.
	Refused []agent.RefusedVerb `json:"refused,omitempty"`
	// UsedTokens are the tokens of verbs that decide no request, until they expire: each is good
	// for one verb. A token for a request is spent with the request.
	UsedTokens []UsedToken `json:"used_tokens,omitempty"`
}

// UsedToken is a token that was used, and until when somebody could use it again, in seconds of
// Unix time.
type UsedToken struct {
	Nonce string `json:"nonce"`
	Until int64  `json:"until"`
}

// ProcessedVerb is a verb with an id and what became of it: a second arrival gets the same
// answer (docs/wire.md §2).
type ProcessedVerb struct {
	ID string `json:"id"`
	// Digest is that of the verb and its payload (see [remembered.CommandDigest]).
	Digest     string       `json:"digest"`
	Status     agent.Status `json:"status"`
	Suspension string       `json:"suspension,omitempty"`
	Seq        int64        `json:"seq"`
	Effect     agent.Effect `json:"effect"`
}

// Bounds of what a run remembers of verbs.
const (
	maxProcessed  = 1000
	maxUsedTokens = 400
	maxRefused    = 8
	maxRefusal    = 1 << 10 // the weight of why
	maxName       = 256     // that of the field, and of the verb
)

func (v Verbs) clone() Verbs {
	v.Processed, v.Refused, v.UsedTokens = slices.Clip(v.Processed), slices.Clip(v.Refused), slices.Clip(v.UsedTokens)
	return v
}

// find is what became of a verb with an id.
func (v Verbs) find(id string) (ProcessedVerb, bool) {
	i := slices.IndexFunc(v.Processed, func(p ProcessedVerb) bool { return id != "" && p.ID == id })
	if i < 0 {
		return ProcessedVerb{}, false
	}
	return v.Processed[i], true
}

// remember remembers what became of a verb, if it has an id.
func (v *Verbs) remember(p ProcessedVerb) {
	if p.ID == "" {
		return
	}
	v.Processed, v.Size = append(v.Processed, p), v.Size+p.jsonLen()
	v.forget()
}

// forget drops the oldest verbs until the others keep their share.
func (v *Verbs) forget() {
	n := 0
	for ; len(v.Processed)-n > maxProcessed || v.Size > verbShare-usedTokenShare; n++ {
		v.Size -= v.Processed[n].jsonLen()
	}
	if n > 0 {
		v.Processed = slices.Clone(v.Processed[n:])
	}
}

// recount counts anew how long what is remembered is.
func (v *Verbs) recount() {
	v.Size = 0
	for _, p := range v.Processed {
		v.Size += p.jsonLen()
	}
	v.forget()
	v.Refused = v.Refused[max(0, len(v.Refused)-maxRefused):]
}

func (p ProcessedVerb) jsonLen() int {
	return verbFrame + digestFrame + jsonLen(p.ID) + len(p.Suspension)
}

// refused remembers a verb that was refused and could not be told.
func (v *Verbs) refused(r agent.RefusedVerb) {
	v.Refused = append(v.Refused, r)
	if n := len(v.Refused) - maxRefused; n > 0 {
		v.Refused = slices.Clone(v.Refused[n:])
	}
}

// commandReceived obeys a verb, or refuses it before anything changes. A known id comes before all else,
// also before the run's end: the first answer is good forever. A refusal is not remembered.
func (s *step) commandReceived(in CommandReceived) error {
	sum := ""
	if in.ID != "" {
		sum = remembered.CommandDigest(in.Command)
	}
	p, known := s.Verbs.find(in.ID)
	if known && p.Digest == sum {
		s.do(Acknowledge{s.ack(p)})
		return nil
	}
	s.verb, s.id, s.digest, s.effect = in.Command.Verb(), in.ID, sum, agent.EffectAccepted
	err := s.checkRun(in.Command.Header())
	if known {
		err = s.refuseAs(agent.CodeInvalidInput, "id", "id %s is that of another verb or payload; use a new id for what is new", in.ID)
	}
	if err == nil {
		err = s.execute(in)
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
	return agent.Errorf(agent.CodeInternal, "%w", err)
}

// checkRun refuses what was said to another run of the session, or to one at its end.
func (s *step) checkRun(o agent.CommandHeader) error {
	if o.Run != "" && !s.matchesRun(o.Run) {
		return s.refuseAs(agent.CodeStale, "run", "it is for run %s; the session's live run is %s", o.Run, s.Run)
	}
	if s.decided() && s.verb != agent.VerbCancel {
		return s.refuseAs(agent.CodeClosed, "", "the run is at its end (%s)", s.End.Outcome.Status)
	}
	return nil
}

// useToken takes the token of a verb that decides no request, which is good once. Stop and cancel
// are taken also where no more tokens can be remembered: to say them again changes nothing.
func (s *step) useToken(p Proof, verb agent.Verb) error {
	if p.Nonce == "" {
		return nil
	}
	now := s.At.Unix()
	s.Verbs.UsedTokens = slices.DeleteFunc(slices.Clone(s.Verbs.UsedTokens), func(t UsedToken) bool { return t.Until <= now })
	switch {
	case slices.ContainsFunc(s.Verbs.UsedTokens, func(t UsedToken) bool { return t.Nonce == p.Nonce }):
		return s.refuseAs(agent.CodeUsed, "token", "the token of %s was used already; ask for a new one", p.Principal)
	case len(s.Verbs.UsedTokens) >= maxUsedTokens && (verb == agent.VerbStop || verb == agent.VerbCancel):
		return nil
	case len(s.Verbs.UsedTokens) >= maxUsedTokens:
		return s.refuseAs(agent.CodeQueueFull, "token", "the run remembers the last %d tokens until they expire, and can't take another now: wait until the first does, or mint tokens that are good for a shorter time", maxUsedTokens)
	}
	s.Verbs.UsedTokens = append(s.Verbs.UsedTokens, UsedToken{p.Nonce, p.Expires.Unix()})
	return nil
}

// checkPolicy refuses what nobody has vouched for and the policy binds with which the run
// began: a signal can't prove who says it. What came as an update was held to the policy
// that its worker had then; what that decided does not change when the policy does.
func (s *step) checkPolicy(in CommandReceived) error {
	if in.PolicyChecked {
		return nil
	}
	for _, verb := range verbsOf(in.Command) {
		if err := s.Policy().Refuses(s.Labels(), verb, ""); err != nil {
			return s.refuseAs(err.Code, err.Path, "%s", err.Message)
		}
	}
	return nil
}

// verbsOf lists what a command says: its verb or, of several answers, that of each.
func verbsOf(c agent.Command) (verbs []agent.Verb) {
	list, ok := c.(agent.AnswersCommand)
	if !ok {
		return []agent.Verb{c.Verb()}
	}
	for _, a := range list.Answers {
		for _, said := range a.Commands() {
			verbs = append(verbs, said.Verb())
		}
	}
	return verbs
}

func (s *step) execute(in CommandReceived) error {
	if err := s.checkPolicy(in); err != nil {
		return err
	}
	own := in.proof("")
	if err := s.useToken(own, in.Command.Verb()); err != nil {
		return err
	}
	if session, id, c, ok := s.addressedToChild(in.Command); ok {
		return s.forward(session, id, c)
	}
	switch c := withPrincipal(in.Command, own.Principal).(type) {
	case agent.PauseCommand:
		return s.holdAs(agent.InitiatorOperator, agent.VerbPause, c.CommandHeader, c.Reason, 0)
	case agent.InterruptCommand:
		return s.holdAs(agent.InitiatorOperator, agent.VerbInterrupt, c.CommandHeader, c.Reason, c.Grace)
	case agent.ResumeCommand:
		if err := s.checkAge(s.resumeBy()); err != nil {
			return err
		}
		return s.resume(c)
	case agent.StopCommand:
		return s.stop(c)
	case agent.CancelCommand:
		return s.cancelled(firstOf(c.Reason, agent.ReasonRequested))
	case agent.SendCommand:
		return s.send(c, in.ID)
	case agent.AnswerCommand:
		return s.decide(decision{request: c.Request, answer: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.ApproveCommand:
		return s.decide(decision{request: c.Request, approve: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.RejectCommand:
		return s.decide(decision{request: c.Request, reject: &c, by: c.By, approver: in.approver(c.Request)})
	case agent.AnswersCommand:
		return s.answerAll(c, in)
	case agent.EmitCommand:
		return s.emit(c, in)
	}
	return agent.Errorf(agent.CodeInternal, "the machine knows no verb %T", in.Command)
}

// proof is what proves who decides a request, or says the whole verb; the zero value if
// nothing does.
func (in CommandReceived) proof(request string) Proof {
	for _, p := range in.Proofs {
		if p.Request == request {
			return p
		}
	}
	return Proof{}
}

func (in CommandReceived) approver(request string) string { return in.proof(request).Principal }

// withPrincipal makes a verb that of who proved to say it, whatever it claims itself.
func withPrincipal(c agent.Command, principal string) agent.Command {
	if principal == "" {
		return c
	}
	switch c := c.(type) {
	case agent.PauseCommand:
		c.By = principal
		return c
	case agent.InterruptCommand:
		c.By = principal
		return c
	case agent.ResumeCommand:
		c.By = principal
		return c
	case agent.StopCommand:
		c.By = principal
		return c
	case agent.SendCommand:
		c.By = principal
		return c
	case agent.EmitCommand:
		c.By = principal
		return c
	}
	return c
}

// resume removes the session's own hold, or wakes a run that waits for nothing that
// somebody has to say.
func (s *step) resume(o agent.ResumeCommand) error {
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.CodeStale, "", "the run is being stopped")
	case s.Suspensions.Open == nil:
		return s.refuseAs(agent.CodeNotSuspended, "", "the run is not suspended, it is %s", s.Status())
	case o.Suspension != "" && o.Suspension != s.Suspensions.Open.ID:
		return s.refuseAs(agent.CodeStale, "suspension", "%s is not open; open is %s", o.Suspension, s.Suspensions.Open.ID)
	case s.Holds.own() == nil && s.Holds.any():
		return s.refuseAs(agent.CodeHeldByParent, "", "the run is held by session %s; resume that one", s.Holds.List[0].Session)
	case s.Holds.own() == nil && len(s.Requests.Open) > 0:
		return s.refuseAs(agent.CodeNeedsAnswer, "", "the run waits for the answer to %s", strings.Join(s.Requests.ids(), ", "))
	}
	if s.Holds.own() == nil && s.Park == nil {
		return s.refuseAs(agent.CodeNotSuspended, "", "the run waits for the agents that it gave work to; resume or answer %s", strings.Join(s.suspendedChildren(), ", "))
	}
	message := agent.TextMessage(agent.RoleUser, o.Message)
	if message.By = o.By; o.Message != "" && !s.messageFits(message) {
		return s.checkRoom("message")
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.InitiatorOperator, By: o.By}
	}
	s.resumed.FromSummary = o.FromSummary
	if s.Holds.own() != nil {
		s.removeHold(agent.HoldOwn)
		s.orderChildren(s.passHolds(agent.VerbResume, 0))
	} else if !s.idling() {
		s.endPark()
	} else if o.Message == "" {
		s.steerOwn(wakeMessage("Somebody resumed you, and said no more."))
	}
	s.resumeWith("Somebody resumed you.", "")
	if o.FromSummary {
		s.startFromSummary()
	}
	if o.Message != "" {
		s.steer(message)
	}
	return nil
}

// answerAll decides all requests or none.
func (s *step) answerAll(o agent.AnswersCommand, in CommandReceived) error {
	var all []decision
	for i, a := range o.Answers {
		if strings.Contains(a.Request, "/") {
			return s.refuseAs(agent.CodeInvalidInput, fmt.Sprintf("answers[%d].request", i), "%s is asked by a run below this one; answer it alone, or there", a.Request)
		}
		d := decision{request: a.Request, answer: a.Answer, approve: a.Approve, reject: a.Reject, by: o.By, approver: in.approver(a.Request)}
		at, err := s.findRequest(a.Request)
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
func (s *step) already() error { s.effect = agent.EffectAlready; return nil }

// refusedVerb remembers a verb that was refused and could not be told.
func (s *step) refusedVerb(in CommandRefused) {
	why := *in.Err
	why.Message, why.Path = fit(why.Message, maxRefusal), fit(why.Path, maxName)
	r := agent.RefusedVerb{Verb: fit(in.Verb, maxName), How: "signal", At: s.now(), Error: &why}
	s.Verbs.refused(r)
	if s.Phase != RunEnded { // what is stored then is all: the status alone shows it
		s.recordIfBegun(agent.Event{Type: agent.EventVerbRefused, Refusal: &r})
	}
}

// acknowledge answers the verb of this step, and remembers the answer.
func (s *step) acknowledge() {
	if s.verb == "" {
		return
	}
	p := ProcessedVerb{ID: s.id, Digest: s.digest, Status: s.Status(), Seq: s.Log.Seq, Effect: s.effect}
	if s.Suspensions.Open != nil {
		p.Suspension = s.Suspensions.Open.ID
	}
	s.Verbs.remember(p)
	s.do(Acknowledge{s.ack(p)})
}

func (s *step) ack(p ProcessedVerb) agent.Ack {
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
