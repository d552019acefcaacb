package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server may list.
const (
	maxServerName  = 32
	maxToolName    = 64 // of a full name; agent.CheckTool has the same bound
	maxTools       = 1000
	maxPages       = 200
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
	maxShown       = 300 // bytes of somebody else's text in a message or a log
	maxProgress    = 300
	maxAsked       = 5        // questions of a server during one call
	maxListing     = 64 << 10 // bytes of a list of resources
)

// List asks the server for its tools, on all pages. A server that wants a person to sign
// in first has only the tool of [SignIn].
func (s *Server) List(ctx context.Context) (specs []agent.ToolSpec, err error) {
	who := owner{}
	// A person may see tools that others do not.
	if s.people() {
		who = s.ownerFor(tool.CallerOf(ctx))
	}
	err = s.with(ctx, who, func(l *link) error {
		if specs, _, err = s.list(ctx, l); err == nil {
			words := cut(s.said(l.session.InitializeResult().Instructions), maxDescription)
			s.mu.Lock()
			s.words = words
			s.mu.Unlock()
		}
		return err
	})
	var asks *signIn
	if errors.As(err, &asks) {
		specs, err = []agent.ToolSpec{s.signInSpec()}, nil
	}
	if err == nil {
		s.recordTools(ctx, specs)
	}
	return specs, err
}

// list returns the server's tools, and the server's own names by full name.
func (s *Server) list(ctx context.Context, l *link) ([]agent.ToolSpec, map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.startTimeout(), errListTime)
	defer cancel()
	var prompts []*sdk.Prompt
	// All pages under one limit of time: a server could list slowly for ever.
	tools, t, err := request(ctx, s, func(ctx context.Context) ([]*sdk.Tool, error) { return pages(ctx, l.session) })
	if e := answered(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound && s.opts.Resources {
		err = nil // it has only resources or prompts
	}
	if err == nil && s.has(l, toolPrompt) {
		prompts, t, err = request(ctx, s, func(ctx context.Context) ([]*sdk.Prompt, error) { return promptPages(ctx, l.session) })
	}
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errListTime):
		return nil, nil, fmt.Errorf("the MCP server %s did not list its tools within %s; raise start_timeout if it needs longer", s.name, s.opts.startTimeout())
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("listing the tools of the MCP server %s: %w", s.name, context.Cause(ctx))
	default:
		return nil, nil, s.trouble(l, t, err, "while it listed its tools")
	}
	specs, names := s.specs(tools)
	for _, spec := range s.extraSpecs(l, prompts) {
		if _, taken := names[spec.Name]; !taken {
			specs = append(specs, spec)
		}
	}
	l.mu.Lock()
	l.names = names
	l.mu.Unlock()
	return specs, names, nil
}

var errListTime = errors.New("the time to list is up")

// pages collects what the server lists, within bounds: a server could list forever.
func pages(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var tools []*sdk.Tool
	params, size := &sdk.ListToolsParams{}, 0
	for range maxPages {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if size += lean(t); size > maxMessage {
				return nil, fmt.Errorf("its list of tools has more than %d bytes", maxMessage)
			}
		}
		if tools = append(tools, page.Tools...); len(tools) > maxTools {
			return nil, fmt.Errorf("it lists more than %d tools", maxTools)
		}
		if page.NextCursor == "" {
			return tools, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("it lists more than %d pages of tools", maxPages)
}

// lean drops the parts of a tool that nobody reads, and returns its size in bytes. It
// keeps the schema as JSON, which takes much less memory than decoded values.
func lean(t *sdk.Tool) int {
	if t == nil {
		return 0
	}
	if raw, err := json.Marshal(t.InputSchema); err == nil && t.InputSchema != nil {
		t.InputSchema = json.RawMessage(raw)
	}
	// No model and no rule reads them.
	t.OutputSchema, t.Meta, t.Icons = nil, nil, nil
	return sizeOf(t)
}

func sizeOf(v any) int {
	raw, _ := json.Marshal(v) // out of JSON
	return len(raw)
}

// specs translates tools, and returns the server's own name of each full name.
func (s *Server) specs(tools []*sdk.Tool) ([]agent.ToolSpec, map[string]string) {
	tools = slices.DeleteFunc(tools, func(t *sdk.Tool) bool { return t == nil }) // a server may list null
	names := map[string]string{}
	full := make([]string, len(tools))
	// Names that stay as they are come first, so that a changed name never takes one of
	// them.
	for _, changed := range []bool{false, true} {
		for i, t := range tools {
			name := s.fullName(t.Name)
			if (name != s.name+tool.Separator+t.Name) != changed {
				continue
			}
			_, twice := names[name]
			switch {
			case agent.CheckTool(name) != nil || t.Name == "":
				s.leftOut("no model may call it by its name", "tool", cut(t.Name, maxShown))
			case twice:
				s.leftOut("another one has its name", "tool", cut(t.Name, maxShown), "name", name)
			default:
				names[name], full[i] = t.Name, name
			}
		}
	}
	var specs []agent.ToolSpec
	for i, t := range tools {
		if full[i] == "" {
			continue
		}
		spec, err := s.spec(full[i], t)
		if err != nil {
			delete(names, full[i])
			s.leftOut(err.Error(), "tool", cut(t.Name, maxShown))
			continue
		}
		if full[i] != s.name+tool.Separator+t.Name && s.logLimiter.allows() {
			s.log.Info("MCP tool renamed", "tool", cut(t.Name, maxShown), "name", full[i])
		}
		specs = append(specs, spec)
	}
	return specs, names
}

// leftOut logs why a tool is left out. The logLimiter limits it: a server may list a thousand
// such tools at each call.
func (s *Server) leftOut(why string, about ...any) {
	if s.logLimiter.allows() {
		s.log.Warn("MCP tool left out: "+why, about...)
	}
}

func (s *Server) spec(name string, t *sdk.Tool) (agent.ToolSpec, error) {
	input, err := json.Marshal(t.InputSchema)
	if err != nil {
		return agent.ToolSpec{}, fmt.Errorf("its schema can't be read: %w", err)
	}
	var kind struct {
		Type any `json:"type"`
	}
	switch err := json.Unmarshal(input, &kind); {
	case t.InputSchema == nil || err != nil || kind.Type != "object":
		return agent.ToolSpec{}, errors.New("its schema is not that of an object")
	case len(input) > maxSchema:
		return agent.ToolSpec{}, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	case rawjson.Depth(input) > rawjson.MaxWrittenDepth:
		return agent.ToolSpec{}, fmt.Errorf("its schema is nested more than %d levels deep", rawjson.MaxWrittenDepth)
	}
	title := t.Title
	if title == "" && t.Annotations != nil {
		title = t.Annotations.Title
	}
	return agent.ToolSpec{
		Name: name, Description: cut(s.said(titledText(title, t.Name, t.Description)), maxDescription), Input: input, Timeout: agent.Duration(s.opts.CallTimeout),
		ReadOnly: s.opts.TrustHints && t.Annotations != nil && t.Annotations.ReadOnlyHint,
	}, nil
}

// titledText puts the title before a description, if it adds something.
func titledText(title, name, about string) string {
	if title == "" || title == name || strings.HasPrefix(about, title) {
		return about
	}
	return strings.TrimSuffix(title+": "+about, ": ")
}

// fullName returns the name that models call a tool by. Characters that no provider
// accepts become '_'. A name that is too long ends in a hash of itself.
func (s *Server) fullName(name string) string {
	full := s.name + tool.Separator + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if len(full) <= maxToolName {
		return full
	}
	// The hash keeps two long names with the same beginning apart.
	sum := sha256.Sum256([]byte(name))
	hash := "_" + hex.EncodeToString(sum[:4])
	return full[:maxToolName-len(hash)] + hash
}

// own returns the server's own name of a tool, with own set. If the server has no such
// tool, own is false and name is one of ours. A run may know a tool that the server has
// dropped since, or that another process listed.
func (s *Server) own(ctx context.Context, l *link, full string) (name string, own bool, err error) {
	select {
	// One caller lists; the others wait and use its result.
	case l.listing <- struct{}{}:
		defer func() { <-l.listing }()
	case <-ctx.Done():
		return "", false, fmt.Errorf("waiting for the tools of the MCP server %s: %w", s.name, context.Cause(ctx))
	}
	extra := strings.TrimPrefix(full, s.name+tool.Separator)
	names := l.known()
	for asked := false; ; asked = true {
		if names == nil || asked {
			if _, names, err = s.list(ctx, l); err != nil {
				return "", false, err
			}
			asked = true
		}
		if name, own := names[full]; own {
			return name, true, nil
		}
		// The server's own tools come first: ours never hide one of them.
		switch {
		case s.has(l, extra):
			return extra, false, nil
		case asked && extra == toolSignIn && s.people():
			return extra, false, nil
		case asked:
			return "", false, tool.Refuse("the MCP server %s does not have the tool %s any more; nothing was done", s.name, full)
		}
	}
}

// known returns the server's own names by full name. It is nil before the first list, and
// after the server said that its list changed.
func (l *link) known() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}
