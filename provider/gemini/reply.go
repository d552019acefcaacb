package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// read reads an answer to its end.
func (m *Model) read(ctx context.Context, res *http.Response, emit func(model.Delta)) (*model.Reply, error) {
	body := model.WatchBody(res, emit)
	r := &reply{emit: emit}
	var err error
	switch form, _, _ := mime.ParseMediaType(res.Header.Get("content-type")); form {
	case "text/html":
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, res.StatusCode, 0,
			"%s answered with a web page%s; see %s", m.name, m.endpoint.WrongEndpoint(res, ""), m.where())
	case "application/json":
		err = r.takeWhole(body)
	default:
		err = model.Events(body, r.takeData)
	}
	var p *problem
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case errors.As(err, &p):
		return nil, m.brokeOff(res.StatusCode, p)
	// A finish reason or a block is the only sign that the reply is complete.
	case r.finish == "" && r.blocked == "":
		return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), err)
	}
	// The reply was complete, even if the stream broke after it.
	return r.done(), nil
}

// reply is assembled from events.
type reply struct {
	emit    func(model.Delta)
	parts   []agent.Part
	finish  genai.FinishReason
	blocked genai.BlockedReason
	why     string // of what was filtered
	usage   usage
	kept    model.Unemitted
	grounds grounding // the latest
	cites   model.Citations[string]
}

// takeWhole reads an answer that was not streamed: an event, or a list of them.
func (r *reply) takeWhole(body *model.Body) error {
	data, err := body.Whole()
	if err != nil {
		return err
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return r.takeData(data)
	}
	for _, ev := range list {
		if err := r.takeData(ev); err != nil {
			return err
		}
	}
	return nil
}

// takeData decodes an event. A failure of the provider is returned as a problem.
func (r *reply) takeData(data []byte) error {
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if ev.Error != nil {
		return ev.Error
	}
	// An event may have no counts, and zeros would tell nothing.
	if r.count(ev.Usage); r.used() != (agent.Usage{}) {
		r.emit(model.Delta{Usage: r.used()})
	}
	r.blocked, r.why = cmp.Or(r.blocked, ev.Feedback.Reason), cmp.Or(r.why, ev.Feedback.Message)
	for _, c := range ev.Candidates {
		// Only one candidate was requested.
		if c.Index != 0 {
			continue
		}
		for _, p := range c.Content.Parts {
			r.add(p)
		}
		r.cite(c)
		if c.Finish == "" || c.Finish == genai.FinishReasonUnspecified {
			continue
		}
		// The model may do better the next time, so these are retried.
		if slices.Contains(broken, c.Finish) {
			return &problem{Message: cmp.Or(c.Message, "the model was stopped"), Status: string(c.Finish)}
		}
		r.finish, r.why = c.Finish, cmp.Or(c.Message, r.why)
	}
	return r.kept.Check()
}

// add adds a part. Its signature belongs to the thinking before it, or to empty thinking
// if there was none.
func (r *reply) add(p part) {
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	if p.Signature != "" {
		r.kept.AddPart(len(p.Signature))
		// A signature on a part belongs to the thinking before that part.
		if last := r.last(agent.PartThinking); last != nil && last.Signature == "" && !p.Thought {
			last.Signature = p.Signature
		} else if !p.Thought {
			r.parts = append(r.parts, agent.Part{Type: agent.PartThinking, Signature: p.Signature})
		}
	}
	switch {
	case p.Call != nil:
		r.kept.AddPart(len(p.Call.Args))
		// A call without arguments has null, which is no object.
		r.parts = append(r.parts, model.CallPart(p.Call.ID, p.Call.Name, strings.TrimPrefix(string(p.Call.Args), "null")))
	case text != "" && p.Thought:
		r.write(agent.PartThinking, text)
		r.emit(model.Delta{Thinking: text})
	case text != "":
		r.write(agent.PartText, text)
		r.emit(model.Delta{Text: text})
	}
	// After the text, because the signature ends this thinking.
	if p.Thought && p.Signature != "" {
		r.sign(p.Signature)
	}
}

// sign adds a signature that is on the thinking itself.
func (r *reply) sign(signature string) {
	if r.last(agent.PartThinking) == nil {
		r.parts = append(r.parts, agent.Part{Type: agent.PartThinking})
	}
	r.last(agent.PartThinking).Signature = signature
}

// write adds a text to the last part, or begins a part. Thinking with a signature is
// complete.
func (r *reply) write(kind agent.PartType, text string) {
	last := r.last(kind)
	if last == nil || last.Signature != "" {
		r.parts = append(r.parts, agent.Part{Type: kind})
		last = r.last(kind)
	}
	last.Text += text
}

// last returns the last part if it is of a kind, else nil.
func (r *reply) last(kind agent.PartType) *agent.Part {
	if n := len(r.parts); n > 0 && r.parts[n-1].Type == kind {
		return &r.parts[n-1]
	}
	return nil
}

// count takes the provider's counts. They grow from event to event, and some come only
// once.
func (r *reply) count(u usage) {
	r.usage = usage{
		Prompt: max(r.usage.Prompt, u.Prompt), ToolPrompt: max(r.usage.ToolPrompt, u.ToolPrompt), Cached: max(r.usage.Cached, u.Cached),
		Candidates: max(r.usage.Candidates, u.Candidates), Thoughts: max(r.usage.Thoughts, u.Thoughts),
	}
}

// Finish reasons: for an incomplete reply, for one that a filter stopped, and for a
// failed one that should be tried again.
var (
	short    = []genai.FinishReason{genai.FinishReasonMaxTokens, genai.FinishReasonContinuation}
	filtered = []genai.FinishReason{
		genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonLanguage, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, "MODEL_ARMOR",
		genai.FinishReasonImageSafety, genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation,
	}
	broken = []genai.FinishReason{
		genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls,
		genai.FinishReasonOther, "MALFORMED_RESPONSE",
	}
)

// used returns what the provider has reported so far.
func (r *reply) used() agent.Usage {
	u := r.usage
	return model.ClampUsage(agent.Usage{Input: u.Prompt + u.ToolPrompt, Output: u.Candidates + u.Thoughts, CacheRead: u.Cached, Reasoning: u.Thoughts})
}

func (r *reply) done() *model.Reply {
	r.cited()
	out := &model.Reply{Parts: r.parts, Finish: model.FinishStop, Usage: r.used()}
	calls := slices.ContainsFunc(r.parts, func(p agent.Part) bool { return p.Type == agent.PartToolCall })
	switch {
	case r.blocked != "" || slices.Contains(filtered, r.finish):
		out.Finish = model.FinishContentFilter
	case slices.Contains(short, r.finish):
		out.Finish = model.FinishLength
	case calls:
		out.Finish = model.FinishToolCalls
	}
	// Without the reason, people would see an empty reply.
	if reason := cmp.Or(string(r.blocked), string(r.finish)); out.Finish == model.FinishContentFilter && len(out.Parts) == 0 {
		out.Parts = []agent.Part{{Type: agent.PartText, Text: strings.TrimSuffix(reason+": "+r.why, ": ")}}
	}
	return out
}

// Error makes a problem an error, so that it can be returned while a stream is read.
func (p *problem) Error() string { return p.Message }
