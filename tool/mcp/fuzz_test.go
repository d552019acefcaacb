package mcp

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever a server answers to a call, it is a text that can be stored, or a failure
// that says why.
func FuzzResult(f *testing.F) {
	for _, result := range []string{
		`{"content":[{"type":"text","text":"ok"}]}`, `{"content":[],"isError":true}`, `{"content":[{"type":"text","text":"\u0000"}],"structuredContent":{"a":1}}`, `{"structuredContent":[null]}`,
		`{"content":[{"type":"image","data":"eA==","mimeType":"image/png"},{"type":"audio","data":"eA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:b","name":"n","size":3}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"eA=="}},{"type":"resource","resource":{"uri":"a:b","text":"x"}}]}`, `{"content":[null]}`, `{"content":null}`,
	} {
		f.Add([]byte(result))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var result sdk.CallToolResult
		if json.Unmarshal(data, &result) != nil {
			return // the SDK refuses it
		}
		text, err := answer(&result)
		require.Equal(t, err == nil, text != "", "there is a text or a failure")
		if err != nil {
			text = err.Error()
		}
		require.NotEmpty(t, text)
		require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\x00"), "%q", text)
	})
}

// Whatever tools a server lists, those that are taken can be offered to every model,
// each under a name of its own.
func FuzzTools(f *testing.F) {
	for _, list := range []string{
		`[{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}}]`, `[{"name":"","inputSchema":{}}]`, `[{"name":"x"}]`, `[null]`,
		`[{"name":"long` + strings.Repeat("g", 80) + `","description":"\u0000","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"annotations":{"readOnlyHint":true}}]`,
	} {
		f.Add([]byte(`{"tools":` + list + `}`))
	}
	s := New("tickets", []string{"none"}, &Options{Logger: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, data []byte) {
		var page sdk.ListToolsResult
		if json.Unmarshal(data, &page) != nil {
			return // the SDK refuses it
		}
		specs, names := s.specs(page.Tools)
		require.Len(t, names, len(specs), "each has its own name")
		for _, spec := range specs {
			require.Nil(t, agent.CheckTool(spec.Name))
			require.NotEmpty(t, names[spec.Name])
			require.True(t, utf8.ValidString(spec.Description) && !strings.Contains(spec.Description, "\x00"), "%q", spec.Description)
			var schema struct{ Type string }
			require.NoError(t, json.Unmarshal(spec.Input, &schema))
			require.Equal(t, "object", schema.Type)
		}
	})
}
