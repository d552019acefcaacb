package testsuite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// A model saves artifacts if its agent names the tool, also without a server.
func TestAModelSavesArtifacts(t *testing.T) {
	saves := func(content string) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.SaveArtifactTool, Arguments: map[string]any{"name": "report.md", "content": content}}}}
	}
	writer := testsuite.NewScript(saves("# One"), saves("# Two"), testsuite.Reply{Text: "Written."})
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "writer", Model: "m", Tools: []string{agent.SaveArtifactTool}}}}, Model: writer,
	})
	out := s.Start("writer", "Report.", nil).Completed()
	require.Len(t, out.Artifacts, 1)
	a := out.Artifacts[0]
	require.Equal(t, []any{"report.md", 2, "writer", out.Session, "text/markdown", 5, "t2.1"}, []any{a.Name, a.Version, a.Agent, a.Session, a.MediaType, a.Size, a.Call})
	last := writer.Requests()[2].Messages
	require.Equal(t, "The text has 5 bytes.\n\n[saved: report.md version 2]", last[len(last)-1].Parts[0].Result.Text)
}

// Without the tool in its list, no agent has it.
func TestAnAgentHasArtifactsIfItSaysSo(t *testing.T) {
	script := testsuite.NewScript(testsuite.Reply{Text: "Hello."})
	s := testsuite.New(t, &testsuite.Options{Worker: &worker.Options{Agents: []agent.Definition{{Name: "writer", Model: "m"}}}, Model: script})
	s.Start("writer", "Hello.", nil).Completed()
	require.Empty(t, script.Requests()[0].Tools)
}
