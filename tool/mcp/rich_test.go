//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// rich is the usual server with resources and prompts besides.
func rich() *sdk.Server {
	s := usual()
	read := func(contents ...*sdk.ResourceContents) sdk.ResourceHandler {
		return func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: contents}, nil
		}
	}
	s.AddResource(&sdk.Resource{URI: "file:///notes.txt", Name: "notes", Title: "Notes", MIMEType: "text/plain", Size: 5, Description: "what was\nnoted"},
		read(&sdk.ResourceContents{URI: "file:///notes.txt", Text: "a note"}))
	s.AddResource(&sdk.Resource{URI: "file:///photo.png", Name: "photo", MIMEType: "image/png"},
		read(&sdk.ResourceContents{URI: "file:///photo.png", MIMEType: "image/png", Blob: []byte("12345")}))
	s.AddResource(&sdk.Resource{URI: "file:///void", Name: "void"}, read([]*sdk.ResourceContents{}...))
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "ticket:///{id}", Name: "ticket", Title: "A ticket"},
		func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, Text: "ticket " + strings.TrimPrefix(req.Params.URI, "ticket:///")}}}, nil
		})
	s.AddPrompt(&sdk.Prompt{Name: "review", Title: "Code review", Description: "Reviews a ticket.", Arguments: []*sdk.PromptArgument{{Name: "ticket", Required: true}, {Name: "tone"}}},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: fmt.Sprintf("Review ticket %s.", req.Params.Arguments["ticket"])}},
				{Role: "assistant", Content: &sdk.ImageContent{MIMEType: "image/png", Data: []byte("1")}},
			}}, nil
		})
	return s
}

// bare has resources and prompts and no tools.
func bare() {
	s := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, &sdk.ServerOptions{PageSize: 1, Capabilities: &sdk.ServerCapabilities{}})
	for _, name := range []string{"a", "b"} {
		s.AddResource(&sdk.Resource{URI: "x:" + name, Name: name}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "x:" + name, Text: name}}}, nil
		})
	}
	run(s)
}

// web serves the usual server at the address that it is given, and says which
// process it is by its tool pid.
func web() { serveWeb(usual, nil) }

func serveWeb(which func() *sdk.Server, o *sdk.StreamableHTTPOptions) {
	listener, err := net.Listen("tcp", os.Getenv("MCP_TEST_ADDRESS"))
	if err != nil {
		fail(1, err.Error())
	}
	fmt.Println(listener.Addr())
	fail(1, fmt.Sprint(http.Serve(listener, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return which() }, o))))
}

// changing has a tool that takes itself away and brings another.
func changing() {
	s := listing("stays")
	s.AddTool(&sdk.Tool{Name: "leaves", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.RemoveTools("leaves")
		s.AddTool(&sdk.Tool{Name: "comes", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("I came"), nil
		})
		return text("I leave"), nil
	})
	run(s)
}

// lasting allows its list to be kept for an hour, and lists another tool each time.
func lasting() {
	n := 0
	read(func(line string) {
		n++
		answer(map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
			"tools/list":      fmt.Sprintf(`{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, n),
		})(line)
	})
}

// wanting wants input of a person before it answers, as the newest protocol has it;
// its tool later is busy.
func wanting() {
	read(func(line string) {
		result := `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Which floor?","requestedSchema":{"type":"object"}}}}}`
		if strings.Contains(line, `"name":"later"`) {
			result = `{"resultType":"input_required","requestState":"s","inputRequests":{}}`
		}
		if strings.Contains(line, `"name":"roots"`) {
			result = `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"roots/list","params":{}}}}`
		}
		answer(map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
			"tools/list":      `{"resultType":"complete","tools":[{"name":"ask","inputSchema":{"type":"object"}},{"name":"later","inputSchema":{"type":"object"}},{"name":"roots","inputSchema":{"type":"object"}}]}`,
			"tools/call":      result,
		})(line)
	})
}

// asking asks a person though the client has told that there is none, and says what
// came of that and what the client had told.
func asking() {
	var call, told string
	read(func(line string) {
		var m struct {
			message
			Params struct {
				Name         string          `json:"name"`
				Capabilities json.RawMessage `json:"capabilities"`
			} `json:"params"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal([]byte(line), &m) != nil {
			return
		}
		switch {
		case m.Method == "initialize":
			told = string(m.Params.Capabilities)
		case m.Method == "tools/call":
			call = fmt.Sprint(m.ID)
			if m.Params.Name == "open" {
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32042,"message":"sign in first","data":{"elicitations":[]}}}`+"\n", m.ID)
				return
			}
			fmt.Println(`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Which floor?","requestedSchema":{"type":"object"}}}`)
			return
		case m.ID == "q1":
			words, _ := json.Marshal(fmt.Sprintf("told %s, answered %s", told, m.Result))
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", call, words)
			return
		}
		answer(map[string]string{"initialize": initialized, "tools/list": `{"tools":[{"name":"ask","inputSchema":{"type":"object"}},{"name":"open","inputSchema":{"type":"object"}}]}`})(line)
	})
}
