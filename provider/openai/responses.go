package openai

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
	"github.com/fermata-agents/fermata/model"
)

// responseParams returns a request for Responses. The provider stores nothing, because
// the runtime keeps the conversation.
func (m *Model) responseParams(req *model.Request, files *filebody.Files) (responses.ResponseNewParams, error) {
	// Not stored by the provider: the runtime keeps the conversation itself.
	p := responses.ResponseNewParams{Model: req.Model, Store: param.NewOpt(false), ServiceTier: responses.ResponseNewParamsServiceTier(m.with.ServiceTier)}
	p.Input.OfInputItemList = m.responseItems(req, files)
	if len(p.Input.OfInputItemList) == 0 {
		return p, errors.New("there is no message to answer")
	}
	for _, t := range req.Tools {
		f, err := functionOf(t)
		if err != nil {
			return p, err
		}
		tool := param.Override[responses.FunctionToolParam](responseFunction{Type: "function", function: f})
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &tool})
	}
	m.serve(&p)
	switch {
	case req.NoCalls && len(p.Tools) > 0:
		p.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	case m.with.ToolChoice.Requires(req):
		p.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsRequired)
	}
	format, held, instructions := m.hold(req)
	if !blank(instructions) {
		p.Instructions = param.NewOpt(instructions)
	}
	if req.MaxOutputTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(int64(req.MaxOutputTokens))
	}
	p.Reasoning.Effort = m.effort(req)
	// Other models and servers refuse the field.
	if row := table.Models[family(req.Model)]; m.own && len(row.Reasoning) > 0 && p.Reasoning.Effort != shared.ReasoningEffortNone {
		p.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
	if t := temperature(req, p.Reasoning.Effort); t != nil {
		p.Temperature = param.NewOpt(*t)
	}
	// Other servers may refuse the field.
	if key := req.Call.CacheKey(); m.own && key != "" {
		p.PromptCacheKey = param.NewOpt(key)
	}
	if held {
		format.Type = "json_schema"
		schema := param.Override[responses.ResponseFormatTextJSONSchemaConfigParam](format)
		p.Text.Format.OfJSONSchema = &schema
	}
	return p, nil
}

// responseFunction is a tool for Responses. It is not strict, because the provider would
// then require every property.
type responseFunction struct {
	Type string `json:"type"`
	function
	Strict bool `json:"strict"`
}

// reasoningItem is thinking that is sent back. If the server gave no id, as some
// imitations do, it has none: the server would look up an id of ours.
type reasoningItem struct {
	Type      string     `json:"type"`
	ID        string     `json:"id,omitempty"`
	Summary   []struct{} `json:"summary"`
	Encrypted string     `json:"encrypted_content"`
}

// responseItems returns a conversation for Responses.
func (m *Model) responseItems(req *model.Request, files *filebody.Files) []responses.ResponseInputItemUnionParam {
	var out []responses.ResponseInputItemUnionParam
	say := func(text string, role responses.EasyInputMessageRole) {
		if !blank(text) {
			out = append(out, responses.ResponseInputItemParamOfMessage(text, role))
		}
	}
	id := m.callIDs(req)
	for i, msg := range req.Messages {
		if msg.Role == agent.RoleAssistant {
			named := func(call string) string { return id(i, call) }
			out = append(out, m.responseAssistant(msg, named, msg.ModelName() == m.name+"/"+req.Model)...)
			continue
		}
		shown := agent.Message{Parts: slices.Clip(msg.Parts)}
		for _, r := range results(msg) {
			if known := id(i, r.Call); known != "" {
				item := resultItem(r, files)
				item.OfFunctionCallOutput.CallID = param.NewOpt(known)
				out = append(out, item)
			} else {
				say(orphan(r), responses.EasyInputMessageRoleUser)
				shown.Parts = append(shown.Parts, r.Files...)
			}
		}
		if content := inputContent(shown, files); len(content) > 0 {
			out = append(out, responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
		} else {
			say(userText(msg), responses.EasyInputMessageRoleUser)
		}
	}
	return out
}

// responseAssistant returns a message of the model, with its reasoning if same says that
// the same model is called now: no other can read it. Reasoning that nothing follows is
// left out, since it would be refused.
func (m *Model) responseAssistant(msg agent.Message, id func(call string) string, same bool) []responses.ResponseInputItemUnionParam {
	var out, pending []responses.ResponseInputItemUnionParam
	add := func(item responses.ResponseInputItemUnionParam) {
		out, pending = append(append(out, pending...), item), nil
	}
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartThinking && same && p.Signature != "":
			item := param.Override[responses.ResponseReasoningItemParam](reasoningItem{
				Type: "reasoning", ID: p.ProviderID, Summary: []struct{}{}, Encrypted: p.Signature,
			})
			pending = append(pending, responses.ResponseInputItemUnionParam{OfReasoning: &item})
		case p.Type == agent.PartText && !blank(p.Text):
			said := responses.ResponseInputItemParamOfMessage(p.Text, responses.EasyInputMessageRoleAssistant)
			// The phase means something only to the server that gave it.
			if model.ProviderOf(msg.ModelName()) == m.name {
				said.OfMessage.Phase = responses.EasyInputMessagePhase(p.Phase)
			}
			add(said)
		case p.Type == agent.PartToolCall && p.Call != nil:
			add(responses.ResponseInputItemParamOfFunctionCall(m.arguments(p.Call), id(p.Call.ID), p.Call.Tool))
		case p.Type == agent.PartServerTool && same && len(m.with.ServerTools) > 0 && len(p.Raw) > 0:
			add(stepItem(p))
		case p.Type == agent.PartServerTool:
			pending = nil // thinking before a step is sent back with it or not at all
		}
	}
	return out
}

// responseReply assembles a reply from items, each of which is complete at its end. What
// was emitted of an item before counts, even if the item differs or never comes, as with
// servers that imitate the API.
type responseReply struct {
	emit     func(model.Delta)
	items    []responseItem
	received map[spot]*words // of items that have not come
	all      words
	refused  bool
	searches int64
	end      *responses.Response // the last event's
	kept     model.Unemitted
}

// spot is where a piece belongs: servers that imitate the API send thinking and text
// under one number.
type spot struct {
	index   int64
	thought bool
}

// words are the emitted texts.
type words struct{ text, thinking strings.Builder }

func (w *words) add(d model.Delta) {
	w.text.WriteString(d.Text)
	w.thinking.WriteString(d.Thinking)
}

type responseItem struct {
	at    spot
	parts []agent.Part
}

func (r *responseReply) take(data []byte) (bool, *problem, error) {
	var ev responses.ResponseStreamEventUnion
	if p, err := decode(data, &ev); p != nil || err != nil {
		return false, p, err
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.refused = r.refused || ev.Type == "response.refusal.delta"
		r.receive(ev.OutputIndex, model.Delta{Text: ev.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.receive(ev.OutputIndex, model.Delta{Thinking: ev.Delta})
	case "response.output_item.done":
		r.item(ev.OutputIndex, ev.Item)
	case "response.completed", "response.incomplete":
		// Some servers send their items only in the last event.
		if len(r.items) == 0 {
			r.itemsOf(ev.Response)
		}
		r.end = &ev.Response
		return true, nil, nil
	case "response.failed", "response.cancelled":
		return true, responseProblem(ev.Response), nil
	}
	return false, nil, r.kept.Check()
}

func (r *responseReply) takeWhole(data []byte) (*problem, error) {
	var whole responses.Response
	if p, err := decode(data, &whole); p != nil || err != nil {
		return p, err
	}
	switch whole.Status {
	case responses.ResponseStatusCompleted, responses.ResponseStatusIncomplete:
	// Any other status means that the reply is not complete.
	default:
		return responseProblem(whole), nil
	}
	r.itemsOf(whole)
	r.end = &whole
	return nil, nil
}

func responseProblem(r responses.Response) *problem {
	p := &problem{code: string(r.Error.Code), kind: r.Error.Type, message: r.Error.Message}
	if p.message == "" {
		p.message = "the status is " + string(r.Status)
	}
	return p
}

func (r *responseReply) itemsOf(whole responses.Response) {
	for i, item := range whole.Output {
		r.item(int64(i), item)
	}
}

func (r *responseReply) item(index int64, item responses.ResponseOutputItemUnion) {
	r.kept.AddPart(len(item.RawJSON()))
	var says model.Delta
	signature := ""
	switch item.Type {
	case "message":
		for _, c := range item.Content {
			r.refused = r.refused || c.Refusal != ""
			says.Text += c.Text + c.Refusal
		}
	case "reasoning":
		for _, s := range item.Summary {
			says.Thinking += s.Text
		}
		signature = item.EncryptedContent
	}
	at := spot{index, item.Type == "reasoning"}
	// Text that was not streamed is emitted now, so a reader misses nothing.
	if r.received[at] == nil && !r.renumber(at, says) {
		r.receive(index, says)
	}
	it := r.itemAt(at, signature)
	for i, p := range it.parts {
		switch {
		case p.Type == agent.PartText:
			it.parts[i].Phase, it.parts[i].Raw = string(item.Phase), sources(item)
		case p.Type == agent.PartThinking && signature != "":
			it.parts[i].ProviderID = item.ID
		}
	}
	if item.Type == "function_call" {
		it.parts = append(it.parts, model.CallPart(item.CallID, item.Name, item.Arguments.OfString))
	}
	if step, ok := stepOf(item); ok {
		it.parts = append(it.parts, step)
		r.searches += searches(item)
	}
	r.items = append(r.items, it)
}

// renumber moves what came under another number to an item with the same content: servers
// that imitate the API number the two differently.
func (r *responseReply) renumber(to spot, says model.Delta) bool {
	for at, h := range r.received {
		if says != (model.Delta{}) && h.text.String() == says.Text && h.thinking.String() == says.Thinking {
			delete(r.received, at)
			r.received[to] = h
			return true
		}
	}
	return false
}

// receive emits a piece of an item, and keeps it until the item is complete.
func (r *responseReply) receive(index int64, d model.Delta) {
	if d == (model.Delta{}) {
		return
	}
	at := spot{index, d.Thinking != ""}
	if r.received[at] == nil {
		// Counted as a part, because a server could start items without end.
		r.kept.AddPart(0)
		r.received[at] = &words{}
	}
	r.received[at].add(d)
	r.all.add(d)
	r.emit(d)
}

// itemAt returns an item made of the pieces that came of it.
func (r *responseReply) itemAt(at spot, signature string) responseItem {
	it := responseItem{at: at}
	h := r.received[at]
	if h == nil {
		h = &words{}
	}
	delete(r.received, at)
	if h.thinking.Len() > 0 || signature != "" {
		it.parts = append(it.parts, agent.Part{Type: agent.PartThinking, Text: h.thinking.String(), Signature: signature})
	}
	if h.text.Len() > 0 {
		it.parts = append(it.parts, agent.Part{Type: agent.PartText, Text: h.text.String()})
	}
	return it
}

// rank orders thinking before text under the same number.
func rank(it responseItem) int {
	if it.at.thought {
		return 0
	}
	return 1
}

// reply returns nil also if the items do not match what was emitted. Somebody has read a
// text that the reply would not contain.
func (r *responseReply) reply() *model.Reply {
	if r.end == nil {
		return nil
	}
	for at := range r.received {
		// Their items never came, but the text was emitted.
		r.items = append(r.items, r.itemAt(at, ""))
	}
	// Map order is random, and servers may send items in any order.
	slices.SortStableFunc(r.items, func(a, b responseItem) int {
		return cmp.Or(cmp.Compare(a.at.index, b.at.index), cmp.Compare(rank(a), rank(b)))
	})
	u := r.end.Usage
	out := &model.Reply{Usage: usage(u.InputTokens, u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens,
		u.OutputTokens, u.OutputTokensDetails.ReasoningTokens, u.TotalTokens)}
	out.Usage.Searches = r.searches
	calls := false
	var says words
	for _, it := range r.items {
		out.Parts = append(out.Parts, it.parts...)
		for _, p := range it.parts {
			switch p.Type {
			case agent.PartText:
				says.add(model.Delta{Text: p.Text})
			case agent.PartThinking:
				says.add(model.Delta{Thinking: p.Text})
			case agent.PartToolCall:
				calls = true
			}
		}
	}
	// A reader has seen a text that the reply does not have; that is a broken reply.
	if says.text.String() != r.all.text.String() || says.thinking.String() != r.all.thinking.String() {
		return nil
	}
	var reason model.Finish
	if r.end.Status == responses.ResponseStatusIncomplete {
		reason = model.FinishLength
		if r.end.IncompleteDetails.Reason == "content_filter" {
			reason = model.FinishContentFilter
		}
	}
	out.Finish = finish(reason, r.refused, calls)
	return out
}
