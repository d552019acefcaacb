package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// ServerTool is a tool that a provider carries out itself, within a call of its model. No
// rule, approval or ceiling of an agent sees what it does.
type ServerTool string

// The tools of providers.
const (
	WebSearch     ServerTool = "web_search"
	CodeExecution ServerTool = "code_execution"
)

// CheckServerTools refuses, with [agent.CodeInvalidInput], what is no server tool, and one that
// is named twice. It is for adapters.
func CheckServerTools(tools []ServerTool) error {
	for i, t := range tools {
		switch {
		case t != WebSearch && t != CodeExecution:
			return refused("server_tools", "may have %s and %s, not %q", WebSearch, CodeExecution, string(t))
		case slices.Contains(tools[:i], t):
			return refused("server_tools", "names %s twice", t)
		}
	}
	return nil
}

// maxStep bounds what people are shown of a step, in bytes.
const maxStep = 300

// ServerToolPart makes the part for a step of a provider's own tool: what names it for people, raw is
// what the provider wrote. It is for adapters.
func ServerToolPart(what string, raw json.RawMessage) agent.Part {
	return agent.Part{Type: agent.PartServerTool, Text: excerpt.Of(strings.TrimSpace(what), maxStep, len(what)), Raw: raw}
}
