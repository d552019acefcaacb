package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// read reads an answer to its end, which is the event with the usage.
func (c call) read(ctx context.Context, res *http.Response, r *reply) (*model.Reply, error) {
	body := model.WatchBody(res, r.emit)
	if form, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); form == "text/html" {
		return nil, c.Faultf(agent.FaultBadRequest, res.StatusCode, 0,
			"%s answered with a web page%s", c.name, c.WrongEndpoint(res, ""))
	}
	frames := eventstream.NewDecoder()
	for {
		frame, err := frames.Decode(body, nil)
		switch {
		case ctx.Err() != nil:
			return nil, c.Cancelled(ctx.Err())
		// The stream ends with an event, so its bare end is a cut.
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, c.Truncated(res.StatusCode, body.Bytes(), nil)
		case err != nil:
			return nil, c.Truncated(res.StatusCode, body.Bytes(), err)
		}
		whole, err := c.take(res.StatusCode, r, frame)
		if err != nil {
			return nil, err
		}
		// What is not emitted must be bounded, too.
		if err := r.kept.Check(); err != nil {
			return nil, c.Truncated(res.StatusCode, body.Bytes(), err)
		}
		if whole {
			return c.finished(res.StatusCode, r)
		}
	}
}

// finished returns the complete reply. If the model wrote a call that Bedrock could not
// parse, it is a failure that may not happen again.
func (c call) finished(status int, r *reply) (*model.Reply, error) {
	out := r.done()
	if strings.HasPrefix(r.stop, "malformed_") && out.Finish != model.FinishToolCalls {
		return nil, c.Faultf(agent.FaultTransient, status, 0, "%s could not read what the model wrote (%s)", c.name, r.stop)
	}
	return out, nil
}

// take takes a frame of the stream, and reports whether the reply is complete.
func (c call) take(status int, r *reply, frame eventstream.Message) (bool, error) {
	// Exceptions and errors come as frames of another type.
	if kind := header(frame, eventstreamapi.MessageTypeHeader); kind != eventstreamapi.EventMessageType {
		return false, c.brokeOff(status, frame)
	}
	var ev event
	if err := json.Unmarshal(frame.Payload, &ev); err != nil {
		return false, c.Faultf(agent.FaultTransient, status, 0, "%s sent an event that is not JSON: %v", c.name, err)
	}
	return r.take(header(frame, eventstreamapi.EventTypeHeader), ev), nil
}

// header returns a text from a frame's headers; empty if there is none.
func header(frame eventstream.Message, name string) string {
	text, ok := frame.Headers.Get(name).(eventstream.StringValue)
	if !ok {
		return ""
	}
	return string(text)
}

// reply is assembled from events.
type reply struct {
	emit   func(model.Delta)
	blocks []*piece
	at     map[int]*piece
	stop   string
	usage  agent.Usage
	kept   model.Unemitted

	documents []document // of the request, which may be cited
	cites     model.Citations[*piece]
}

func newReply(emit func(model.Delta), documents []document) *reply {
	return &reply{emit: emit, at: map[int]*piece{}, documents: documents}
}

// piece is one content block that is being assembled.
type piece struct {
	kind      agent.PartType
	text      strings.Builder // of text, of thinking, or of a call's arguments
	signature strings.Builder
	redacted  strings.Builder
	id, tool  string
}

func (r *reply) take(kind string, ev event) (whole bool) {
	switch kind {
	case "contentBlockStart":
		if use := ev.Start.Use; use != nil {
			p := r.piece(ev.Index, agent.PartToolCall)
			// The id and the name are not emitted.
			r.kept.AddBytes(len(use.ID) + len(use.Name))
			p.id, p.tool = use.ID, use.Name
		}
	case "contentBlockDelta":
		r.add(ev)
	case "messageStop":
		r.stop = ev.Stop
	case "metadata":
		u := ev.Usage
		// The runtime's input includes cached tokens; the provider's does not.
		r.usage = model.ClampUsage(agent.Usage{Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
		r.emit(model.Delta{Usage: r.usage})
		// Usage is the last event.
		return true
	}
	return false
}

func (r *reply) add(ev event) {
	switch d := ev.Delta; {
	case d.Use != nil:
		r.kept.AddBytes(len(d.Use.Input))
		r.piece(ev.Index, agent.PartToolCall).text.WriteString(d.Use.Input)
	case d.Reasoning != nil:
		p := r.piece(ev.Index, agent.PartThinking)
		r.kept.AddBytes(len(d.Reasoning.Signature) + len(d.Reasoning.Redacted))
		p.signature.WriteString(d.Reasoning.Signature)
		p.redacted.WriteString(d.Reasoning.Redacted)
		p.text.WriteString(d.Reasoning.Text)
		if d.Reasoning.Text != "" {
			r.emit(model.Delta{Thinking: d.Reasoning.Text})
		}
	case len(d.Citation) > 0:
		r.cite(r.piece(ev.Index, agent.PartText), d.Citation)
	case d.Text != "":
		r.piece(ev.Index, agent.PartText).text.WriteString(d.Text)
		r.emit(model.Delta{Text: d.Text})
	}
}

// piece returns the block with a number; a new one if there is none of that kind.
func (r *reply) piece(index int, kind agent.PartType) *piece {
	p := r.at[index]
	// Some models send thinking and text under one number.
	if p == nil || p.kind != kind {
		r.kept.AddPart(0)
		p = &piece{kind: kind}
		r.blocks, r.at[index] = append(r.blocks, p), p
	}
	return p
}

func (r *reply) done() *model.Reply {
	out := &model.Reply{Usage: r.usage}
	calls := false
	for _, p := range r.blocks {
		out.Parts = append(out.Parts, r.partsOf(p)...)
		calls = calls || p.kind == agent.PartToolCall
	}
	out.Finish = finish(r.stop, calls)
	return out
}

// partsOf returns a block in the runtime's form, with what it cites.
func (r *reply) partsOf(p *piece) []agent.Part {
	parts := p.parts()
	if p.kind == agent.PartText {
		if parts[0].Text == "" { // it had nothing but citations
			return nil
		}
		r.cites.Cite(p, &parts[0], nil)
	}
	return parts
}

// parts returns the block in the runtime's form. Redacted thinking is a separate part.
func (p *piece) parts() []agent.Part {
	text := p.text.String()
	switch {
	case p.kind == agent.PartToolCall:
		return []agent.Part{model.CallPart(p.id, p.tool, text)}
	case p.kind == agent.PartText:
		return []agent.Part{{Type: agent.PartText, Text: text}}
	}
	var parts []agent.Part
	if signature := p.signature.String(); text != "" || signature != "" {
		parts = append(parts, agent.Part{Type: agent.PartThinking, Text: text, Signature: signature})
	}
	// Redacted thinking has no text, so it can't be part of the other.
	if redacted := p.redacted.String(); redacted != "" {
		parts = append(parts, agent.Part{Type: agent.PartThinking, Redacted: redacted})
	}
	return parts
}

// finish returns why the model stopped. A reply that filled the window is incomplete.
func finish(stop string, calls bool) model.Finish {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return model.FinishLength
	case "content_filtered", "guardrail_intervened", "refusal":
		return model.FinishContentFilter
	}
	if calls {
		return model.FinishToolCalls
	}
	return model.FinishStop
}
