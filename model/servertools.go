package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// ServerTool is a tool that a provider runs itself, during a model call. A ceiling of an agent
// applies to it ([Request.DeniedServerTools]); no rule and no approval does.
type ServerTool string

// The server tools.
const (
	WebSearch     ServerTool = "web_search"
	CodeExecution ServerTool = "code_execution"
)

// ServerTools returns all server tools.
func ServerTools() []ServerTool { return []ServerTool{WebSearch, CodeExecution} }

// Serves returns those of tools that the request may use. Adapters call it with the tools that they
// were set up with.
func (r *Request) Serves(tools []ServerTool) []ServerTool {
	return slices.DeleteFunc(slices.Clone(tools), func(t ServerTool) bool { return slices.Contains(r.DeniedServerTools, t) })
}

// CheckServerTools returns an [agent.CodeInvalidInput] error for an unknown server tool,
// or for one that is listed twice. Adapters call it.
func CheckServerTools(tools []ServerTool) error {
	for i, t := range tools {
		switch {
		case !slices.Contains(ServerTools(), t):
			return refused("server_tools", "may have %s and %s, not %q", WebSearch, CodeExecution, string(t))
		case slices.Contains(tools[:i], t):
			return refused("server_tools", "names %s twice", t)
		}
	}
	return nil
}

// maxStep is the most that people are shown of a step, in bytes.
const maxStep = 300

// ServerToolPart returns the part for a step of a provider's own tool. what describes it
// for people, and raw is what the provider wrote. Adapters call it.
func ServerToolPart(what string, raw json.RawMessage) agent.Part {
	return agent.Part{Type: agent.PartServerTool, Text: excerpt.Of(strings.TrimSpace(what), maxStep, len(what)), Raw: raw}
}
