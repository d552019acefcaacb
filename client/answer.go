package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// AnswerOptions are optional; nil means all defaults.
type AnswerOptions struct {
	// Choice is the number of one of the request's choices, from 0, instead of a text;
	// nil means none.
	Choice *int
	// Data is a client tool's result, as JSON, instead of a text.
	Data json.RawMessage
	// By is who answers: a claim, recorded as one.
	By string
	// Token proves who decides, where the request names approvers or a policy binds the verb.
	Token string
}

// ApproveOptions are optional; nil means all defaults.
type ApproveOptions struct {
	// Arguments replace the model's: anything that is an object
	// in JSON; nil means those that were asked for.
	Arguments any
	// Always approves every further call of the tool in this run.
	Always bool
	// Note is recorded with the approval.
	Note string
	// By is who approves: a claim, recorded as one.
	By string
	// Token proves who decides, where the request names approvers or a policy binds the verb.
	Token string
}

// RejectOptions are optional; nil means all defaults.
type RejectOptions struct {
	// By is who rejects: a claim, recorded as one.
	By string
	// Token proves who decides, where the request names approvers or a policy binds the verb.
	Token string
}

// Answer answers a question, a limit that asks, or a client tool's call. The text is
// empty if the options have a choice or data. The answer goes to the run that asked. Errors are [agent.CodeInvalidInput] and [agent.CodeTooLarge],
// [agent.CodeStale] where the request is not open any more or another run is live,
// [agent.CodeClosed] where the run has ended, [agent.CodeDenied], [agent.CodeBadSignature],
// [agent.CodeExpired] and [agent.CodeUsed] where approvers are named, and
// [agent.CodeNoWorker] or [agent.CodeTimeout] where nobody answers.
func (c *Client) Answer(ctx context.Context, req agent.Request, text string, o *AnswerOptions) (agent.Ack, error) {
	o = cmp.Or(o, &AnswerOptions{})
	return c.update(ctx, req.Session, agent.AnswerCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Text: text, Choice: o.Choice, Data: o.Data})
}

// Approve lets the call be made that a request is about. The digest that the
// request shows goes with it, so that no other call is meant. Errors are those
// of [Client.Answer].
func (c *Client) Approve(ctx context.Context, req agent.Request, o *ApproveOptions) (agent.Ack, error) {
	if o == nil {
		o = &ApproveOptions{}
	}
	order := agent.ApproveCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Always: o.Always, Digest: req.Digest, Note: o.Note}
	if o.Arguments != nil {
		raw, err := json.Marshal(o.Arguments)
		if err != nil {
			return agent.Ack{}, agent.Errorf(agent.CodeInvalidInput, "approve refused: arguments are not JSON: %w", err).WithPath("arguments")
		}
		order.Arguments = raw
	}
	return c.update(ctx, req.Session, order)
}

// Reject refuses the call that a request is about; the model sees the reason.
// Errors are those of [Client.Answer].
func (c *Client) Reject(ctx context.Context, req agent.Request, reason string, o *RejectOptions) (agent.Ack, error) {
	if o == nil {
		o = &RejectOptions{}
	}
	return c.update(ctx, req.Session, agent.RejectCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Reason: reason})
}

// orderTo makes an answer one for the run that asked.
func orderTo(req agent.Request, by, token string) agent.CommandHeader {
	return agent.CommandHeader{Run: req.Run, By: by, Token: token}
}

// AnswerAll answers several requests of a session together: all or none. Who
// answers, which run is meant and the id are those of the first answer that says
// so. Errors are those of [Client.Answer].
func (c *Client) AnswerAll(ctx context.Context, session string, answers ...agent.AnswerTo) (agent.Ack, error) {
	order := agent.AnswersCommand{Answers: make([]agent.AnswerTo, len(answers))}
	for i, a := range answers {
		one, said := about(a)
		order.Answers[i] = one
		order.ID, order.By, order.Run = cmp.Or(order.ID, said.ID), cmp.Or(order.By, said.By), cmp.Or(order.Run, said.Run)
	}
	return c.update(ctx, session, order)
}

// about repeats the request's id within the answer, where an empty one would be
// refused as a blank, and tells what is said there for all.
func about(a agent.AnswerTo) (one agent.AnswerTo, said agent.CommandHeader) {
	if a.Answer != nil {
		o := *a.Answer
		o.Request, a.Answer, said = a.Request, &o, o.CommandHeader
	}
	if a.Approve != nil {
		o := *a.Approve
		o.Request, a.Approve, said = a.Request, &o, o.CommandHeader
	}
	if a.Reject != nil {
		o := *a.Reject
		o.Request, a.Reject, said = a.Request, &o, o.CommandHeader
	}
	return a, said
}

// Request asks a session's run for an open request, whole, with the arguments of
// its call. An empty id means the only one. Errors are [agent.CodeNotFound] where it
// is not open, [agent.CodeInvalidInput] where no id is given and several are, and
// those of [Run.Status].
func (c *Client) Request(ctx context.Context, session, id string) (agent.Request, error) {
	s, err := signals.Status.Ask(ctx, c.temporal, session, "", signals.None{})
	if err != nil {
		return agent.Request{}, fmt.Errorf("asking session %s for its requests: %w", session, err)
	}
	var open []agent.Request
	if s.Suspension != nil {
		open = s.Suspension.Requests
	}
	for _, q := range open {
		if q.ID == id || id == "" && len(open) == 1 {
			return q, nil
		}
	}
	e := missing(s, id, open)
	e.Session, e.Run, e.Status = s.Session, s.Run, s.Status
	return agent.Request{}, e
}

func missing(s agent.RunStatus, id string, open []agent.Request) *agent.Error {
	ids := make([]string, len(open))
	for i, q := range open {
		ids[i] = q.ID
	}
	switch list := strings.Join(ids, ", "); {
	case len(open) == 0 && id == "":
		return agent.Errorf(agent.CodeNotFound, "session %s has no open request; it is %s", s.Session, s.Status)
	case len(open) == 0:
		return agent.Errorf(agent.CodeNotFound, "request %s of session %s is not open; nothing is, it is %s", id, s.Session, s.Status)
	case id == "":
		return agent.Errorf(agent.CodeInvalidInput, "session %s has several open requests: name one of %s", s.Session, list).WithPath("request")
	default:
		return agent.Errorf(agent.CodeNotFound, "request %s of session %s is not open; open is %s", id, s.Session, list)
	}
}
