package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// Whatever a server writes, every message in it is read, in its order and as it is,
// and the rest is left out.
func FuzzLines(f *testing.F) {
	for _, lines := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` + "\n", `{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no"}}` + "\n\n" + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`,
		"Server ready\r\n" + `[{"jsonrpc":"2.0","id":1,"result":{}},null,{"jsonrpc":"2.0","id":2,"result":{}}]` + "\n[]\n[1\n", `{"jsonrpc":"1.0"}`, strings.Repeat("x", 70_000) + "\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}`,
	} {
		f.Add([]byte(lines))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newConn(nil, nil, slog.New(slog.DiscardHandler))
		c.reader.Reset(bytes.NewReader(data))
		var want, got [][]byte
		for line := range bytes.Lines(data) {
			var batch []json.RawMessage
			if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) || json.Unmarshal(line, &batch) != nil {
				batch = []json.RawMessage{line}
			}
			for _, raw := range batch {
				if msg, err := jsonrpc.DecodeMessage(raw); err == nil {
					want = append(want, encoded(t, msg))
				}
			}
		}
		msg, err := c.Read(t.Context())
		for ; err == nil && len(got) <= len(want); msg, err = c.Read(t.Context()) {
			got = append(got, encoded(t, msg))
		}
		require.ErrorIs(t, err, io.EOF)
		require.ErrorIs(t, c.broken(), io.EOF)
		require.Equal(t, want, got)
	})
}

func encoded(t *testing.T, msg jsonrpc.Message) []byte {
	raw, err := jsonrpc.EncodeMessage(msg)
	require.NoError(t, err)
	return raw
}

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
		text, err := answer(&result, fuzzShower(t))
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

// Whatever a server says of a resource, a prompt or its lists of them, it is a text that
// can be stored and has an end, or a failure that says why.
func FuzzExtras(f *testing.F) {
	for _, result := range []string{
		`{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:c","blob":"eA=="},null]}`, `{"contents":[]}`, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?"}}}}`,
		`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"\u0000"}},null,{"role":"x","content":{"type":"image","data":"eA==","mimeType":"a/b"}}]}`, `{"messages":[{"role":"user"}]}`,
		`{"resources":[{"uri":"a:b","name":"n\nm","size":-1},null],"nextCursor":"\u0000"}`, `{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n"},null]}`,
		`{"prompts":[{"name":"p","arguments":[null,{"name":"a","required":true},{"name":"b"}],"description":"` + strings.Repeat("d", 1000) + `"},null]}`,
	} {
		f.Add([]byte(result))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sound := func(text string) {
			require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\x00"), "%q", text)
		}
		told := func(text string, err error) {
			if err != nil {
				text = err.Error()
			}
			require.NotEmpty(t, text)
			sound(text)
		}
		if r := new(sdk.ReadResourceResult); json.Unmarshal(data, r) == nil {
			told(resource(r, fuzzShower(t)))
		}
		if r := new(sdk.GetPromptResult); json.Unmarshal(data, r) == nil {
			told(prompt(r, fuzzShower(t)))
		}
		page, templates := new(sdk.ListResourcesResult), new(sdk.ListResourceTemplatesResult)
		if json.Unmarshal(data, page) == nil && json.Unmarshal(data, templates) == nil {
			text := listing(page, templates)
			told(text, nil)
			require.Less(t, len(text), maxListing+len(data)*8+200)
		}
		if r := new(sdk.ListPromptsResult); json.Unmarshal(data, r) == nil {
			sound(clean(catalog(r.Prompts)))
		}
	})
}

// Whatever a refusal over HTTP says, what is passed on of it is short and holds no secret.
func FuzzRefusal(f *testing.F) {
	for _, body := range []string{
		"who is Bearer s3cret-token?\n", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"s3cret-token"}}`, `{"error":"invalid_token"}`, "<html>", "\x00\xff", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, `[]`,
	} {
		f.Add(401, []byte(body), "text/plain")
	}
	s := NewHTTP("tickets", "https://example.com", &Options{Headers: map[string]string{"Authorization": "Bearer s3cret-token"}})
	f.Fuzz(func(t *testing.T, status int, body []byte, kind string) {
		attempt := &attempt{}
		resp := &http.Response{StatusCode: status, Status: "Refused", Body: io.NopCloser(bytes.NewReader(body)), Header: http.Header{"Content-Type": {kind}}}
		refused(s, attempt, resp, kind)
		require.Equal(t, status, attempt.status())
		text := attempt.said()
		require.NotContains(t, text, "s3cret-token")
		require.LessOrEqual(t, len(text), maxShown+20)
		require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\x00"), "%q", text)
		left, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, body[:min(len(body), maxErrorBody)], left, "the SDK reads the same")
	})
}

// Whatever a server asks and people answer, it is a question that can be asked or a fault,
// and the server is told what it has asked for, or the person what does not fit.
func FuzzElicit(f *testing.F) {
	for _, asked := range []string{
		`{"message":"Pay?","requestedSchema":{"type":"object","properties":{"pay":{"type":"boolean","default":true},"n":{"type":"integer","enum":[1,2]}},"required":["pay"]}}`,
		`{"requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":[` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `]}}}}}`,
		`{"mode":"url","message":"?","url":"https://example.com/\u0000"}`, `{"mode":"url","url":"javascript:alert(1)"}`, `{"mode":"form","requestedSchema":{"type":"object","properties":{}}}`,
		`{"requestedSchema":{"type":"object","properties":{"a":{"type":"string","$Ref":"#/properties/a"}}}}`, `{"requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x"]}}}}}`, `null`,
	} {
		for _, answer := range []string{`{"pay":false}`, `done`, `null`, `"x"`, `["x"]`, `{"a":null}`, `{"n":1e999999999}`, ``} {
			f.Add([]byte(asked), answer, false)
		}
	}
	s := NewHTTP("tickets", "https://example.com", &Options{Headers: map[string]string{"Authorization": "Bearer s3cret-token"}})
	f.Fuzz(func(t *testing.T, asked []byte, answer string, declined bool) {
		var p *sdk.ElicitParams
		if json.Unmarshal(asked, &p) != nil {
			return // the SDK refuses it
		}
		w, err := s.wantOf("a", p)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		q := w.question("tickets", "")
		if err := q.Check(); err != nil {
			require.ErrorIs(t, err, agent.CodeTooLarge)
		}
		require.NotContains(t, q.Text+string(q.Schema), "s3cret-token")
		raw, err := json.Marshal(w)
		require.NoError(t, err)
		var kept want
		require.NoError(t, json.Unmarshal(raw, &kept))
		require.Equal(t, w.digest(), kept.digest())
		for _, a := range []agent.ToolAnswer{{Text: answer, Declined: declined}, {Text: answer, Data: json.RawMessage(answer), Declined: declined}} {
			if len(a.Data) > 0 && !json.Valid(a.Data) {
				continue
			}
			result, wrong := kept.answered(a)
			if wrong != "" {
				require.NoError(t, kept.question("tickets", clean(wrong)).Check())
				continue
			}
			require.Contains(t, []string{actAccept, actDecline, actCancel}, result.Action)
			require.True(t, result.Content == nil || result.Action == actAccept && w.Schema != nil)
			_, err := json.Marshal(result)
			require.NoError(t, err)
			a.Expired = true
			_, wrong = kept.answered(a)
			require.Empty(t, wrong, "nobody is there to be asked again")
		}
	})
}

// fuzzShower shows media to nobody.
func fuzzShower(t *testing.T) shower {
	call, _ := testsuite.NewCall(tool.Call{})
	return new(Server).shower(t.Context(), call)
}
