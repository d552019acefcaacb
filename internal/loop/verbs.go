package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Told is a verb with an id and what became of it: a second arrival gets the
// same answer (wire §2).
type Told struct {
	ID         string       `json:"id"`
	Status     agent.Status `json:"status"`
	Suspension string       `json:"suspension,omitempty"`
	Seq        int64        `json:"seq"`
	Effect     agent.Effect `json:"effect"`
}

// Bounds of what a run remembers of what it was told.
const (
	maxTold    = 1000
	maxRefused = 8
	maxRefusal = 1 << 10
	maxLetters = 100
	maxWaiting = 1 << 20 // bytes of letters
)

// said obeys a verb, or refuses it before anything changes.
func (s *step) said(in Said) error {
	o := in.Command.Common()
	if i := slices.IndexFunc(s.Told, func(t Told) bool { return in.ID != "" && t.ID == in.ID }); i >= 0 {
		t := s.Told[i]
		s.do(Acknowledge{s.ack(t.Status, t.Suspension, t.Seq, t.Effect)})
		return nil
	}
	s.verb, s.id, s.effect = in.Command.Verb(), in.ID, agent.Accepted
	err := s.guard(o)
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
	if e, ok := err.(*agent.Error); ok {
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
		return s.refuseAs(agent.Closed, "", "the run is at its end (%s)", s.Outcome.Status)
	}
	return nil
}

func (s *step) obey(in Said) error {
	if session, id, c, ok := s.addressed(in.Command); ok {
		return s.passOn(session, id, c)
	}
	switch c := in.Command.(type) {
	case agent.PauseOrder:
		return s.holdAs(agent.ByOperator, agent.Pause, c.Order, c.Reason, 0)
	case agent.InterruptOrder:
		return s.holdAs(agent.ByOperator, agent.Interrupt, c.Order, c.Reason, c.Grace)
	case agent.ResumeOrder:
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

func (in Said) approver(request string) string {
	for _, p := range in.Proved {
		if p.Request == request {
			return p.Approver
		}
	}
	return ""
}

// resume lifts the session's own hold, or wakes a run that waits for nothing that
// somebody has to say.
func (s *step) resume(o agent.ResumeOrder) error {
	switch {
	case s.Stopping != nil:
		return s.refuseAs(agent.Stale, "", "the run is being stopped")
	case s.Wait == nil:
		return s.refuseAs(agent.NotSuspended, "", "the run is not suspended, it is %s", s.Status())
	case o.Suspension != "" && o.Suspension != s.Wait.ID:
		return s.refuseAs(agent.Stale, "suspension", "%s is not open; open is %s", o.Suspension, s.Wait.ID)
	case s.ownHold() == nil && s.held():
		return s.refuseAs(agent.HeldByParent, "", "the run is held by session %s; resume that one", s.Holds[0].Session)
	case s.ownHold() == nil && len(s.Requests) > 0:
		return s.refuseAs(agent.NeedsAnswer, "", "the run waits for the answer to %s", strings.Join(s.openIDs(), ", "))
	}
	if s.ownHold() == nil && s.Park == nil {
		return s.refuseAs(agent.NotSuspended, "", "the run waits for the agents that it gave work to; resume or answer those")
	}
	if s.resumed.Cause == "" {
		s.resumed = agent.Resumed{Cause: agent.ByOperator, By: o.By}
	}
	s.resumed.Fresh = o.Fresh
	if s.ownHold() != nil {
		s.lift(agent.HoldOwn)
		s.tellChildren(s.pass(agent.Resume, 0))
	} else if !s.idling() {
		s.Park = nil
	} else if o.Message == "" {
		s.steer(wakeMessage("Somebody resumed you, and said no more."))
	}
	s.goOnWith("Somebody resumed you.", "")
	if o.Fresh {
		s.fresh()
	}
	if o.Message != "" {
		m := agent.TextMessage(agent.RoleUser, o.Message)
		m.By = o.By
		s.steer(m)
	}
	return nil
}

func (s *step) send(o agent.SendOrder, id string) error {
	m := agent.Message{ID: id, Role: agent.RoleUser, By: o.By}
	if o.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: o.Text})
	}
	m.Parts = append(m.Parts, o.Parts...)
	size := m.Size()
	for _, l := range s.Letters {
		size += l.Message.Size()
	}
	switch {
	case s.posted(id) != "":
		return s.already()
	case s.Stopping != nil:
		return s.refuseAs(agent.Stale, "", "the run is being stopped; send when it has ended, to begin the next one")
	case len(s.Letters) >= maxLetters || size > maxWaiting:
		return s.refuseAs(agent.TooLarge, "", "%d messages wait already that the model has not got", len(s.Letters))
	}
	mode := o.Mode
	if mode == "" {
		mode = agent.SendSteer
	}
	s.Letters = append(s.Letters, Letter{Message: m, Mode: mode})
	s.post(id)
	if mode == agent.SendInterrupt {
		s.giveUp(0, "a message came in between")
	}
	return nil
}

// A session remembers so many messages by their ids, and a daemon's so many: its
// senders try again after a stop.
const (
	maxPosts       = 50
	maxDaemonPosts = 1000
)

// post remembers a message that came with an id.
func (s *step) post(id string) {
	if id == "" {
		return
	}
	s.Posts = append(s.Posts, agent.Post{ID: id, Run: s.Run})
	most := maxPosts
	if s.daemon() != nil || len(s.Events) > 0 { // which wait for the session's next daemon
		most = maxDaemonPosts
	}
	if n := len(s.Posts) - most; n > 0 {
		s.Posts = slices.Clone(s.Posts[n:])
	}
}

// posted is the run that has a message; empty where none has it.
func (s *step) posted(id string) string {
	for _, p := range s.Posts {
		if id != "" && p.ID == id {
			return p.Run
		}
	}
	if id != "" && slices.ContainsFunc(s.Events, func(e agent.EmitOrder) bool { return e.ID == id }) {
		return s.Run // with which it waits
	}
	return ""
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
			err = s.mayDecide(s.Requests[at], d)
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
		if slices.ContainsFunc(s.Requests, func(r Request) bool { return r.ID == d.request }) {
			if err := s.decide(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// emit tells of an event: one that a park waits for, or one for a daemon.
func (s *step) emit(o agent.EmitOrder, in Said) error {
	parked := s.Park != nil && !s.Park.Idle && s.Park.Met == nil && in.Matches
	switch {
	case s.daemon() != nil && s.posted(in.ID) != "":
		return s.already()
	case parked && s.daemon() != nil:
		s.post(in.ID)
		o.ID = in.ID
		s.met(metBy(o))
		s.Log.Behind = true
		return nil
	case parked:
		s.met(Met{Topic: o.Topic, Payload: o.Payload, By: o.By})
		return nil
	case s.hears(o.Topic):
		return s.queue(o, in.ID)
	}
	return s.refuseAs(agent.Stale, "topic", "the run does not wait for such an event of topic %s", o.Topic)
}

// already leaves things as they are: the same or a stronger verb stands.
func (s *step) already() error { s.effect = agent.Already; return nil }

// refusedVerb remembers a verb that was refused and could not be told.
func (s *step) refusedVerb(in Refused) {
	why := *in.Err
	why.Message = agent.Cut(why.Message, maxRefusal, len(why.Message))
	r := agent.RefusedVerb{Verb: in.Verb, How: "signal", At: s.now(), Error: &why}
	s.Refused = append(s.Refused, r)
	if n := len(s.Refused) - maxRefused; n > 0 {
		s.Refused = slices.Clone(s.Refused[n:])
	}
	if s.Phase != Ended { // what is stored then is all: the status alone shows it
		s.tell(agent.Event{Type: agent.VerbRefused, Refusal: &r})
	}
}

// acknowledge answers the verb of this step, and remembers the answer.
func (s *step) acknowledge() {
	if s.verb == "" {
		return
	}
	suspension := ""
	if s.Wait != nil {
		suspension = s.Wait.ID
	}
	ack := s.ack(s.Status(), suspension, s.Log.Seq, s.effect)
	if s.id != "" {
		s.Told = append(s.Told, Told{ID: s.id, Status: ack.Status, Suspension: suspension, Seq: ack.Seq, Effect: ack.Effect})
		if n := len(s.Told) - maxTold; n > 0 {
			s.Told = slices.Clone(s.Told[n:])
		}
	}
	s.do(Acknowledge{ack})
}

func (s *step) ack(status agent.Status, suspension string, seq int64, effect agent.Effect) agent.Ack {
	return agent.Ack{V: agent.Version, Session: s.Session, Run: s.Run, Status: status, Suspension: suspension, Seq: seq, Effect: effect}
}
