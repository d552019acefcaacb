package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools that [Options.Resources] adds, without the server's name. If the server has a
// tool with such a name, the server's own tool wins.
const (
	toolResources = "list_resources"
	toolResource  = "read_resource"
	toolPrompt    = "get_prompt"
)

// has reports whether a name is one of our tools, and the server supports what it is for.
func (s *Server) has(l *link, name string) bool {
	caps := l.session.InitializeResult().Capabilities
	if !s.opts.Resources || caps == nil {
		return false
	}
	switch name {
	case toolResources, toolResource:
		return caps.Resources != nil
	case toolPrompt:
		return caps.Prompts != nil
	}
	return false
}

func (s *Server) extraSpecs(l *link, prompts []*sdk.Prompt) []agent.ToolSpec {
	var specs []agent.ToolSpec
	add := func(name, description, properties string) {
		if s.has(l, name) {
			specs = append(specs, agent.ToolSpec{
				Name: s.name + tool.Separator + name, Description: cut(description, maxDescription), ReadOnly: s.opts.TrustHints,
				Input: json.RawMessage(`{"type":"object","properties":` + properties), Timeout: agent.Duration(s.opts.CallTimeout),
			})
		}
	}
	add(toolResources, "Lists the resources of the MCP server "+s.name+", such as files and records, each with its URI for "+s.name+tool.Separator+toolResource+".",
		`{"cursor":{"type":"string","description":"where the list before this one ended; left out for the first"}},"additionalProperties":false}`)
	add(toolResource, "Reads a resource of the MCP server "+s.name+".",
		`{"uri":{"type":"string","description":"the resource's URI"}},"required":["uri"],"additionalProperties":false}`)
	if len(prompts) > 0 {
		add(toolPrompt, "Gets a prompt that the MCP server "+s.name+" has prepared. There are:"+s.said(catalog(prompts)),
			`{"name":{"type":"string","description":"the prompt's name"},"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"its arguments"}},"required":["name"],"additionalProperties":false}`)
	}
	return specs
}

// catalog lists prompts, each with its arguments.
func catalog(prompts []*sdk.Prompt) string {
	var b strings.Builder
	for _, p := range prompts {
		if p == nil {
			continue // a server may list null
		}
		var names []string
		for _, a := range p.Arguments {
			switch {
			case a == nil:
			case a.Required:
				names = append(names, a.Name)
			default:
				names = append(names, a.Name+"?")
			}
		}
		fmt.Fprintf(&b, "\n- %s(%s)", p.Name, strings.Join(names, ", "))
		if about := titledText(p.Title, p.Name, p.Description); about != "" {
			b.WriteString(": " + cut(about, maxShown))
		}
	}
	return b.String()
}

func promptPages(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Prompt, error) {
	var prompts []*sdk.Prompt
	params, size := &sdk.ListPromptsParams{}, 0
	for range maxPages {
		page, err := session.ListPrompts(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Prompts {
			// Counted on the way: one page may already be too large.
			if size += sizeOf(p); size > maxMessage {
				return nil, fmt.Errorf("its list of prompts has more than %d bytes", maxMessage)
			}
		}
		if prompts = append(prompts, page.Prompts...); page.NextCursor == "" || len(prompts) > maxTools {
			return prompts, nil
		}
		params = &sdk.ListPromptsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("it lists more than %d pages of prompts", maxPages)
}

// extra calls one of our own tools.
func (s *Server) extra(ctx context.Context, l *link, c *tool.Call, name string, arguments json.RawMessage) (string, error) {
	var in struct {
		Cursor    string            `json:"cursor"`
		URI       string            `json:"uri"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	// encoding/json reads null as a zero value, so a missing cursor or URI would go
	// unnoticed.
	if fields := map[string]json.RawMessage{}; json.Unmarshal(arguments, &fields) == nil {
		for field, value := range fields {
			if string(value) == "null" {
				return "", tool.Refuse("the argument %s is null", cut(field, maxShown))
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return "", tool.Refuse("the arguments do not fit the tool: %v", err)
	}
	var send func(context.Context) (string, error)
	switch {
	case name == toolResources:
		send = func(ctx context.Context) (string, error) { return listResources(ctx, l.session, in.Cursor) }
	case name == toolResource && in.URI == "":
		return "", tool.Refuse("the argument uri is missing")
	case strings.ContainsFunc(in.URI, unicode.IsControl): // some servers do not survive NUL
		return "", tool.Refuse("the argument uri has a control character, which no URI has")
	case name == toolPrompt && in.Name == "":
		return "", tool.Refuse("the argument name is missing")
	case name == toolResource:
		send = func(ctx context.Context) (string, error) {
			r, err := l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
			return read(r, err, s.shower(ctx, c), resource)
		}
	default:
		send = func(ctx context.Context) (string, error) {
			r, err := l.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: in.Name, Arguments: in.Arguments})
			return read(r, err, s.shower(ctx, c), prompt)
		}
	}
	text, t, err := request(ctx, s, send)
	if fault := (*unreadable)(nil); errors.As(err, &fault) {
		return "", errors.New(s.said(fault.Error()))
	}
	if err != nil {
		return "", s.failure(ctx, l, t, err)
	}
	return s.said(text), nil
}

// unreadable is the error of an answer that arrived but can't be read.
type unreadable struct{ error }

func read[R any](result R, err error, show shower, text func(R, shower) (string, error)) (string, error) {
	if err != nil {
		return "", err
	}
	s, err := text(result, show)
	if err != nil {
		return "", &unreadable{err}
	}
	return s, nil
}

// listResources returns a page of resources as the model reads it. The first page also
// has the templates.
func listResources(ctx context.Context, session *sdk.ClientSession, cursor string) (string, error) {
	page, err := session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
	if err != nil {
		return "", err
	}
	templates := &sdk.ListResourceTemplatesResult{}
	if cursor == "" {
		templates, err = session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{})
		// Servers without templates may lack the method.
		if e := answered(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
			templates, err = &sdk.ListResourceTemplatesResult{}, nil
		}
		if err != nil {
			return "", err
		}
	}
	return listing(page, templates), nil
}

func listing(page *sdk.ListResourcesResult, templates *sdk.ListResourceTemplatesResult) string {
	var b strings.Builder
	line := func(uri, name, kind, description string, size int64) {
		text := uri + " " + name
		if kind != "" {
			text += ", " + kind
		}
		if size > 0 {
			text += fmt.Sprintf(", %d bytes", size)
		}
		if description != "" {
			text += ": " + cut(description, maxShown)
		}
		// One line each: a server's text must not look like another resource.
		b.WriteString(clean(strings.Join(strings.Fields(text), " ")) + "\n")
	}
	for _, r := range page.Resources {
		if r != nil {
			line(r.URI, r.Name, r.MIMEType, titledText(r.Title, r.Name, r.Description), r.Size)
		}
	}
	for _, t := range templates.ResourceTemplates {
		if t != nil {
			line(t.URITemplate, "(a pattern) "+t.Name, t.MIMEType, titledText(t.Title, t.Name, t.Description), 0)
		}
	}
	text := cut(b.String(), maxListing)
	if text == "" {
		text = "(no resources)\n"
	}
	if page.NextCursor != "" {
		text += fmt.Sprintf("There are more: call again with the cursor %q.\n", clean(page.NextCursor))
	}
	return text
}

// resource returns a resource as the model reads it.
func resource(r *sdk.ReadResourceResult, show shower) (string, error) {
	if err := pendingInput(r, r.InputRequests); err != nil {
		return "", err
	}
	var list []sdk.Content
	for _, c := range r.Contents {
		list = append(list, &sdk.EmbeddedResource{Resource: c})
	}
	if text := contents(list, show); text != "" {
		return text, nil
	}
	return "(empty)", nil
}

// prompt returns a prompt as the model reads it.
func prompt(r *sdk.GetPromptResult, show shower) (string, error) {
	if err := pendingInput(r, r.InputRequests); err != nil {
		return "", err
	}
	var b strings.Builder
	if r.Description != "" {
		b.WriteString(clean(r.Description) + "\n")
	}
	for _, m := range r.Messages {
		if m != nil {
			fmt.Fprintf(&b, "%s: %s\n", clean(string(m.Role)), contents([]sdk.Content{m.Content}, show))
		}
	}
	if b.Len() == 0 {
		return "(empty)", nil
	}
	return b.String(), nil
}
