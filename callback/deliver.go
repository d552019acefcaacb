package callback

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// Receipt is the answer to a callback that a run has taken.
type Receipt struct {
	V       int        `json:"v"`
	Session string     `json:"session"`
	Run     string     `json:"run"`
	Verb    agent.Verb `json:"verb"` // emit, or answers
	Topic   string     `json:"topic,omitempty"`
	Request string     `json:"request,omitempty"`
	// ID is the verb's id: a digest of the sender's name and the id that it sent, or of its body and
	// address. The same again has no second effect.
	ID string `json:"id"`
}

// repeatWithin is for how long an equal body without an id of the sender counts as the same event.
// Webhooks are repeated within minutes.
const repeatWithin = 10 * time.Minute

// order is one callback: what goes to the run.
type order struct {
	id   string // the sender's; empty for none
	by   string
	body []byte
}

// payload returns the body as an event's payload; nil if it is empty.
func (o order) payload() any {
	if len(o.body) == 0 {
		return nil
	}
	return json.RawMessage(o.body)
}

// errUnknownSession is the answer for every session that is not there, for those of other task
// queues, for workflows that are no runs, and for names that no session can have.
var errUnknownSession = agent.Errorf(agent.CodeNotFound, "there is no such session")

// deliver delivers a callback to a session's run.
func (h *Handler) deliver(ctx context.Context, to Address, o order) (_ Receipt, err error) {
	defer func(to Address) { err = h.atEnd(ctx, to, err) }(to)
	if len(o.body) > 0 && (!json.Valid(o.body) || !utf8.Valid(o.body)) {
		return Receipt{}, agent.Errorf(agent.CodeInvalidInput, "the body is not JSON")
	}
	// First: a workflow of another program, or of another tenant, must get no update of ours.
	run, err := h.client.GetOwn(ctx, to.Session)
	if err != nil {
		return Receipt{}, known(err)
	}
	key := o.key(to) // before the address is filled in
	if o.id == "" || to.Topic == "" {
		s, err := run.Status(ctx)
		if err == nil && o.id == "" && s.QueuedEvents != nil && to.Request == "" {
			// A daemon takes events whether it waits or not, so no wait tells two equal ones apart.
			return Receipt{}, about(s, agent.Errorf(agent.CodeInvalidInput, "the run is a daemon, which needs an id for each event: send a webhook-id or an Idempotency-Key, the same again if the event is sent again").WithPath("id"))
		}
		if err == nil {
			to, err = waitsFor(s, to)
		}
		if err != nil {
			return Receipt{}, known(err)
		}
	}
	done := Receipt{V: agent.Version, Session: to.Session, Run: run.ID, Verb: agent.VerbEmit, Topic: to.Topic, Request: to.Request}
	if to.Request != "" {
		done.Verb = agent.VerbAnswers
		done.ID, err = h.answer(ctx, to, o, key)
	} else {
		done.ID, err = h.emit(ctx, run, to, o, key)
	}
	if o.id == "" && isKnown(err) {
		err = agent.Errorf(agent.CodeInvalidInput, "an equal body came to this address before, as something else. If this is no repetition, send a new webhook-id or Idempotency-Key, or add topic or request to the URL").WithPath("id")
	}
	return done, known(err)
}

// key is what a verb's id is the digest of. Ids of one sender, and bodies, are never those of
// another one or of a person's verb. What the run waits for is no part of it: a repetition may find
// the run waiting for something else, and must not become that.
func (o order) key(to Address) []string {
	switch {
	case o.id != "":
		return []string{"id", o.by, o.id}
	case to.Request != "":
		return []string{"request", o.by, to.Session, to.Request, string(o.body)}
	case to.Topic != "":
		return []string{"topic", o.by, to.Session, to.Run, to.Topic, string(o.body)}
	}
	return []string{"address", o.by, to.Session, to.Run, string(o.body)}
}

// isKnown reports whether a run refused a verb because its id is that of another one.
func isKnown(err error) bool {
	var e *agent.Error
	return errors.As(err, &e) && e.Code == agent.CodeInvalidInput && e.Path == "id"
}

// known hides how it became known that a session is not there: Temporal may have forgotten what the
// store still has. The log has it.
func known(err error) error {
	if errors.Is(err, agent.CodeNotFound) {
		return unknownSession{err}
	}
	return err
}

// waitsFor fills in what the run waits for, if it is one thing that a callback may bring. A request
// that the address names must be a client tool's: a callback is no person. A run that the address
// names must be the live one.
func waitsFor(s agent.RunStatus, to Address) (Address, error) {
	if to.Topic != "" {
		return to, nil
	}
	if to.Run != "" && to.Run != s.Run {
		return to, about(s, agent.Errorf(agent.CodeStale, "the callback is for run %s; the session's run is %s", to.Run, s.Run).WithPath("run"))
	}
	requests := s.OpenRequests()
	if to.Request != "" {
		i := slices.IndexFunc(requests, func(q agent.Request) bool { return q.ID == to.Request })
		switch {
		case i < 0:
			return to, about(s, agent.Errorf(agent.CodeStale, "request %s is not open; it may have been answered before", to.Request).WithPath("request"))
		case !forPrograms(requests[i]):
			return to, about(s, agent.Errorf(agent.CodeDenied, "request %s is decided by people; a callback answers only client tools without approvers", to.Request).WithPath("request"))
		}
		to.Run = requests[i].Run
		return to, nil
	}
	found := topics(s)
	for _, q := range requests {
		if forPrograms(q) {
			found = append(found, Address{Session: to.Session, Run: q.Run, Request: q.ID})
		}
	}
	switch {
	case len(found) == 1:
		to.Topic, to.Request = found[0].Topic, found[0].Request
		if to.Request != "" {
			to.Run = found[0].Run
		}
		return to, nil
	case len(found) > 1:
		var list []string
		for _, a := range found {
			if a.Topic != "" {
				list = append(list, "topic="+a.Topic)
			} else {
				list = append(list, "request="+a.Request)
			}
		}
		return to, about(s, agent.Errorf(agent.CodeAmbiguous, "the run waits for several things: add one of %s to the URL", strings.Join(list, ", ")))
	}
	return to, about(s, waitsForNothing(s))
}

// topics returns the topics for which a suspended run waits, each once. A daemon that takes every
// topic waits for none that could be named.
func topics(s agent.RunStatus) (found []Address) {
	if s.Suspension == nil {
		return nil
	}
	var all []agent.Condition
	if c := s.Suspension.Conditions; c != nil {
		all = c.List()
	}
	for _, w := range s.Suspension.Waits {
		all = append(all, w.Conditions.List()...)
	}
	for _, c := range all {
		if c.Event == nil || c.Event.Topic == agent.EveryTopic {
			continue
		}
		if a := (Address{Topic: c.Event.Topic}); !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

// forPrograms reports whether a request is one that a callback may answer.
func forPrograms(q agent.Request) bool {
	return q.Type == agent.RequestClientTool && len(q.Approvers) == 0
}

// waitsForNothing says why a callback without a topic does not fit.
func waitsForNothing(s agent.RunStatus) *agent.Error {
	switch {
	case s.Status.Ended():
		return agent.Errorf(agent.CodeClosed, "the run is at an end (%s)", s.Status)
	case len(s.OpenRequests()) > 0:
		return agent.Errorf(agent.CodeNeedsAnswer, "the run waits for a person's answer, which a callback can't give")
	case s.Suspension == nil:
		e := agent.Errorf(agent.CodeNotSuspended, "the run does not wait for anything now (%s). Send it again when it does, or add topic=TOPIC to the URL", s.Status)
		e.Retryable = true // the sender may just be quicker than the run
		return e
	}
	return agent.Errorf(agent.CodeStale, "the run waits for no topic that could be guessed; add topic=TOPIC to the URL if it takes one")
}

// about adds to an error which run it is about.
func about(s agent.RunStatus, e *agent.Error) *agent.Error {
	e.Session, e.Run, e.Status = s.Session, s.Run, s.Status
	if s.Suspension != nil {
		e.Suspension = s.Suspension.ID
	}
	return e
}

// answer gives a client tool's result.
func (h *Handler) answer(ctx context.Context, to Address, o order, key []string) (string, error) {
	if len(o.body) == 0 {
		return "", agent.Errorf(agent.CodeInvalidInput, "the body is empty; a client tool's result is JSON")
	}
	id := digest(key...)
	said := agent.CommandHeader{ID: id, By: o.by, Run: to.Run}
	_, err := h.client.AnswerAll(ctx, to.Session, agent.AnswerTo{Request: to.Request, Answer: &agent.AnswerCommand{CommandHeader: said, Data: o.body}})
	return id, err
}

// emit sends an event. Without an id of the sender, the event is known by its body.
//
// An equal body then has the same id, so that a repeated webhook counts once, whichever process
// takes it. But another event may have an equal body. If the run still waits, and has waited for
// longer than a webhook is repeated, then the event that has ended an earlier wait came before that,
// and this one is another.
func (h *Handler) emit(ctx context.Context, run *client.Run, to Address, o order, key []string) (string, error) {
	with := client.EmitOptions{Session: to.Session, Run: to.Run, ID: digest(key...), By: o.by}
	_, err := h.client.Emit(ctx, to.Topic, o.payload(), &with)
	if err != nil || o.id != "" {
		return with.ID, mayComeLater(err)
	}
	s, err := run.Status(ctx)
	if err != nil || !waitsYet(s, to.Topic, time.Now()) {
		return with.ID, nil // the run has the event, whatever it does now
	}
	first := with.ID
	with.ID = digest(append(key, s.Suspension.ID)...)
	_, err = h.client.Emit(ctx, to.Topic, o.payload(), &with)
	if errors.Is(err, agent.CodeStale) {
		return first, nil // the first one is what ends the wait
	}
	return with.ID, err
}

// waitsYet reports whether a run has waited for a topic for so long that no repeated event can have
// come in between. A held run keeps an event and still waits, so it is left out.
func waitsYet(s agent.RunStatus, topic string, now time.Time) bool {
	return s.Suspension != nil && len(s.Suspension.Holds) == 0 && now.Sub(s.Suspension.Since) > repeatWithin &&
		slices.Contains(topics(s), Address{Topic: topic})
}

// mayComeLater marks the refusal of an event by a live run that does not wait for it yet: the sender
// may just be quicker than the run.
func mayComeLater(err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeStale || e.Path != "topic" || e.Status != agent.StatusRunning && e.Status != agent.StatusPending {
		return err
	}
	again := *e
	again.Retryable = true
	return &again
}
