//go:build unix

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/tool/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

var photo = []byte(strings.Repeat("\x89PNG\x00", 20_000))

// told are results, by the tool that has them, and what the model reads of each.
var told = map[string]struct {
	result *sdk.CallToolResult
	reads  string
}{
	"image": {&sdk.CallToolResult{ // as the official filesystem server has it
		Content:           []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: photo}},
		StructuredContent: map[string]any{"content": []any{map[string]any{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(photo)}}},
	}, "[image, image/png, 100000 bytes, not shown]"},
	"media_in_structure": {&sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: "here"}},
		StructuredContent: map[string]any{
			"a": map[string]any{"mime_type": "image/png", "data": base64.StdEncoding.EncodeToString(photo)},
			"b": "data:image/png;base64," + base64.StdEncoding.EncodeToString(photo),
			"c": strings.Repeat("ACGT", 300),
		},
	}, `here` + "\n" + `{"a":{"data":"[image/png, 100000 bytes, not shown]","mime_type":"image/png"},"b":"[image/png, 100000 bytes, not shown]","c":"` + strings.Repeat("ACGT", 300) + `"}`},
	"rows": {&sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: "2 rows found"}},
		StructuredContent: map[string]any{"rows": []any{"<a>", "b & c"}},
	}, "2 rows found\n" + `{"rows":["<a>","b & c"]}`},
	"same_json": {&sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: "{\"b\": [1, 2],\n \"a\": true}"}},
		StructuredContent: map[string]any{"a": true, "b": []any{1, 2}},
	}, "{\"b\": [1, 2],\n \"a\": true}"},
	"same_text": {&sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: "a file"}},
		StructuredContent: map[string]any{"content": "a file"},
	}, "a file"},
	"same_list": {&sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: `{"id":1}`}, &sdk.TextContent{Text: `two`}},
		StructuredContent: map[string]any{"result": []any{map[string]any{"id": 1}, "two"}},
	}, "{\"id\":1}\ntwo"},
	"another_name": {&sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: "2"}},
		StructuredContent: map[string]any{"failed": 2},
	}, "2\n" + `{"failed":2}`},
	"order": {&sdk.CallToolResult{Content: []sdk.Content{
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b.json", MIMEType: "application/json", Blob: []byte(`{"x":1}`)}, Annotations: &sdk.Annotations{Audience: []sdk.Role{"assistant"}, Priority: 0.9}},
		&sdk.TextContent{Text: "between"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c.txt", MIMEType: "text/plain; charset=utf-8", Text: "c"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///d.txt", MIMEType: "text/plain", Blob: []byte("\xff\xfe")}},
		&sdk.ResourceLink{Name: "log", Title: "The log", Description: "of today", URI: "file:///log", Annotations: &sdk.Annotations{Audience: []sdk.Role{"user", "assistant"}}},
		&sdk.TextContent{Text: "last", Annotations: &sdk.Annotations{Audience: []sdk.Role{"user"}, Priority: 0.25}},
	}}, strings.Join([]string{
		"[resource, file:///b.json, application/json, for assistant, priority 0.9]", `{"x":1}`, "between",
		"[resource, file:///c.txt, text/plain; charset=utf-8]", "c",
		"[resource, file:///d.txt, text/plain, 2 bytes, not shown]",
		"[link to log, The log, file:///log, for user, assistant: of today]",
		"[for user, priority 0.25]", "last",
	}, "\n")},
	"long_numbers":    {&sdk.CallToolResult{Meta: sdk.Meta{"x": "y"}, Content: []sdk.Content{&sdk.TextContent{Text: "found"}}, StructuredContent: json.RawMessage(`{"id":9007199254740993,"price":12.50,"big":123456789012345678901234567890}`)}, "found\n" + `{"id":9007199254740993,"price":12.50,"big":123456789012345678901234567890}`},
	"long_repeated":   {&sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"id": 9007199254740993}`}}, StructuredContent: json.RawMessage(`{"id":9007199254740993}`)}, `{"id": 9007199254740993}`},
	"other_numbers":   {&sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"n": 1.0}`}}, StructuredContent: json.RawMessage(`{"n":1}`)}, `{"n": 1.0}`},
	"structure_alone": {&sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: []any{1, "x"}}, `[1,"x"]`},
}

// results is a server with a tool for each of them.
func results() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "results", Version: "1"}, nil)
	for name, each := range told {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return each.result, nil
		})
	}
	return s
}

// A model reads texts and structure once each, in the server's order, and no media.
func TestWhatTheModelReads(t *testing.T) {
	for _, r := range []rig{setup(t, "results", mcp.Options{}), reach(t, serveHTTP(t, httpHandler(results(), nil)).URL, mcp.Options{}), reach(t, serveHTTP(t, httpHandler(results(), kinds["json"])).URL, mcp.Options{})} {
		for name, each := range told {
			require.Equal(t, each.reads, r.ok(t, name, ""), name)
		}
	}
}
