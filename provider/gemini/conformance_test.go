package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Model(t, conformance.HTTPProvider{
		New: func(url, key string) model.Model {
			return gemini.New(&gemini.Options{BaseURL: url, APIKey: key})
		},
		Read:  readRequest,
		Reply: writeReply,
		Refuse: func(kind agent.FaultKind, message string) (int, string) {
			return kinds[kind].status, problemOf(kind, message)
		},
		Break: func(kind agent.FaultKind, message string) string { return stream(problemOf(kind, message)) },
		Ping:  ": keep-alive\n\n",
	}, &conformance.ModelOptions{Provider: "gemini", Model: "gemini-3.8-flash", Unsupported: conformance.Unsupported{
		BrokenJSON: true, // arguments are values of JSON
		CacheWrite: true, // what is kept for later is not told
	}})
}

// kinds are the provider's words for kinds of failures.
var kinds = map[agent.FaultKind]struct {
	status        int
	name, details string
}{
	agent.FaultRateLimit:  {429, "RESOURCE_EXHAUSTED", ""},
	agent.FaultOverload:   {503, "UNAVAILABLE", ""},
	agent.FaultTransient:  {500, "INTERNAL", ""},
	agent.FaultAuth:       {400, "INVALID_ARGUMENT", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`},
	agent.FaultQuota:      {429, "RESOURCE_EXHAUSTED", `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}`},
	agent.FaultBadRequest: {400, "INVALID_ARGUMENT", ""},
	agent.FaultContext:    {400, "INVALID_ARGUMENT", ""},
}

func problemOf(kind agent.FaultKind, message string) string {
	k := kinds[kind]
	if kind == agent.FaultContext {
		message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). " + message
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%q,"details":[%s]}}`, k.status, quoted(message), k.name, k.details)
}

var stops = map[model.Finish]string{
	model.FinishStop: "STOP", model.FinishToolCalls: "STOP", model.FinishLength: "MAX_TOKENS", model.FinishContentFilter: "SAFETY",
}

// writeReply streams a response. A signature stands on the part behind the thinking.
func writeReply(s conformance.ProviderResponse) []string {
	var chunks []string
	signature := ""
	say := func(part string) {
		if signature != "" {
			part, signature = signed(part, signature), ""
		}
		chunks = append(chunks, chunk(part))
	}
	for _, b := range s.Blocks {
		switch b.Type {
		case agent.PartToolCall:
			say(calls(b.ID, b.Tool, strings.Join(b.Pieces, "")))
			continue
		case agent.PartThinking:
			for _, p := range b.Pieces {
				say(thinks(p))
			}
			signature = b.Signature
			continue
		}
		for _, p := range b.Pieces {
			say(text(p))
		}
	}
	u := s.Usage
	chunks = append(chunks, fmt.Sprintf(`{"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":%q,"index":0}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d}}`,
		stops[s.Finish], u.Input, u.CacheRead, u.Output-u.Reasoning, u.Reasoning, u.Total()))
	for i, c := range chunks {
		chunks[i] = stream(c)
	}
	return chunks
}

type askedPart struct {
	Text             *string
	Thought          bool
	ThoughtSignature string
	FunctionCall     *struct {
		ID, Name string
		Args     json.RawMessage
	}
	FunctionResponse *struct {
		ID, Name string
		Response struct{ Output, Error *string }
	}
}

// parts is a part as the port knows it, with the thinking that it is signed for.
func (p askedPart) parts() []agent.Part {
	var out []agent.Part
	if p.ThoughtSignature != "" && p.ThoughtSignature != "skip_thought_signature_validator" {
		out = append(out, thought("", p.ThoughtSignature))
	}
	switch {
	case p.FunctionCall != nil:
		c := p.FunctionCall
		out = append(out, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: c.ID, Tool: c.Name, Arguments: c.Args}})
	case p.FunctionResponse != nil && p.FunctionResponse.Response.Error != nil:
		out = append(out, result(p.FunctionResponse.ID, "", agent.CallFailed, *p.FunctionResponse.Response.Error))
	case p.FunctionResponse != nil:
		out = append(out, result(p.FunctionResponse.ID, "", agent.CallOK, *p.FunctionResponse.Response.Output))
	case p.Text != nil && *p.Text != "":
		out = append(out, said(*p.Text))
	}
	return out
}

// readRequest reads what the provider is asked.
func readRequest(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	var in struct {
		SystemInstruction struct{ Parts []askedPart }
		Contents          []struct {
			Role  string
			Parts []askedPart
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name, Description    string
				ParametersJsonSchema json.RawMessage
			}
		}
		GenerationConfig struct {
			Temperature     *float64
			MaxOutputTokens int
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":streamGenerateContent")
	asked := conformance.ProviderRequest{Model: name, Temperature: in.GenerationConfig.Temperature, MaxOutputTokens: in.GenerationConfig.MaxOutputTokens, Key: r.Header.Get("x-goog-api-key")}
	for _, p := range in.SystemInstruction.Parts {
		asked.Instructions += *p.Text
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			asked.Tools = append(asked.Tools, agent.ToolSpec{Name: f.Name, Description: f.Description, Input: f.ParametersJsonSchema})
		}
	}
	for _, c := range in.Contents {
		msg := agent.Message{Role: map[string]agent.Role{"user": agent.RoleUser, "model": agent.RoleAssistant}[c.Role]}
		for _, p := range c.Parts {
			msg.Parts = append(msg.Parts, p.parts()...)
		}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}
