package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// chatReply assembles a reply from chunks.
type chatReply struct {
	emit     func(model.Delta)
	text     strings.Builder
	thinking strings.Builder
	inline   inlineThought
	thought  bool // inline had some
	refused  bool
	calls    []*chatCall
	at       map[int64]*chatCall // the latest call of each index
	finish   string
	usage    agent.Usage
	kept     model.Unemitted
	cites    model.Citations[struct{}]
}

// chatCall is a call that is being assembled.
type chatCall struct {
	id, tool  string
	arguments strings.Builder
}

func (r *chatReply) take(data []byte) (bool, *problem, error) {
	var chunk sdk.ChatCompletionChunk
	if p, err := decode(data, &chunk); p != nil || err != nil {
		return false, p, err
	}
	r.count(chunk.Usage)
	// Groq reports usage in a field of its own.
	r.countIn(chunk.JSON.ExtraFields["x_groq"].Raw())
	for _, c := range chunk.Choices {
		// Kimi reports usage in the choice.
		r.countIn(c.RawJSON())
		// Only one choice was requested.
		if c.Index != 0 {
			continue
		}
		d := c.Delta
		r.addText(d.Content, d.JSON.Content, d.Refusal, d.JSON.ExtraFields)
		for _, call := range d.ToolCalls {
			r.call(call)
		}
		if p := r.stop(c.FinishReason); p != nil {
			return false, p, nil
		}
	}
	return false, nil, r.kept.Check()
}

func (r *chatReply) takeWhole(data []byte) (*problem, error) {
	var whole sdk.ChatCompletion
	if p, err := decode(data, &whole); p != nil || err != nil {
		return p, err
	}
	r.count(whole.Usage)
	// The reply stays incomplete, which the caller reports.
	if len(whole.Choices) == 0 {
		return nil, nil
	}
	msg := whole.Choices[0].Message
	r.addText(msg.Content, msg.JSON.Content, msg.Refusal, msg.JSON.ExtraFields)
	r.cite(msg.JSON.Annotations.Raw())
	for _, c := range msg.ToolCalls {
		call := &chatCall{id: c.ID, tool: c.Function.Name}
		call.arguments.WriteString(c.Function.Arguments)
		r.calls = append(r.calls, call)
	}
	return r.stop(whole.Choices[0].FinishReason), nil
}

// addText adds a piece of the model's text, whose content may be a list of parts.
func (r *chatReply) addText(content string, raw respjson.Field, refusal string, extra map[string]respjson.Field) {
	thinking := reasoning(extra)
	r.cite(extra["annotations"].Raw())
	var parts []contentPart
	// Mistral sends a list, and Content is then empty.
	if json.Unmarshal([]byte(raw.Raw()), &parts) == nil && parts != nil {
		content = ""
		for _, p := range parts {
			content += p.Text
			for _, t := range p.Thinking {
				thinking += t.Text
			}
		}
	}
	// Some servers leave the thinking in the text, between marks.
	content, inline := r.inline.part(content)
	r.thought = r.thought || inline != ""
	r.write(content, refusal, thinking+inline)
}

// contentPart is a part of a content list, as Mistral's reasoning models send it.
type contentPart struct {
	Text     string
	Thinking []struct{ Text string }
}

// write adds to the texts. A refusal counts as text.
func (r *chatReply) write(text, refusal, thinking string) {
	r.text.WriteString(text + refusal)
	r.thinking.WriteString(thinking)
	r.refused = r.refused || refusal != ""
	if d := (model.Delta{Text: text + refusal, Thinking: thinking}); d != (model.Delta{}) {
		r.emit(d)
	}
}

// reasoning returns the model's thinking, under the names that servers use for it.
func reasoning(extra map[string]respjson.Field) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if json.Unmarshal([]byte(extra[name].Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// call adds to a call, or begins one.
func (r *chatReply) call(d sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	c := r.callOf(d)
	if c == nil || c.endsBefore(d) {
		r.kept.AddPart(0)
		c = &chatCall{}
		r.calls = append(r.calls, c)
		if r.at == nil {
			r.at = map[int64]*chatCall{}
		}
	}
	// The latest call has the index, in case a server gives all calls the same one.
	if d.JSON.Index.Valid() {
		r.at[d.Index] = c
	}
	// Arguments are not emitted, so their size is counted here.
	r.kept.AddBytes(len(d.Function.Arguments))
	c.id, c.tool = cmp.Or(c.id, d.ID), cmp.Or(c.tool, d.Function.Name)
	c.arguments.WriteString(d.Function.Arguments)
}

// callOf returns the call that a piece belongs to: by its index, else by its id, else the
// latest.
func (r *chatReply) callOf(d sdk.ChatCompletionChunkChoiceDeltaToolCall) *chatCall {
	if d.JSON.Index.Valid() {
		return r.at[d.Index]
	}
	for _, c := range slices.Backward(r.calls) {
		if d.ID == "" || d.ID == c.id {
			return c
		}
	}
	return nil
}

// endsBefore reports whether a piece belongs to another call although it has this one's
// index: some servers give all calls the index 0.
func (c *chatCall) endsBefore(d sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	name := d.Function.Name
	if name == "" || c.tool == "" {
		return false
	}
	// Complete arguments can't continue, so another piece starts another call.
	return name != c.tool || d.ID != "" && c.id != "" && d.ID != c.id ||
		d.Function.Arguments != "" && json.Valid([]byte(c.arguments.String()))
}

// stop records the finish reason; some are failures.
func (r *chatReply) stop(reason string) *problem {
	switch reason {
	case "":
		return nil
	// Some servers report a failure as a finish reason.
	case "error", "abort", "insufficient_system_resource":
		return &problem{code: reason, message: "the model was stopped"}
	}
	r.finish = reason
	// What looked like the start of a mark was text after all.
	content, inline := r.inline.rest()
	r.write(content, "", inline)
	return nil
}

func (r *chatReply) count(u sdk.CompletionUsage) {
	// Most chunks have no usage; zeros must not replace it.
	if u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return
	}
	var others otherUsage
	_ = json.Unmarshal([]byte(u.RawJSON()), &others) // it was JSON before
	// Servers name cached tokens differently; the largest count is the right one.
	r.usage = usage(u.PromptTokens, max(u.PromptTokensDetails.CachedTokens, others.Cached, others.Hit, others.Read),
		max(u.PromptTokensDetails.CacheWriteTokens, others.Written), u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens, u.TotalTokens)
	r.emit(model.Delta{Usage: r.usage})
}

// otherUsage has other servers' names for cached tokens: Kimi's, DeepSeek's, and those
// that LiteLLM passes on.
type otherUsage struct {
	Cached  int64 `json:"cached_tokens"`
	Hit     int64 `json:"prompt_cache_hit_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
}

// countIn takes the usage from a part of an event: Kimi reports it in a choice, Groq in
// its own object.
func (r *chatReply) countIn(raw string) {
	var in struct{ Usage sdk.CompletionUsage }
	if strings.Contains(raw, `"usage"`) && json.Unmarshal([]byte(raw), &in) == nil {
		r.count(in.Usage)
	}
}

func (r *chatReply) reply() *model.Reply {
	// Without a finish reason the stream was cut.
	if r.finish == "" {
		return nil
	}
	reason := map[string]model.Finish{
		"length": model.FinishLength, "max_tokens": model.FinishLength, "model_length": model.FinishLength,
		"content_filter": model.FinishContentFilter,
	}[r.finish]
	out := &model.Reply{Usage: r.usage, Finish: finish(reason, r.refused, len(r.calls) > 0)}
	if s := r.thinking.String(); s != "" {
		out.Parts = append(out.Parts, agent.Part{Type: agent.PartThinking, Text: s})
	}
	if s := r.text.String(); s != "" {
		said := agent.Part{Type: agent.PartText, Text: s}
		r.cites.Cite(struct{}{}, &said, r.span())
		out.Parts = append(out.Parts, said)
	}
	for _, c := range r.calls {
		out.Parts = append(out.Parts, model.CallPart(c.id, c.tool, c.arguments.String()))
	}
	return out
}
