package agentsfile

import (
	"slices"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/web"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// readTools are the tools of a worker that only read.
var readTools = []string{workspace.ReadTool, workspace.ListTool, workspace.GrepTool, web.FetchTool}

// checkCalls reports tools that the runtime may not call by itself, for a check or a compaction. A
// worker refuses them too, and knows no line of the file. It needs the approvals of all tools.
func (f *File) checkCalls(c *checker) {
	for _, def := range f.Agents {
		e := f.lines[def.Name]
		for _, p := range agent.CheckPoints() {
			for i, k := range def.ChecksAt(p) {
				if !slices.Contains(workerTools, k.ToolName()) { // a server's tools are known when they are called
					continue
				}
				err := k.MayCall(p, f.toolSpec(k.ToolName()))
				if err == nil && p == agent.PointVerify && k.Kind() == agent.CheckByTool && len(k.Arguments) == 0 {
					err = agent.Errorf(agent.CodeInvalidInput, "the tool %s can't take an answer as its arguments; give the check arguments", k.Tool)
				}
				if err != nil {
					c.add(agent.CodeOf(err), e.at(p.Path(i)), "%s.%s: %w", e.path, p.Path(i), err)
				}
			}
		}
		if name := def.Compaction.Tool; name != "" {
			if err := f.checkCompactor(name); err != nil {
				c.add(agent.CodeOf(err), e.at("compaction.tool"), "%s.compaction.tool: %w", e.path, err)
			}
		}
	}
}

// checkCompactor refuses a tool that can't write summaries.
func (f *File) checkCompactor(name string) error {
	const write = "a tool that writes summaries is a Go function in a worker of your own; in a file, leave compaction.strategy out, or use another one than custom"
	if !slices.Contains(workerTools, name) {
		return agent.Errorf(agent.CodeUnknownTool, "there is no tool %s: %s", quote(name), write)
	}
	if t := f.toolSpec(name); !t.ReadOnly || t.Approval != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the runtime calls it without asking anyone, and it may change something: %s", write)
	}
	return nil
}

// toolSpec returns what decides whether the runtime may call a tool of the worker.
func (f *File) toolSpec(name string) agent.ToolSpec {
	all := activities.Activities{Approvals: f.asks}
	return all.ToolSpec(agent.ToolSpec{Name: name, ReadOnly: slices.Contains(readTools, name)})
}
