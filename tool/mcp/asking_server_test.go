//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Files and settings of the servers that ask.
const (
	effects = "MCP_TEST_EFFECTS" // a file, of which each effect is a line
	old     = "MCP_TEST_OLD"     // set for a server that knows no rounds
)

func effect(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv(effects), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fail(1, err.Error())
	}
	fmt.Fprintf(f, format+"\n", args...)
	f.Close()
}

// What is asked: two forms, one without a field, and a page.
var (
	consent = &sdk.ElicitParams{Mode: "form", Message: "Pay 800 EUR to a new account?", RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"pay":{"type":"boolean","description":"whether to"},"note":{"type":"string","enum":["rent","food"]}},"required":["pay"]}`)}
	account = &sdk.ElicitParams{Mode: "form", Message: "From which account?", RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"account":{"type":"string","minLength":3}},"required":["account"]}`)}
	signIn = &sdk.ElicitParams{Mode: "url", Message: "Sign in at the bank.", URL: "https://bank.example.com/in?state=77", ElicitationID: "e1"}
	sure   = &sdk.ElicitParams{Message: "Really?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
)

// noDiscover makes a server an old one.
func noDiscover(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "server/discover" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method"}
		}
		return next(ctx, method, req)
	}
}

// asker is a server that asks people, in rounds and, where it is old, in the middle of
// its calls.
func asker() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, nil)
	if os.Getenv(old) != "" {
		s.AddReceivingMiddleware(noDiscover)
	}
	add := func(name string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	add("pay", pay)
	add("ask", during(consent, account))
	add("twice", during(sure, sure))
	add("linger", linger)
	// after asks, but lets linger ask first.
	add("after", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if lingers.Load() {
			close(afterBegan)
			<-lingered
		}
		return during(sure)(ctx, req)
	})
	// signed is pay that wants a page opened when it has its first answers.
	add("signed", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if _, err := os.Stat(os.Getenv(effects) + ".signed-in"); err != nil && req.Params.RequestState == "first" {
			return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{signIn})
		}
		return pay(ctx, req)
	})
	add("many", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		requests := sdk.InputRequestMap{}
		for i := range 17 {
			requests[fmt.Sprint(i)] = sure
		}
		return &sdk.CallToolResult{InputRequests: requests}, nil
	})
	add("long", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": sure}, RequestState: strings.Repeat("s", 20_000)}, nil
	})
	add("odd", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		p := &sdk.ElicitParams{Mode: "form", Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"object"}}}`)}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": p}}, nil
	})
	add("page", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if _, err := os.Stat(os.Getenv(effects) + ".signed-in"); err != nil {
			return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{signIn})
		}
		effect("page")
		return text("it is 12 EUR"), nil
	})
	return s
}

// pay asks two things at once and a third one after that, each round in a process of
// its own for all it knows.
func pay(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	told := func(id string) string {
		r, ok := req.Params.InputResponses[id].(*sdk.ElicitResult)
		if !ok {
			return "nothing"
		}
		content, _ := json.Marshal(r.Content)
		return r.Action + string(content)
	}
	switch req.Params.RequestState {
	case "":
		return &sdk.CallToolResult{RequestState: "first", InputRequests: sdk.InputRequestMap{"a-consent": consent, "b-account": account}}, nil
	case "first":
		return &sdk.CallToolResult{RequestState: "second " + told("a-consent") + told("b-account"), InputRequests: sdk.InputRequestMap{"page": signIn}}, nil
	}
	effect("paid with %v", req.Params.Meta["com.github.fermata-agents/idempotency-key"])
	return text(req.Params.RequestState + " " + told("page")), nil
}

// What linger and after tell one another, where one process is at both.
var (
	lingers              atomic.Bool
	afterBegan, lingered = make(chan struct{}), make(chan struct{})
)

// linger does not end when it is cancelled: it asks once more while after is called.
func linger(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	lingers.Store(true)
	_, _ = req.Session.Elicit(ctx, account)
	<-afterBegan
	if r, err := req.Session.Elicit(context.WithoutCancel(ctx), sure); err == nil {
		effect("linger was told %s", r.Action)
	}
	close(lingered)
	return text("late"), nil
}

// during asks in the middle of its call, as servers did before there were rounds.
func during(questions ...*sdk.ElicitParams) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var said []string
		for _, p := range questions {
			r, err := req.Session.Elicit(ctx, p)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				effect("went on without: %s", err)
				return text("nobody is there: " + err.Error()), nil
			}
			content, _ := json.Marshal(r.Content)
			said = append(said, r.Action+string(content))
		}
		effect("paid with %v", req.Params.Meta["com.github.fermata-agents/idempotency-key"])
		return text(strings.Join(said, " ")), nil
	}
}

// asks serves the asker, over HTTP where there is an address. The newest protocol has
// no sessions there.
func asks() {
	if os.Getenv("MCP_TEST_ADDRESS") != "" {
		serveWeb(asker, &sdk.StreamableHTTPOptions{Stateless: os.Getenv(old) == ""})
	}
	run(asker())
}
