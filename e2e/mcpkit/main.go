package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mcpkit URL")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// told is what the kit tells besides the URL.
type told struct {
	Name      string `json:"name"` // of the scenario
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
	Client string `json:"client_id"`
	Secret string `json:"client_secret"`
	Issuer string `json:"issuer"`
	Key    string `json:"private_key_pem"`
	JWT    string `json:"valid_jwt"`
	// For a company's identity provider.
	IDToken  string `json:"idp_id_token"`
	IDClient string `json:"idp_client_id"`
	IDURL    string `json:"idp_token_endpoint"`
}

func run(url string) error {
	var kit told
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &kit); err != nil {
			return err
		}
	}
	kit.Name = os.Getenv("MCP_CONFORMANCE_SCENARIO")
	files, err := os.MkdirTemp("", "mcpkit")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	options := kit.options(url)
	if err := kit.prove(options.OAuth, files); err != nil {
		return err
	}
	server := mcp.NewHTTP("kit", url, options)
	defer server.Close()
	ctx := tool.WithCaller(context.Background(), "kit", "kit")
	specs, err := server.List(ctx)
	if err == nil && len(specs) == 1 && specs[0].Name == "kit__sign_in" {
		if err = call(ctx, server, kit.calls(specs)[0]); err == nil {
			specs, err = server.List(ctx)
		}
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range kit.calls(specs) {
		if err := call(ctx, server, c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Tool, err))
		}
	}
	return errors.Join(errs...)
}

func (k told) options(url string) *mcp.Options {
	o := &mcp.Options{Resources: true}
	if strings.HasPrefix(k.Name, "auth/") {
		o.OAuth = &mcp.OAuth{Client: k.Client, Secret: k.Secret, Issuer: k.Issuer}
	}
	switch {
	case o.OAuth == nil:
	case strings.HasPrefix(k.Name, "auth/client-credentials"):
		o.OAuth.Grant = mcp.GrantClient
		fallthrough
	case (k.Secret != "" || k.JWT != "") && k.Issuer == "":
		o.OAuth.Issuer = issuer(url)
	case k.Client == "":
		o.OAuth.Client = "https://conformance-test.local/client-metadata.json"
	}
	switch {
	case strings.HasPrefix(k.Name, "elicitation-"):
		o.Elicit = mcp.ElicitReplay
	case os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION") >= "2026-07-28":
		o.Elicit = mcp.ElicitRounds
	}
	return o
}

// prove puts the kit's key or token into a file, as a platform does.
func (k told) prove(o *mcp.OAuth, folder string) error {
	if o == nil {
		return nil
	}
	if k.Key != "" {
		o.KeyFile = filepath.Join(folder, "key.pem")
		return os.WriteFile(o.KeyFile, []byte(k.Key), 0o600)
	}
	if k.IDToken != "" {
		o.Exchange = &mcp.Exchange{URL: k.IDURL, Client: k.IDClient}
	}
	if token := cmp.Or(k.JWT, k.IDToken); token != "" {
		o.Grant, o.AssertionFile = mcp.GrantAssertion, filepath.Join(folder, "token")
		return os.WriteFile(o.AssertionFile, []byte(token), 0o600)
	}
	return nil
}

// calls returns the calls that the kit names, or one of each tool.
func (k told) calls(specs []agent.ToolSpec) (calls []tool.Call) {
	for i, c := range k.ToolCalls {
		calls = append(calls, tool.Call{ID: fmt.Sprint(i), Session: "kit", Run: "kit", Tool: "kit__" + c.Name, Arguments: c.Arguments})
	}
	if calls != nil {
		return calls
	}
	for i, spec := range specs {
		calls = append(calls, tool.Call{ID: fmt.Sprint(i), Session: "kit", Run: "kit", Tool: spec.Name, Arguments: arguments(spec.Name, specs)})
	}
	return calls
}

// arguments returns the arguments for one of the kit's tools.
func arguments(name string, specs []agent.ToolSpec) json.RawMessage {
	switch strings.TrimPrefix(name, "kit__") {
	case "add_numbers":
		return json.RawMessage(`{"a":5,"b":3}`)
	case "json_schema_echo":
		at := slices.IndexFunc(specs, func(s agent.ToolSpec) bool { return s.Name == "kit__json_schema_2020_12_tool" })
		if at < 0 {
			return json.RawMessage(`{}`)
		}
		raw, _ := json.Marshal(map[string]json.RawMessage{"schema": specs[at].Input}) // it was decoded from JSON
		return raw
	case "read_resource":
		return json.RawMessage(`{"uri":"file:///path/to/file%20name.txt"}`)
	case "get_prompt":
		return json.RawMessage(`{"name":"test_prompt"}`)
	}
	return json.RawMessage(`{}`)
}

// call makes a call, and makes it again with each answer, as a run does.
func call(ctx context.Context, server *mcp.Server, c tool.Call) error {
	var answers []agent.ToolAnswer
	for {
		hooks := &toolcall.Hooks{Answers: answers}
		text, err := server.Call(ctx, c.With(hooks))
		if !errors.Is(err, tool.ErrAsked) {
			fmt.Printf("%s: %s\n", c.Tool, text)
			return err
		}
		a := answer(hooks.Question)
		a.State = hooks.Question.State
		answers = append(answers, a)
	}
}

// issuer returns the authorization server. Whoever gives a client a secret knows it.
func issuer(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	resp, err := http.Get(u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + u.Path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var meta struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&meta); err != nil || len(meta.Servers) == 0 {
		return ""
	}
	return meta.Servers[0]
}

// signIn opens the page of a question, and returns the address where the browser ends.
// The kit lets everybody in.
func signIn(q *agent.ToolQuestion) string {
	_, rest, _ := strings.Cut(q.Text, "sign in: ")
	page, _, _ := strings.Cut(rest, "\n")
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page)
	if err != nil {
		return err.Error()
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}

// answer returns the answer of a person who accepts all that a form proposes.
func answer(q *agent.ToolQuestion) agent.ToolAnswer {
	if strings.Contains(q.Text, "sign in: ") {
		return agent.ToolAnswer{Text: signIn(q)}
	}
	if len(q.Choices) > 0 {
		return agent.ToolAnswer{Choice: new(int)}
	}
	var form struct {
		Properties map[string]struct {
			Type    string          `json:"type"`
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(q.Schema, &form) // tool/mcp has read the schema before
	data := map[string]json.RawMessage{}
	for name, field := range form.Properties {
		switch {
		case len(field.Default) > 0:
			data[name] = field.Default
		case field.Type == "boolean":
			data[name] = json.RawMessage("true")
		}
	}
	raw, _ := json.Marshal(data) // it was decoded from JSON
	return agent.ToolAnswer{Data: raw}
}
