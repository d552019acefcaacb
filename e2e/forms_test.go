package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// sentFile is a file as a provider gets it.
type sentFile struct {
	MediaType, Name string
	Data            []byte
	InResult        bool
}

// form is a provider's protocol: how it answers, and where a request has files.
type form struct {
	contentType string
	says        func(text string, tokens int) string
	calls       func(id, tool, arguments string, tokens int) string
	// file reads an object of a request: false if it is not a file.
	file func(o map[string]any) (sentFile, bool)
	// result reports whether an object is a tool's result.
	result func(o map[string]any) bool
}

const eventStream = "text/event-stream"

// files returns the files of a request, in their order.
func (f form) files(body []byte) ([]sentFile, error) {
	var whole any
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, err
	}
	return f.within(whole, false), nil
}

func (f form) within(v any, inResult bool) (found []sentFile) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			found = append(found, f.within(one, inResult)...)
		}
	case map[string]any:
		if file, ok := f.file(v); ok {
			file.InResult = inResult
			return []sentFile{file}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, f.within(v[key], inResult || f.result(v))...)
		}
	}
	return found
}

// field returns a text within objects; empty if there is none.
func field(o map[string]any, path ...string) string {
	for _, key := range path[:len(path)-1] {
		o, _ = o[key].(map[string]any)
	}
	text, _ := o[path[len(path)-1]].(string)
	return text
}

// decoded returns the file of a base64 text. What is no base64 has no bytes.
func decoded(mediaType, name, text string) (sentFile, bool) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		data = nil
	}
	return sentFile{MediaType: mediaType, Name: name, Data: data}, mediaType != "" && text != ""
}

// ofURL is decoded of a data URL.
func ofURL(name, url string) (sentFile, bool) {
	mediaType, text, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	return decoded(mediaType, name, text)
}

// sse writes events; with their names where the protocol has them.
func sse(named bool, events ...string) string {
	var out strings.Builder
	for _, data := range events {
		var e struct{ Type string }
		if named {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				panic(err)
			}
			fmt.Fprintf(&out, "event: %s\n", e.Type)
		}
		fmt.Fprintf(&out, "data: %s\n\n", data)
	}
	return out.String()
}

// messagesForm is Anthropic's.
var messagesForm = form{
	contentType: eventStream,
	says: func(text string, tokens int) string {
		return messagesReply(`{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text), "end_turn", tokens)
	},
	calls: func(id, tool, arguments string, tokens int) string {
		return messagesReply(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, "toolu_"+id, tool), fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, arguments), "tool_use", tokens)
	},
	file: func(o map[string]any) (sentFile, bool) {
		if t := o["type"]; t != "image" && t != "document" || field(o, "source", "type") != "base64" {
			return sentFile{}, false
		}
		return decoded(field(o, "source", "media_type"), field(o, "title"), field(o, "source", "data"))
	},
	result: func(o map[string]any) bool { return o["type"] == "tool_result" },
}

func messagesReply(block, delta, stop string, tokens int) string {
	return sse(true,
		fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}}`, tokens),
		fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":%s}`, block), fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":%s}`, delta),
		`{"type":"content_block_stop","index":0}`, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}}`, stop), `{"type":"message_stop"}`)
}

// responsesForm is OpenAI's newer one.
var responsesForm = form{
	contentType: eventStream,
	says: func(text string, tokens int) string {
		return responsesReply(fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text), tokens)
	},
	calls: func(id, tool, arguments string, tokens int) string {
		return responsesReply(fmt.Sprintf(`{"type":"function_call","id":"fc_1","status":"completed","call_id":%q,"name":%q,"arguments":%q}`, "call_"+id, tool, arguments), tokens)
	},
	file: func(o map[string]any) (sentFile, bool) {
		switch o["type"] {
		case "input_image":
			return ofURL("", field(o, "image_url"))
		case "input_file":
			return ofURL(field(o, "filename"), field(o, "file_data"))
		}
		return sentFile{}, false
	},
	result: func(o map[string]any) bool { return o["type"] == "function_call_output" },
}

func responsesReply(item string, tokens int) string {
	return sse(true, fmt.Sprintf(`{"type":"response.output_item.done","output_index":0,"item":%s}`, item),
		fmt.Sprintf(`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[%s],"usage":{"input_tokens":%d,"output_tokens":9,"total_tokens":%d}}}`, item, tokens, tokens+9))
}

// chatForm is OpenAI's older one.
var chatForm = form{
	contentType: eventStream,
	says: func(text string, tokens int) string {
		return chatReply(fmt.Sprintf(`{"role":"assistant","content":%q}`, text), "stop", tokens)
	},
	calls: func(id, tool, arguments string, tokens int) string {
		return chatReply(fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, "call_"+id, tool, arguments), "tool_calls", tokens)
	},
	file: func(o map[string]any) (sentFile, bool) {
		switch o["type"] {
		case "image_url":
			return ofURL("", field(o, "image_url", "url"))
		case "file":
			return ofURL(field(o, "file", "filename"), field(o, "file", "file_data"))
		}
		return sentFile{}, false
	},
	result: func(o map[string]any) bool { return o["role"] == "tool" },
}

func chatReply(delta, finish string, tokens int) string {
	return sse(false, fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":%s,"finish_reason":%q}]}`, delta, finish),
		fmt.Sprintf(`{"id":"c","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":9,"total_tokens":%d}}`, tokens, tokens+9)) + "data: [DONE]\n\n"
}

// generateForm is Gemini's.
var generateForm = form{
	contentType: eventStream,
	says: func(text string, tokens int) string {
		return generateReply(fmt.Sprintf(`{"text":%q}`, text), tokens)
	},
	calls: func(id, tool, arguments string, tokens int) string {
		return generateReply(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s},"thoughtSignature":"Z2VtaW5p"}`, id, tool, arguments), tokens)
	},
	file: func(o map[string]any) (sentFile, bool) {
		return decoded(field(o, "inlineData", "mimeType"), field(o, "inlineData", "displayName"), field(o, "inlineData", "data"))
	},
	result: func(o map[string]any) bool { return o["functionResponse"] != nil },
}

func generateReply(part string, tokens int) string {
	return sse(false, fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":9,"totalTokenCount":%d}}`, part, tokens, tokens+9))
}

// converseForm is Bedrock's.
var converseForm = form{
	contentType: "application/vnd.amazon.eventstream",
	says: func(text string, tokens int) string {
		return converseReply(tokens, "end_turn", "contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":%q}}`, text))
	},
	calls: func(id, tool, arguments string, tokens int) string {
		return converseReply(tokens, "tool_use", "contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, "tooluse_"+id, tool),
			"contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"toolUse":{"input":%q}}}`, arguments))
	},
	file: func(o map[string]any) (sentFile, bool) {
		if format := field(o, "image", "format"); format != "" {
			return decoded("image/"+format, "", base64Of(o, "image"))
		}
		if format := field(o, "document", "format"); format != "" {
			return decoded("application/"+format, field(o, "document", "name"), base64Of(o, "document"))
		}
		return sentFile{}, false
	},
	result: func(o map[string]any) bool { return o["toolResult"] != nil },
}

func base64Of(o map[string]any, kind string) string { return field(o, kind, "source", "bytes") }

// converseReply writes frames; kindsAndEvents are kinds and payloads in turn.
func converseReply(tokens int, stop string, kindsAndEvents ...string) string {
	var out bytes.Buffer
	whole := slices.Concat([]string{"messageStart", `{"role":"assistant"}`}, kindsAndEvents, []string{
		"contentBlockStop", `{"contentBlockIndex":0}`, "messageStop", fmt.Sprintf(`{"stopReason":%q}`, stop),
		"metadata", fmt.Sprintf(`{"usage":{"inputTokens":%d,"outputTokens":9,"totalTokens":%d},"metrics":{"latencyMs":7}}`, tokens, tokens+9),
	})
	for i := 0; i < len(whole); i += 2 {
		m := eventstream.Message{Payload: []byte(whole[i+1])}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(whole[i]))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
			panic(err)
		}
	}
	return out.String()
}
