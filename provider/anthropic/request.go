package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// defaultMaxOutput limits the reply of an unknown model: the provider requires a limit.
const defaultMaxOutput = 16_384

// cachedTurns is how many of the user's messages are marked for the cache: the last one
// to write it, and the one before to find what the last request wrote.
const cachedTurns = 2

// mark marks a block for the cache.
func (m *Model) mark() sdk.CacheControlEphemeralParam {
	c := sdk.NewCacheControlEphemeralParam()
	if m.hour {
		c.TTL = sdk.CacheControlEphemeralTTLTTL1h
	}
	return c
}

// params returns a request for the provider. files makes the blocks of its files.
func (m *Model) params(req *model.Request, files *shownFiles) (sdk.MessageNewParams, error) {
	conversation, recital := model.SplitRecital(req.Messages)
	p := sdk.MessageNewParams{
		Model:     req.Model,
		MaxTokens: int64(cmp.Or(req.MaxOutputTokens, m.Info(req.Model).MaxOutput, defaultMaxOutput)),
		Messages:  m.messages(conversation, files),

		ServiceTier: sdk.MessageNewParamsServiceTier(m.tier),
	}
	if len(p.Messages) == 0 {
		return p, errors.New("there is no message to answer")
	}
	// Before the server tools: an order that changes would miss the cache.
	for _, t := range req.Tools {
		tool, err := toolParam(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, tool)
	}
	for _, t := range m.serves {
		p.Tools = append(p.Tools, serverTool(t))
	}
	// The tools stay in the request, so that it starts like the earlier ones in the cache.
	if req.NoCalls && len(p.Tools) > 0 {
		none := sdk.NewToolChoiceNoneParam()
		p.ToolChoice.OfNone = &none
	}
	instructions := m.hold(&p, req)
	if !blank(instructions) {
		// The cache covers everything before the mark: the tools come before the instructions.
		p.System = []sdk.TextBlockParam{{Text: instructions, CacheControl: m.mark()}}
	} else if n := len(p.Tools); n > 0 {
		// Without instructions, the last tool ends the common part.
		*p.Tools[n-1].GetCacheControl() = m.mark()
	}
	m.markTurns(p.Messages)
	p.Messages = recited(p.Messages, recital) // behind the marks, since it changes
	reason(&p, req.Reasoning)
	// No model accepts a temperature together with a budget of thinking.
	if t := table.Models[family(req.Model)].Temperature.Takes(req.Temperature, true); t != nil && p.Thinking.OfEnabled == nil {
		p.Temperature = param.NewOpt(*t)
	}
	return p, nil
}

// hold makes the provider enforce the schema of the answer as far as it can, and returns
// the instructions, which say the rest. Servers that imitate the provider only get the
// words.
func (m *Model) hold(p *sdk.MessageNewParams, req *model.Request) string {
	if len(req.Output) == 0 {
		return req.Instructions
	}
	schema, whole := outputSchema(req.Output)
	// Other servers with this API may refuse the field.
	if schema != nil && strings.HasPrefix(req.Model, "claude-") {
		p.OutputConfig.Format = param.Override[sdk.JSONOutputFormatParam](map[string]any{"type": "json_schema", "schema": schema})
		if whole {
			return req.Instructions
		}
	}
	return model.OutputInWords(req.Instructions, req.Output, len(req.Tools) > 0)
}

// toolParam returns a tool, with the type that the provider requires in its schema.
func toolParam(t agent.ToolSpec) (sdk.ToolUnionParam, error) {
	// Schemas may have constructs that the provider refuses.
	t = model.PlainTool(t)
	input, err := model.InputSchema(t, map[string]string{"type": `"object"`})
	if err != nil {
		return sdk.ToolUnionParam{}, err
	}
	tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](input)}
	if t.Description != "" {
		tool.Description = param.NewOpt(t.Description)
	}
	return sdk.ToolUnionParam{OfTool: tool}, nil
}

// messages returns a conversation for the provider: turns of user and assistant. Results
// of tools are the user's and come first.
func (m *Model) messages(in []agent.Message, files *shownFiles) []sdk.MessageParam {
	var out []sdk.MessageParam
	say := func(role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) {
		if len(blocks) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			// The provider requires alternating roles.
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	id, asked := model.CallIDs(in), lastAsked(in)
	theirs, steps := m.interleaved(in), m.steps(in, asked)
	for i, msg := range in {
		if steps.continues(i, in) {
			continue
		}
		// Thinking between calls was signed with the provider's ids, so these stay.
		named := func(call string) string { return cmp.Or(theirs[id(i, call)], id(i, call)) }
		if msg.Role == agent.RoleAssistant {
			// Older thinking is left out: the model does not need it, and a changed prefix would
			// make it invalid.
			thought := i > asked && m.made(msg) && steps.whole(i, msg)
			say(sdk.MessageParamRoleAssistant, assistantBlocks(msg, named, thought, func(p agent.Part) bool { return steps.given(i, msg, p) }))
		} else {
			say(sdk.MessageParamRoleUser, userBlocks(msg, files, named))
		}
	}
	// Stable, so the rest keeps its order.
	for _, msg := range out {
		slices.SortStableFunc(msg.Content, func(a, b sdk.ContentBlockParamUnion) int { return rank(a) - rank(b) })
	}
	return out
}

// rank orders results of tools before everything else, as the provider requires.
func rank(b sdk.ContentBlockParamUnion) int {
	if b.OfToolResult != nil {
		return 0
	}
	return 1
}

// lastAsked returns the index of the last message in which the user says something; -1 if
// there is none.
func lastAsked(in []agent.Message) int {
	for i, msg := range slices.Backward(in) {
		if msg.Role == agent.RoleUser && msg.Note != agent.NotePauseTurn && (!blank(msg.Text()) || len(msg.Files()) > 0) {
			return i
		}
	}
	return -1
}

func userBlocks(msg agent.Message, files *shownFiles, id func(call string) string) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartText && !blank(p.Text):
			blocks = append(blocks, sdk.NewTextBlock(p.Text))
		case p.Type == agent.PartFile && p.File != nil:
			blocks = append(blocks, files.block(p.File))
		case p.Type == agent.PartToolResult && p.Result != nil:
			blocks = append(blocks, resultBlocks(p.Result, id(p.Result.Call), files)...)
		}
	}
	return blocks
}

// wordless is the text of a call that failed without one.
const wordless = "The call failed and says nothing of why."

// resultBlocks returns a tool's result with its files. If its call is missing, it returns what
// the user would say, because the provider refuses such results.
func resultBlocks(r *agent.ToolResult, id string, files *shownFiles) []sdk.ContentBlockParamUnion {
	var shown []sdk.ContentBlockParamUnion
	for _, p := range r.Files {
		shown = append(shown, files.block(p.File))
	}
	if id == "" {
		return append([]sdk.ContentBlockParamUnion{sdk.NewTextBlock(fmt.Sprintf("Result of %s: %s", r.Tool, r.Text))}, shown...)
	}
	b := &sdk.ToolResultBlockParam{ToolUseID: id}
	text := r.Text
	if r.Status != agent.CallOK {
		b.IsError = param.NewOpt(true)
		// The provider refuses a failed result without text.
		if blank(text) {
			text = wordless // an error without content is refused
		}
	}
	if !blank(text) {
		b.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
	}
	for _, f := range shown {
		b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfImage: f.OfImage, OfDocument: f.OfDocument})
	}
	return []sdk.ContentBlockParamUnion{{OfToolResult: b}}
}

// theirID matches the provider's own ids of calls.
var theirID = regexp.MustCompile(`^toolu_[a-zA-Z0-9_-]{1,100}$`)

// interleaved returns the provider's own ids of calls between which its model thought, by
// our ids. Such thinking is accepted only after exactly what came before it.
func (m *Model) interleaved(in []agent.Message) map[string]string {
	return model.ProviderIDs(in, func(msg agent.Message) bool { return model.ProviderOf(msg.ModelName()) == m.name && thinksBetween(msg) }, theirID.MatchString)
}

// thinksBetween reports whether a message thinks after a call.
func thinksBetween(msg agent.Message) bool {
	called := false
	for _, p := range msg.Parts {
		called = called || p.Type == agent.PartToolCall
		if called && p.Type == agent.PartThinking {
			return true
		}
	}
	return false
}

// assistantBlocks returns a message of the model. It includes thinking if thought is
// true, and the provider's own form of the parts for which back is true. Thinking after a
// call whose provider id is unknown is left out, and so is thinking that nothing follows.
func assistantBlocks(msg agent.Message, id func(call string) string, thought bool, back func(agent.Part) bool) []sdk.ContentBlockParamUnion {
	var blocks, thinking []sdk.ContentBlockParamUnion
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartThinking && thought && p.Redacted != "":
			thinking = append(thinking, sdk.NewRedactedThinkingBlock(p.Redacted))
		case p.Type == agent.PartThinking && thought && p.Signature != "":
			thinking = append(thinking, sdk.NewThinkingBlock(p.Signature, p.Text))
		// Thinking belongs before the part that it led to.
		case p.Type == agent.PartText && !blank(p.Text):
			blocks = append(append(blocks, thinking...), textBlock(p, back(p)))
			thinking = nil
		case p.Type == agent.PartServerTool && back(p):
			blocks = append(append(blocks, thinking...), stepBlock(p))
			thinking = nil
		case p.Type == agent.PartToolCall && p.Call != nil:
			named := id(p.Call.ID)
			blocks = append(append(blocks, thinking...), sdk.NewToolUseBlock(named, arguments(p.Call), p.Call.Tool))
			// With another id the prefix has changed, and later thinking would be refused.
			thinking, thought = nil, thought && named == p.Call.ProviderID
		}
	}
	return blocks
}

// arguments returns a call's arguments if they are an object, which the provider
// requires; else an empty object.
func arguments(c *agent.ToolCall) json.RawMessage {
	var object map[string]json.RawMessage
	if c.Malformed != "" || json.Unmarshal(c.Arguments, &object) != nil || object == nil {
		return json.RawMessage(`{}`)
	}
	return c.Arguments
}

// markTurns marks the ends of the user's last turns for the cache.
func (m *Model) markTurns(messages []sdk.MessageParam) {
	marked := 0
	for _, msg := range slices.Backward(messages) {
		if msg.Role != sdk.MessageParamRoleUser {
			continue
		}
		*msg.Content[len(msg.Content)-1].GetCacheControl() = m.mark()
		if marked++; marked == cachedTurns {
			return
		}
	}
}

// recited adds what a request says by itself to the end of a conversation.
func recited(messages []sdk.MessageParam, recital []agent.Message) []sdk.MessageParam {
	for _, msg := range recital {
		text := sdk.NewTextBlock(msg.Text())
		if last := &messages[len(messages)-1]; last.Role == sdk.MessageParamRoleUser {
			last.Content = append(last.Content, text)
			continue
		}
		messages = append(messages, sdk.NewUserMessage(text))
	}
	return messages
}

// blank reports whether a text is empty: the provider refuses such texts.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
