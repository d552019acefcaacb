package activities

import (
	"context"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// List asks tool sources, such as MCP servers, for their tools, once a run.
var List = durable.Activity[loop.ListStep, ListResult]{Name: "fermata.list"}

// ListResult is recorded with the Spec.
type ListResult struct {
	Tools []agent.ToolSpec `json:"tools"`
}

// Bounds of what a source, which is not ours, may add to a run.
const (
	maxListed      = 256       // tools of one source
	maxListedBytes = 256 << 10 // of their schemas and descriptions
)

func (d *Deeds) list(ctx context.Context, in loop.ListStep) (ListResult, error) {
	var out ListResult
	defer beat(ctx)()
	for _, name := range in.Sources {
		source, ok := d.Sources[name]
		if !ok {
			return out, agent.Errorf(agent.UnknownTool, "tool source %q is not in this worker's build", name)
		}
		tools, err := source.List(ctx)
		if err != nil {
			e := agent.Errorf(agent.ToolFailed, "listing the tools of %s: %w", name, err)
			e.Retryable = true
			return out, e
		}
		if err := boundedTools(name, tools); err != nil {
			return out, err
		}
		// In the order of names: a source may list in any order, the model's cache
		// of the prompt wants one.
		slices.SortFunc(tools, func(a, b agent.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
		out.Tools = append(out.Tools, tools...)
	}
	return out, nil
}

func boundedTools(source string, tools []agent.ToolSpec) error {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Input)
		if agent.JSONDepth(t.Input) > agent.MaxWrittenDepth {
			return agent.Errorf(agent.TooLarge, "%s lists the tool %s, whose schema is nested more than %d levels deep", source, t.Name, agent.MaxWrittenDepth)
		}
	}
	if len(tools) > maxListed || size > maxListedBytes {
		return agent.Errorf(agent.TooLarge, "%s lists %d tools of %d bytes; at most %d of %d bytes are taken", source, len(tools), size, maxListed, maxListedBytes)
	}
	return nil
}
