package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Verbs is the part that knows the processed verbs, so that a repeated one changes nothing.
type Verbs struct {
	// Processed are the last verbs with an id, and their answers.
	Processed []ProcessedVerb `json:"processed,omitempty"`
	Size      int             `json:"size,omitempty"` // of Processed, in JSON
	// Refused are the last refused verbs that came as signals: their senders got no answer.
	Refused []agent.RefusedVerb `json:"refused,omitempty"`
	// UsedTokens are the tokens of verbs that decide no request, until they expire. Each is
	// good for one verb. A token for a request is used up with the request.
	UsedTokens []UsedToken `json:"used_tokens,omitempty"`
}

// UsedToken is a used token. Until is when it expires, in seconds of Unix time.
type UsedToken struct {
	Nonce string `json:"nonce"`
	Until int64  `json:"until"`
}

// ProcessedVerb is the answer to a verb with an id, should it come again (docs/wire.md §2).
type ProcessedVerb struct {
	ID string `json:"id"`
	// Digest is the digest of verb and payload (see [remembered.CommandDigest]).
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
	maxRefusal    = 1 << 10 // the reason's length in JSON
	maxName       = 256     // the lengths in JSON of the field, of the verb and of who sent it
)

func (v Verbs) clone() Verbs {
	v.Processed, v.Refused, v.UsedTokens = slices.Clip(v.Processed), slices.Clip(v.Refused), slices.Clip(v.UsedTokens)
	return v
}

func (v Verbs) find(id string) (ProcessedVerb, bool) {
	i := slices.IndexFunc(v.Processed, func(p ProcessedVerb) bool { return id != "" && p.ID == id })
	if i < 0 {
		return ProcessedVerb{}, false
	}
	return v.Processed[i], true
}

func (v *Verbs) remember(p ProcessedVerb) {
	if p.ID == "" {
		return
	}
	v.Processed, v.Size = append(v.Processed, p), v.Size+p.jsonLen()
	v.forget()
}

// amend replaces the remembered answer to a verb. The new one takes no more room.
func (v *Verbs) amend(p ProcessedVerb) {
	if i := slices.IndexFunc(v.Processed, func(one ProcessedVerb) bool { return one.ID == p.ID }); i >= 0 {
		v.Processed, v.Size = slices.Clone(v.Processed), v.Size+p.jsonLen()-v.Processed[i].jsonLen()
		v.Processed[i] = p
	}
}

// forget drops the oldest processed verbs until the others fit into their share.
func (v *Verbs) forget() {
	n := 0
	for ; len(v.Processed)-n > maxProcessed || v.Size > verbShare-usedTokenShare; n++ {
		v.Size -= v.Processed[n].jsonLen()
	}
	if n > 0 {
		v.Processed = slices.Clone(v.Processed[n:])
	}
}

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

func (v *Verbs) refused(r agent.RefusedVerb) {
	v.Refused = append(v.Refused, r)
	if n := len(v.Refused) - maxRefused; n > 0 {
		v.Refused = slices.Clone(v.Refused[n:])
	}
}

// commandReceived carries out a verb, or refuses it. A known id repeats its first answer,
// also after the run's end. A refusal is not remembered, so the same id may be used again.
func (s *step) commandReceived(in CommandReceived) error {
	sum := ""
	if in.ID != "" {
		sum = remembered.CommandDigest(in.Command)
	}
	p, known := s.saidBefore(in.ID)
	// Before every check: the first answer stays true, whatever the run has come to.
	if known && p.Digest == sum {
		if !s.owesAnswer(in.ID) { // else all that have said it get one answer, later
			s.do(Acknowledge{Ack: s.ack(p)})
		}
		return nil
	}
	s.verb, s.verbID, s.verbDigest, s.verbEffect = in.Command.Verb(), in.ID, sum, agent.EffectAccepted
	s.bySignal = !in.PolicyChecked
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

// checkRun refuses a verb for another run, and any verb but cancel at the run's end.
func (s *step) checkRun(o agent.CommandHeader) error {
	if o.Run != "" && !s.matchesRun(o.Run) {
		return s.refuseAs(agent.CodeStale, "run", "it is for run %s; the session's live run is %s", o.Run, s.Run)
	}
	if s.outcomeDecided() && s.verb != agent.VerbCancel {
		return s.refuseAs(agent.CodeClosed, "", "the run is at its end (%s)", s.End.Outcome.Status)
	}
	return nil
}

// useToken uses up the token of a verb that decides no request. If no more tokens can be
// remembered, stop and cancel are still taken: to repeat them changes nothing.
func (s *step) useToken(p Proof, verb agent.Verb) error {
	if p.Nonce == "" {
		return nil
	}
	// An expired token is refused anyway, so it is forgotten.
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
	// A refusal later in this step leaves the state as it was, and the token good.
	s.Verbs.UsedTokens = append(s.Verbs.UsedTokens, UsedToken{p.Nonce, p.Expires.Unix()})
	return nil
}

// releaseToken makes a token good again that a verb has used, and returns it.
func (v *Verbs) releaseToken(nonce string) (was UsedToken) {
	v.UsedTokens = slices.DeleteFunc(slices.Clone(v.UsedTokens), func(t UsedToken) bool {
		if nonce == "" || t.Nonce != nonce {
			return false
		}
		was = t
		return true
	})
	return was
}

// checkPolicy refuses a verb that the run's policy binds, unless its worker has checked it:
// a signal can't prove who sent it. The worker's decision holds also when its policy
// changes.
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

// verbsOf returns the verb of a command or, of several answers, the verb of each.
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
	// After the checks: the child gets it as a signal, which proves nothing.
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
		return s.resumeByHooks(c, in)
	case agent.StopCommand:
		return s.stop(c)
	case agent.CancelCommand:
		return s.cancelled(firstOf(strings.TrimSpace(c.Reason), agent.ReasonRequested), c.By, byCaller)
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

// proof returns the proof for a request or, if that is empty, for the whole verb.
func (in CommandReceived) proof(request string) Proof {
	for _, p := range in.Proofs {
		if p.Request == request {
			return p
		}
	}
	return Proof{}
}

func (in CommandReceived) approver(request string) string { return in.proof(request).Principal }

// withPrincipal sets who says a verb to the proved principal, whatever the verb claims.
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
	case agent.CancelCommand:
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

// answerAll decides all requests, or none.
func (s *step) answerAll(o agent.AnswersCommand, in CommandReceived) error {
	var all []decision
	for i, a := range o.Answers {
		if strings.Contains(a.Request, "/") {
			return s.refuseAs(agent.CodeInvalidInput, fmt.Sprintf("answers[%d].request", i), "%s is asked by a run below this one; answer it alone, or there", a.Request)
		}
		d := decision{request: a.Request, answer: a.Answer, approve: a.Approve, reject: a.Reject, by: o.By, approver: in.approver(a.Request)}
		// All are checked before the first is decided: the error then names its answer.
		at, missing := s.findRequest(a.Request)
		err := missing
		if err == nil {
			err = s.mayDecide(s.Requests.Open[at], d)
		}
		if err != nil {
			e := *asError(err)
			e.Path = fmt.Sprintf("answers[%d].%s", i, e.Path)
			if missing != nil && len(o.Answers) == 1 { // of several, none is taken
				return s.lateAnswer(d, &e)
			}
			return &e
		}
		all = append(all, d)
	}
	if s.Revision >= rejectionStaysSince {
		slices.SortStableFunc(all, func(a, b decision) int { return cmp.Compare(a.reach(), b.reach()) })
	}
	for _, d := range all {
		// An approval with "always" may have decided this one already.
		if s.Requests.find(d.request) >= 0 {
			if err := s.decide(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// already leaves the state as it is: an equal or stronger verb is in effect.
func (s *step) already() error { s.verbEffect = agent.EffectAlready; return nil }

// refusedVerb records a verb that came as a signal and was refused.
func (s *step) refusedVerb(in CommandRefused) error {
	s.showRefused(in.Verb, in.By, *in.Err)
	return nil
}

// showRefused shows in status and log that a signal was refused.
func (s *step) showRefused(verb, by string, why agent.Error) {
	why.Message, why.Path = fit(why.Message, maxRefusal), fit(why.Path, maxName)
	r := agent.RefusedVerb{Verb: fit(verb, maxName), How: "signal", By: fit(by, maxName), At: s.now(), Error: &why}
	s.Verbs.refused(r)
	if s.Phase != RunEnded { // the log is complete by then, so only the status shows it
		s.recordIfBegun(agent.Event{Type: agent.EventVerbRefused, Refusal: &r})
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
