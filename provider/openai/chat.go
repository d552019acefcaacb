package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/model"
)

// chatParams returns a request for Chat Completions.
func (m *Model) chatParams(req *model.Request, files *filebody.Files) (sdk.ChatCompletionNewParams, error) {
	format, held, instructions := m.hold(req)
	p := sdk.ChatCompletionNewParams{
		Model:       req.Model,
		Messages:    m.chatMessages(req, files, instructions),
		ServiceTier: sdk.ChatCompletionNewParamsServiceTier(m.with.ServiceTier),
	}
	if !m.with.NoStreamOptions {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	// The server's own error would not say what is missing.
	if len(p.Messages) == 0 {
		return p, errors.New("there is no message to answer")
	}
	for _, t := range req.Tools {
		f, err := functionOf(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](f)))
	}
	switch {
	case req.NoCalls && len(p.Tools) > 0:
		p.ToolChoice.OfAuto = param.NewOpt(string(sdk.ChatCompletionToolChoiceOptionAutoNone))
	case m.with.ToolChoice.Requires(req):
		p.ToolChoice.OfAuto = param.NewOpt(string(sdk.ChatCompletionToolChoiceOptionAutoRequired))
	}
	switch {
	case req.MaxOutputTokens > 0 && m.maxTokensField(req.Model) == MaxCompletionTokens:
		p.MaxCompletionTokens = param.NewOpt(int64(req.MaxOutputTokens))
	case req.MaxOutputTokens > 0:
		p.MaxTokens = param.NewOpt(int64(req.MaxOutputTokens))
	}
	p.ReasoningEffort = m.effort(req)
	if t := temperature(req, p.ReasoningEffort); t != nil {
		p.Temperature = param.NewOpt(*t)
	}
	// Other servers may refuse the field.
	if key := req.Call.CacheKey(); m.own && key != "" {
		p.PromptCacheKey = param.NewOpt(key)
	}
	switch {
	// Such a server refuses schemas; the instructions have it.
	case held && m.objectsOnly():
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case held:
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: param.Override[shared.ResponseFormatJSONSchemaJSONSchemaParam](format),
		}
	}
	return p, nil
}

// maxTokensField returns the field that limits a model's reply. OpenAI's reasoning models
// refuse the older field, also behind a gateway.
func (m *Model) maxTokensField(name string) string {
	// A gateway puts the maker before the name.
	reasons := len(table.Models[family(name[strings.LastIndex(name, "/")+1:])].Reasoning) > 0
	switch {
	case m.with.MaxTokensField != "":
		return m.with.MaxTokensField
	case m.own || reasons:
		return MaxCompletionTokens
	}
	return MaxTokens
}

// mistral matches Mistral's models, on any server. They refuse a user's message directly
// after a tool's. So a short message of the model is put between the two.
var mistral = regexp.MustCompile(`(?i)(^|/)(open-)?(mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|voxtral)`)

const noted = "Noted."

// chatMessages returns a conversation for Chat Completions. Consecutive texts of the user
// become one message, because some models' templates require alternating roles. Results
// follow their calls, which all servers require.
func (m *Model) chatMessages(req *model.Request, shown *filebody.Files, instructions string) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	user := func(text string, files []sdk.ChatCompletionContentPartUnionParam) {
		if blank(text) && len(files) == 0 {
			return
		}
		// Some templates require alternating roles.
		if n := len(out); n == 0 || out[n-1].OfUser == nil {
			out = append(out, sdk.UserMessage(""))
		}
		addContent(&out[len(out)-1].OfUser.Content, text, files)
	}
	tool := func(text, id string) {
		after := len(out)
		// Results must follow their calls directly, before any message of the user.
		for after > 0 && out[after-1].OfUser != nil {
			after--
		}
		out = slices.Insert(out, after, sdk.ToolMessage(text, id))
	}
	if !blank(instructions) {
		out = append(out, sdk.SystemMessage(instructions))
	}
	id := m.callIDs(req)
	for i, msg := range req.Messages {
		if msg.Role == agent.RoleAssistant {
			if a := m.chatAssistant(msg, func(call string) string { return id(i, call) }); a != nil {
				out = append(out, sdk.ChatCompletionMessageParamUnion{OfAssistant: a})
			}
			continue
		}
		for _, r := range results(msg) {
			// Results without a call are refused, so they become text.
			if known := id(i, r.Call); known != "" {
				tool(r.Text, known)
			} else {
				user(orphan(r), nil)
			}
		}
		user(userText(msg), chatFiles(msg, shown))
	}
	if mistral.MatchString(req.Model) {
		return noting(out)
	}
	return out
}

// noting adds a message of the model after a tool's message and before a user's.
func noting(in []sdk.ChatCompletionMessageParamUnion) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	for i, msg := range in {
		// A message of the model in between is the only accepted order.
		if i > 0 && msg.OfUser != nil && in[i-1].OfTool != nil {
			out = append(out, sdk.AssistantMessage(noted))
		}
		out = append(out, msg)
	}
	return out
}

// chatAssistant returns a message of the model; nil if nothing is left of it.
func (m *Model) chatAssistant(msg agent.Message, id func(call string) string) *sdk.ChatCompletionAssistantMessageParam {
	a := &sdk.ChatCompletionAssistantMessageParam{}
	var thinking strings.Builder
	for _, p := range msg.Parts {
		if p.Type == agent.PartThinking {
			thinking.WriteString(p.Text)
		}
		if p.Type != agent.PartToolCall || p.Call == nil {
			continue
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID:       id(p.Call.ID),
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.Call.Tool, Arguments: m.arguments(p.Call)},
		}})
	}
	switch text := msg.Text(); {
	case !blank(text):
		a.Content.OfString = param.NewOpt(text)
	case len(a.ToolCalls) == 0:
		return nil
	default: // some servers miss a content that is not there
		a.Content.OfString = param.Null[string]()
	}
	// Only this server's own thinking: others have no use for it.
	if m.with.KeepThinking && thinking.Len() > 0 && model.ProviderOf(msg.ModelName()) == m.name {
		a.SetExtraFields(map[string]any{"reasoning_content": thinking.String()})
	}
	return a
}

// arguments returns a call's arguments. OpenAI accepts whatever its models wrote. Other
// servers parse it, and fail if it is no JSON.
func (m *Model) arguments(c *agent.ToolCall) string {
	if c.Malformed != "" && m.own {
		return c.Malformed
	}
	// Broken arguments would make the server fail on every later request.
	if c.Malformed != "" || !json.Valid(c.Arguments) {
		return "{}"
	}
	return string(rawjson.UnescapeHTML(c.Arguments)) // as the model wrote them
}

// userText joins the texts of a user's message, without blank ones.
func userText(msg agent.Message) string {
	var texts []string
	for _, p := range msg.Parts {
		if p.Type == agent.PartText && !blank(p.Text) {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func results(msg agent.Message) []*agent.ToolResult {
	var list []*agent.ToolResult
	for _, p := range msg.Parts {
		if p.Type == agent.PartToolResult && p.Result != nil {
			list = append(list, p.Result)
		}
	}
	return list
}

// orphan returns a text for a result without a call: servers refuse such results.
func orphan(r *agent.ToolResult) string { return fmt.Sprintf("Result of %s: %s", r.Tool, r.Text) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
