package workspace_test

import (
	"testing"

	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool/workspace"
)

func TestConformance(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "notes.md", "tea\nbread\n")
	calls := map[string]conformance.ToolOptions{
		workspace.ReadTool:  {Arguments: `{"path":"notes.md"}`},
		workspace.ListTool:  {Arguments: `{"path":"."}`},
		workspace.GrepTool:  {Arguments: `{"pattern":"te+a"}`},
		workspace.WriteTool: {Arguments: `{"path":"other.md","content":"tea\n"}`},
		workspace.ShellTool: {Arguments: `{"command":"echo tea"}`, Slow: `{"command":"sleep 60"}`},
	}
	for _, tl := range b.Tools() {
		o, ok := calls[tl.Spec().Name]
		if !ok {
			t.Errorf("no call of %s", tl.Spec().Name)
		}
		o.Secrets = []string{"s3cret"}
		t.Run(tl.Spec().Name, func(t *testing.T) { conformance.Tool(t, tl, &o) })
	}
}
