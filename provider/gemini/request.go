package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// foreign replaces the signature of a call that the model did not make itself, because
// newer models refuse a call without one (page "Thought signatures" of
// ai.google.dev/gemini-api/docs).
const foreign = "skip_thought_signature_validator"

// request returns a request for the provider.
func (m *Model) request(req *model.Request) (*request, error) {
	config, instructions := configOf(req)
	r := &request{Contents: m.contents(req), Config: config, Tier: m.tier}
	// The provider's own error would not say what is missing.
	if len(r.Contents) == 0 {
		return nil, errors.New("there is no message to answer")
	}
	if !blank(instructions) {
		r.System = &content{Parts: []part{textPart(instructions)}}
	}
	var functions []*genai.FunctionDeclaration
	for _, t := range req.Tools {
		t = model.PlainTool(t)
		f := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		if len(t.Input) > 0 { // a tool without arguments has no schema
			input, err := model.InputSchema(t, map[string]string{"type": `"object"`})
			if err != nil {
				return nil, err
			}
			f.ParametersJsonSchema = input
		}
		functions = append(functions, f)
	}
	if len(functions) > 0 {
		r.Tools = []genai.Tool{{FunctionDeclarations: functions}}
		switch {
		case req.NoCalls:
			r.ToolConfig = calling(genai.FunctionCallingConfigModeNone)
		case m.choice.Requires(req):
			r.ToolConfig = calling(genai.FunctionCallingConfigModeAny)
		}
	}
	return r, nil
}

func calling(mode genai.FunctionCallingConfigMode) *genai.ToolConfig {
	return &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: mode}}
}

// configOf returns how to make the reply; nil if everything is the provider's default. It
// also returns the instructions, with the part of the answer's schema that the provider
// can't enforce.
func configOf(req *model.Request) (*genai.GenerationConfig, string) {
	c := &genai.GenerationConfig{ThinkingConfig: thinking(req.Model, req.Reasoning)}
	if req.Temperature != nil {
		t := float32(*req.Temperature)
		c.Temperature = &t
	}
	if req.MaxOutputTokens > 0 {
		// The API's field has 32 bits.
		c.MaxOutputTokens = int32(min(req.MaxOutputTokens, math.MaxInt32))
	}
	instructions := hold(c, req)
	// An empty object would be sent otherwise.
	if c.ThinkingConfig == nil && c.Temperature == nil && c.MaxOutputTokens == 0 && c.ResponseJsonSchema == nil {
		return nil, instructions
	}
	return c, instructions
}

// hold makes the provider enforce the schema of the answer as far as it can, and returns
// the instructions, which say the rest. Models before version 3 accept either a schema or
// tools.
func hold(c *genai.GenerationConfig, req *model.Request) string {
	if len(req.Output) == 0 {
		return req.Instructions
	}
	schema, whole := outputSchema(req.Output)
	if schema != nil && (len(req.Tools) == 0 || generation(req.Model) >= 3) {
		c.ResponseMIMEType, c.ResponseJsonSchema = "application/json", schema
		if whole {
			return req.Instructions
		}
	}
	return model.OutputInWords(req.Instructions, req.Output, len(req.Tools) > 0)
}

// contents returns a conversation for the provider: turns of user and model. Results of
// tools are the user's and come first.
func (m *Model) contents(req *model.Request) []content {
	var out []content
	say := func(role string, parts []part) {
		if len(parts) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
			return
		}
		out = append(out, content{Role: role, Parts: parts})
	}
	id := model.CallIDs(req.Messages)
	for i, msg := range req.Messages {
		named := func(call string) string { return id(i, call) }
		if msg.Role == agent.RoleAssistant {
			say(genai.RoleModel, m.modelParts(msg, req.Model, named))
		} else {
			say(genai.RoleUser, userParts(msg, req.Files, named))
		}
	}
	// Only the user's turns have results.
	for _, c := range out {
		if c.Role == genai.RoleUser {
			slices.SortStableFunc(c.Parts, func(a, b part) int { return rank(a) - rank(b) })
		}
	}
	return out
}

// rank orders results of tools before everything else, as the provider requires.
func rank(p part) int {
	if p.Response != nil {
		return 0
	}
	return 1
}

// modelParts returns a message of the model. Signatures go back only to the model that
// made them, each on the part that followed it. A signature that no part
// followed is sent with an empty text, as the provider sent it.
func (m *Model) modelParts(msg agent.Message, asked string, id func(call string) string) []part {
	var parts []part
	own, calls, signature := m.wrote(msg, asked), 0, ""
	add := func(p part) {
		// A signature is used once, on the part that follows it.
		p.Signature, signature = signature, ""
		parts = append(parts, p)
	}
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartThinking && own && p.Signature != "":
			// Two signatures in a row: the first one had an empty part.
			if signature != "" {
				add(textPart(""))
			}
			signature = p.Signature
		case p.Type == agent.PartText && !blank(p.Text):
			add(textPart(p.Text))
		case p.Type == agent.PartToolCall && p.Call != nil:
			// Only the first call of a turn carries a signature.
			if calls++; calls == 1 && signature == "" && generation(asked) >= 3 {
				signature = foreign
			}
			add(part{Call: &functionCall{ID: id(p.Call.ID), Name: p.Call.Tool, Args: arguments(p.Call)}})
		}
	}
	// The signature came on an empty text, and goes back so.
	if signature != "" {
		add(textPart(""))
	}
	return parts
}

// wrote reports whether the called model itself wrote a message.
func (m *Model) wrote(msg agent.Message, asked string) bool {
	provider, name, named := strings.Cut(msg.ModelName(), "/")
	// Old messages have no model's name; the provider must do.
	return provider == m.name && (!named || name == asked)
}

func userParts(msg agent.Message, files map[string][]byte, id func(call string) string) []part {
	var parts []part
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartText && !blank(p.Text):
			parts = append(parts, textPart(p.Text))
		case p.Type == agent.PartFile && p.File != nil:
			parts = append(parts, part{Inline: &inlineData{p.File.MediaType, files[p.File.Digest]}})
		case p.Type == agent.PartToolResult && p.Result != nil:
			parts = append(parts, resultParts(p.Result, id(p.Result.Call), files)...)
		}
	}
	return parts
}

// resultParts returns a tool's result with its files. If its call is missing, it returns what
// the user would say, because the provider refuses such results.
func resultParts(r *agent.ToolResult, id string, files map[string][]byte) []part {
	if id == "" {
		parts := []part{textPart(fmt.Sprintf("Result of %s: %s", r.Tool, r.Text))}
		for _, p := range r.Files {
			parts = append(parts, part{Inline: &inlineData{p.File.MediaType, files[p.File.Digest]}})
		}
		return parts
	}
	key := "output"
	if r.Status != agent.CallOK {
		key = "error"
	}
	response := &genai.FunctionResponse{ID: id, Name: r.Tool, Response: map[string]any{key: r.Text}}
	for _, p := range r.Files {
		response.Parts = append(response.Parts, genai.NewFunctionResponsePartFromBytes(files[p.File.Digest], p.File.MediaType))
	}
	return []part{{Response: response}}
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

func blank(s string) bool { return strings.TrimSpace(s) == "" }
