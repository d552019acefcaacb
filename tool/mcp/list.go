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
	"github.com/fermata-agents/fermata/tool"
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
)

// List asks the server for its tools, all pages of them.
func (s *Server) List(ctx context.Context) ([]agent.ToolSpec, error) {
	l, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	return s.list(ctx, l)
}

func (s *Server) list(ctx context.Context, l *link) ([]agent.ToolSpec, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.startTimeout(), errListTime)
	defer cancel()
	tools, err := pages(ctx, l.session)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errListTime):
		return nil, fmt.Errorf("the MCP server %s did not list its tools within %s", s.name, s.opts.startTimeout())
	case ctx.Err() != nil:
		return nil, fmt.Errorf("listing the tools of the MCP server %s: %w", s.name, context.Cause(ctx))
	default:
		return nil, s.trouble(l, err, "while it listed its tools")
	}
	specs, names := s.specs(tools)
	l.mu.Lock()
	l.names = names
	l.mu.Unlock()
	return specs, nil
}

var errListTime = errors.New("the time to list is up")

// pages collects what the server lists, up to bounds: it is free to go on for ever.
func pages(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var tools []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
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

// specs translates tools and says what each full name is to the server.
func (s *Server) specs(tools []*sdk.Tool) ([]agent.ToolSpec, map[string]string) {
	tools = slices.DeleteFunc(tools, func(t *sdk.Tool) bool { return t == nil }) // a server may list null
	names := map[string]string{}
	full := make([]string, len(tools))
	// Names that stay as they are come first: none is taken from them.
	for _, changed := range []bool{false, true} {
		for i, t := range tools {
			name := s.fullName(t.Name)
			if (name != s.name+tool.Separator+t.Name) != changed {
				continue
			}
			_, twice := names[name]
			switch {
			case agent.CheckTool(name) != nil || t.Name == "":
				s.log.Warn("MCP tool left out: no model may call it by its name", "tool", cut(t.Name, maxShown))
			case twice:
				s.log.Warn("MCP tool left out: another one has its name", "tool", cut(t.Name, maxShown), "name", name)
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
			s.log.Warn("MCP tool left out: "+err.Error(), "tool", t.Name)
			continue
		}
		if full[i] != s.name+tool.Separator+t.Name {
			s.log.Info("MCP tool renamed", "tool", cut(t.Name, maxShown), "name", full[i])
		}
		specs = append(specs, spec)
	}
	return specs, names
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
	}
	return agent.ToolSpec{
		Name: name, Description: clean(cut(t.Description, maxDescription)), Input: input, Timeout: agent.Duration(s.opts.CallTimeout),
		// A claim of the server's: see the package comment.
		ReadOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint,
	}, nil
}

// fullName is what models call a tool by. Characters that no provider takes
// become '_'; a name that is too long ends in a hash of itself.
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
	sum := sha256.Sum256([]byte(name))
	hash := "_" + hex.EncodeToString(sum[:4])
	return full[:maxToolName-len(hash)] + hash
}

// own is what the server calls a tool by. A tool that it does not list any more
// is called all the same: the run that wants it has it in its Spec.
func (s *Server) own(ctx context.Context, l *link, full string) (string, error) {
	select {
	case l.listing <- struct{}{}: // one asks, the others wait for what it learns
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the tools of the MCP server %s: %w", s.name, context.Cause(ctx))
	}
	names := l.known()
	if names == nil {
		_, err := s.list(ctx, l)
		if names = l.known(); err != nil {
			<-l.listing
			return "", err
		}
	}
	<-l.listing
	if name, ok := names[full]; ok {
		return name, nil
	}
	return strings.TrimPrefix(full, s.name+tool.Separator), nil
}

// known are the server's own names by full names; nil before it has listed.
func (l *link) known() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}
