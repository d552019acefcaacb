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
	// Files are stored with the session that asks. The model gets them in a message after the
	// answer, which may then be empty; see [Client.PutFiles]. Tools and flows take none.
	Files []FileInput
	// By says who answers. It is logged, and not authenticated.
	By string
	// Token proves who decides. It is required if the request names approvers, or if a
	// policy binds the verb.
	Token string
}

// ApproveOptions are optional; nil means all defaults.
type ApproveOptions struct {
	// Arguments replace the model's: any value that encodes to a JSON object; nil keeps
	// the model's.
	Arguments any
	// Always approves every further call of the tool in this run, and AlwaysInSession also in the
	// session's later runs that the same principal starts with the same agent.
	Always          bool
	AlwaysInSession bool
	// Note is recorded with the approval.
	Note string
	// By says who approves. It is logged, and not authenticated.
	By string
	// Token proves who decides. It is required if the request names approvers, or if a
	// policy binds the verb.
	Token string
}

// RejectOptions are optional; nil means all defaults.
type RejectOptions struct {
	// By says who rejects. It is logged, and not authenticated.
	By string
	// Token proves who decides. It is required if the request names approvers, or if a
	// policy binds the verb.
	Token string
}

// Answer answers a question, a limit that asks, or a client tool's call. The text is
// empty if the options have a choice or data, and may be empty if they have files. The answer goes only to the run that asked.
//
// Errors are [agent.CodeInvalidInput] and [agent.CodeTooLarge] for the answer itself,
// [agent.CodeStale] if the request is no longer open or another run is live, and
// [agent.CodeClosed] if the run has ended. The run records the first answer after a deadline, though it
// is stale. If approvers are named, they are also
// [agent.CodeDenied], [agent.CodeBadSignature], [agent.CodeExpired] and [agent.CodeUsed].
// [agent.CodeNoWorker] or [agent.CodeTimeout] means that no worker answers.
func (c *Client) Answer(ctx context.Context, req agent.Request, text string, o *AnswerOptions) (agent.Ack, error) {
	o = cmp.Or(o, &AnswerOptions{})
	files, err := c.PutFiles(ctx, req.Session, o.Files...)
	if err != nil {
		return agent.Ack{}, fmt.Errorf("answer refused: %w", err)
	}
	return c.update(ctx, req.Session, agent.AnswerCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Text: text, Choice: o.Choice, Data: o.Data, Parts: files})
}

// Approve approves the call that a request is about. It sends the digest that the request
// shows, so that only this call is approved. Errors are those of [Client.Answer].
func (c *Client) Approve(ctx context.Context, req agent.Request, o *ApproveOptions) (agent.Ack, error) {
	if o == nil {
		o = &ApproveOptions{}
	}
	order := agent.ApproveCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Always: o.Always, AlwaysInSession: o.AlwaysInSession, Digest: req.Digest, Note: o.Note}
	if o.Arguments != nil {
		raw, err := json.Marshal(o.Arguments)
		if err != nil {
			return agent.Ack{}, agent.Errorf(agent.CodeInvalidInput, "approve refused: arguments are not JSON: %w", err).WithPath("arguments")
		}
		order.Arguments = raw
	}
	return c.update(ctx, req.Session, order)
}

// Reject rejects the call that a request is about. The model gets the reason. Errors are
// those of [Client.Answer].
func (c *Client) Reject(ctx context.Context, req agent.Request, reason string, o *RejectOptions) (agent.Ack, error) {
	if o == nil {
		o = &RejectOptions{}
	}
	return c.update(ctx, req.Session, agent.RejectCommand{CommandHeader: orderTo(req, o.By, o.Token), Request: req.ID, Reason: reason})
}

// orderTo returns the header of an answer that only the run that asked accepts.
func orderTo(req agent.Request, by, token string) agent.CommandHeader {
	return agent.CommandHeader{Run: req.Run, By: by, Token: token}
}

// AnswerAll answers several requests of a session together: all or none. By, Run and ID
// of the whole are those of the first answer that sets them. Errors are those of
// [Client.Answer].
func (c *Client) AnswerAll(ctx context.Context, session string, answers ...agent.AnswerTo) (agent.Ack, error) {
	order := agent.AnswersCommand{Answers: make([]agent.AnswerTo, len(answers))}
	for i, a := range answers {
		one, said := about(a)
		order.Answers[i] = one
		order.ID, order.By, order.Run = cmp.Or(order.ID, said.ID), cmp.Or(order.By, said.By), cmp.Or(order.Run, said.Run)
	}
	return c.update(ctx, session, order)
}

// about copies the request's id into the answer, where an empty id would be refused. It
// also returns the answer's header.
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

// Request returns an open request of a session's run, with the arguments of its call. An
// empty id means the only open request. Errors are [agent.CodeNotFound] if the request is
// not open, [agent.CodeInvalidInput] if id is empty and several are open, and those of
// [Run.Status].
func (c *Client) Request(ctx context.Context, session, id string) (agent.Request, error) {
	s, err := signals.Status.Ask(ctx, c.temporal, session, "", signals.None{})
	if err != nil {
		return agent.Request{}, fmt.Errorf("asking session %s for its requests: %w", session, err)
	}
	open := s.OpenRequests()
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
