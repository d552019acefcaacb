package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// read reads an answer to its end.
func (m *Model) read(ctx context.Context, res *http.Response, r *reply) (*model.Reply, error) {
	body := model.WatchBody(res, r.emit)
	// Some gateways answer with a page, or without a stream.
	switch form, _, _ := mime.ParseMediaType(res.Header.Get("content-type")); form {
	case "text/html":
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, res.StatusCode, 0,
			"%s answered with a web page%s; see %s", m.name, m.endpoint.WrongEndpoint(res, ""), m.where())
	case "application/json":
		return m.readWhole(ctx, res, body, r)
	}
	err := model.Events(body, func(data []byte) error { return m.takeEvent(res.StatusCode, r, data) })
	var fault *agent.Error
	switch {
	// Even if the context has ended since: the reply is complete and paid.
	case errors.Is(err, errStopped):
		return r.done(), nil
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case errors.As(err, &fault):
		return nil, fault
	}
	return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), err)
}

// errStopped ends the reading of a stream after its last event.
var errStopped = errors.New("the message is whole")

func (m *Model) takeEvent(status int, r *reply, data []byte) error {
	var ev sdk.MessageStreamEventUnion
	switch err := json.Unmarshal(data, &ev); {
	case err != nil:
		return m.endpoint.Faultf(agent.FaultTransient, status, 0, "%s sent an event that is not JSON: %v", m.name, err)
	case ev.Type == "error":
		return m.brokeOff(status, data)
	case ev.Type == "message_stop":
		return errStopped
	}
	r.take(ev)
	// Signatures and arguments are not emitted, so their size is checked here.
	return r.kept.Check()
}

// readWhole reads an answer that was not streamed.
func (m *Model) readWhole(ctx context.Context, res *http.Response, body *model.Body, r *reply) (*model.Reply, error) {
	data, err := body.Whole()
	var msg sdk.Message
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	// A body that is cut is not JSON any more.
	case err != nil || json.Unmarshal(data, &msg) != nil:
		return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), err)
	case string(msg.Type) != "message":
		return nil, m.brokeOff(res.StatusCode, data)
	}
	for i, b := range msg.Content {
		// A block's number is its place.
		r.open(int64(i), block{
			kind: b.Type, signature: []byte(b.Signature), data: b.Data, id: b.ID, tool: b.Name, whole: string(b.Input), raw: b.RawJSON(),
		}, b.Text+b.Thinking, b.JSON.Citations.Raw())
	}
	r.searches = msg.Usage.ServerToolUse.WebSearchRequests
	r.count(msg.Usage.InputTokens, msg.Usage.CacheReadInputTokens, msg.Usage.CacheCreationInputTokens, msg.Usage.OutputTokens, msg.Usage.OutputTokensDetails.ThinkingTokens)
	r.stop, r.why = msg.StopReason, msg.StopDetails.Explanation
	return r.done(), nil
}

// reply is assembled from events.
type reply struct {
	emit   func(model.Delta)
	blocks []*block
	at     map[int64]*block // the latest block of each index
	stop   sdk.StopReason
	why    string // of a refusal
	kept   model.Unemitted

	documents []*agent.File // of the request, which may be cited
	cites     model.Citations[*block]
	sources   int // bytes of the citations that are kept as they came

	// The provider's own counts: input is what was neither read from the cache nor written to it.
	input, cacheRead, cacheWrite, output, thinking, searches int64
}

func newReply(emit func(model.Delta), documents []*agent.File) *reply {
	return &reply{emit: emit, at: map[int64]*block{}, documents: documents}
}

// block is one content block that is being assembled.
type block struct {
	kind      string
	text      strings.Builder // of text, of thinking, or of a call's arguments
	signature []byte
	data      string // of redacted thinking
	id, tool  string
	whole     string   // arguments that came at once
	raw       string   // of a step of a server tool
	citations []string // that the provider demands back
}

func (r *reply) take(ev sdk.MessageStreamEventUnion) {
	switch ev.Type {
	case "message_start":
		u := ev.Message.Usage
		r.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
		r.emit(model.Delta{Usage: r.usage()})
	case "content_block_start":
		b := ev.ContentBlock
		r.open(ev.Index, block{kind: b.Type, signature: []byte(b.Signature), data: b.Data, id: b.ID, tool: b.Name, whole: b.JSON.Input.Raw(), raw: b.RawJSON()}, b.Text+b.Thinking, b.JSON.Citations.Raw())
	case "content_block_delta":
		r.add(ev.Index, ev.Delta)
	case "message_delta":
		u := ev.Usage
		// Counts grow from event to event, so the largest one is the latest.
		r.searches = max(r.searches, u.ServerToolUse.WebSearchRequests)
		r.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
		r.emit(model.Delta{Usage: r.usage()})
		if ev.Delta.StopReason != "" {
			r.stop, r.why = ev.Delta.StopReason, ev.Delta.StopDetails.Explanation
		}
	}
}

// open begins a block. If a server numbers all its blocks 0, pieces go to the latest one.
func (r *reply) open(index int64, b block, text, citations string) {
	if b.kind == "text" {
		b.raw = "" // only that of a step is used
	}
	r.kept.AddPart(len(b.raw) + len(b.whole) + len(b.signature) + len(b.data))
	r.blocks = append(r.blocks, &b)
	r.at[index] = &b
	r.write(&b, text)
	for _, raw := range list(citations) {
		r.cite(&b, raw)
	}
}

func (r *reply) add(index int64, d sdk.MessageStreamEventUnionDelta) {
	// Some servers send pieces without a start; the piece's type says what they belong to.
	b := r.at[index]
	if b == nil { // a piece without a begun block
		r.kept.AddPart(0)
		b = &block{kind: strings.TrimSuffix(strings.Replace(d.Type, "citations", "text", 1), "_delta")}
		r.blocks, r.at[index] = append(r.blocks, b), b
	}
	// What is not emitted must be bounded, too.
	r.kept.AddBytes(len(d.Signature) + len(d.PartialJSON))
	b.signature = append(b.signature, d.Signature...)
	// Citations come one by one, each as an object.
	if raw := d.JSON.Citation.Raw(); d.Type == "citations_delta" && strings.HasPrefix(raw, "{") {
		r.cite(b, raw)
	}
	b.text.WriteString(d.PartialJSON)
	r.write(b, d.Text+d.Thinking)
}

// write adds to a text that is shown to people.
func (r *reply) write(b *block, text string) {
	if text == "" {
		return
	}
	b.text.WriteString(text)
	switch b.kind {
	case "text":
		r.emit(model.Delta{Text: text})
	case "thinking":
		r.emit(model.Delta{Thinking: text})
	}
}

// count takes the provider's counts. They grow from event to event, and some come only
// once.
func (r *reply) count(input, cacheRead, cacheWrite, output, thinking int64) {
	// Later events may repeat a count, or leave it out.
	r.input, r.cacheRead, r.cacheWrite = max(r.input, input), max(r.cacheRead, cacheRead), max(r.cacheWrite, cacheWrite)
	r.output, r.thinking = max(r.output, output), max(r.thinking, thinking)
}

// usage returns what the provider has reported so far.
func (r *reply) usage() agent.Usage {
	return model.ClampUsage(agent.Usage{
		// The runtime's input includes cached tokens; the provider's does not.
		Input: r.input + r.cacheRead + r.cacheWrite, Output: r.output,
		CacheRead: r.cacheRead, CacheWrite: r.cacheWrite, Reasoning: r.thinking, Searches: r.searches,
	})
}

func (r *reply) done() *model.Reply {
	out := &model.Reply{Usage: r.usage()}
	calls := false
	for _, b := range r.blocks {
		if part, ok := b.part(); ok {
			r.cites.Cite(b, &part, nil)
			out.Parts = append(out.Parts, part)
			calls = calls || part.Type == agent.PartToolCall
		}
	}
	out.Finish = finish(r.stop, calls)
	// Without it, people would see an empty reply.
	if out.Finish == model.FinishContentFilter && r.why != "" && len(out.Parts) == 0 {
		out.Parts = []agent.Part{{Type: agent.PartText, Text: r.why}}
	}
	return out
}

// part returns the block in the runtime's form; false if the runtime does not use it.
func (b *block) part() (agent.Part, bool) {
	text := b.text.String()
	switch b.kind {
	case "text":
		return agent.Part{Type: agent.PartText, Text: text, Raw: b.sources()}, text != ""
	case "thinking":
		return agent.Part{Type: agent.PartThinking, Text: text, Signature: string(b.signature)}, text != "" || len(b.signature) > 0
	case "redacted_thinking":
		return agent.Part{Type: agent.PartThinking, Redacted: b.data}, b.data != ""
	case "tool_use":
		// Without pieces, the arguments came with the beginning of the block.
		if text == "" {
			text = b.whole
		}
		return model.CallPart(b.id, b.tool, text), true
	}
	if isStep(b.kind) {
		return b.step(text), b.raw != ""
	}
	return agent.Part{}, false
}

// finish returns why the model stopped. A reply that filled the window is incomplete. A
// reply that the provider paused while its own tools work continues if it is sent back.
// One that also calls our tools continues with their results.
func finish(stop sdk.StopReason, calls bool) model.Finish {
	switch stop {
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return model.FinishLength
	case sdk.StopReasonRefusal:
		return model.FinishContentFilter
	}
	if calls {
		return model.FinishToolCalls
	}
	if stop == sdk.StopReasonPauseTurn {
		return model.FinishPauseTurn
	}
	return model.FinishStop
}

// list returns the elements of a JSON list unchanged.
func list(raw string) []string {
	var items []json.RawMessage
	_ = json.Unmarshal([]byte(raw), &items) // null, or not there
	var out []string
	for _, item := range items {
		out = append(out, string(item))
	}
	return out
}
