//go:build unix

package mcp_test

import (
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/worker"
	"github.com/stretchr/testify/require"
)

// stage is a whole run's place with MCP servers, whose model follows a script.
func stage(t *testing.T, replies []testsuite.Reply, sources ...tool.Source) (*testsuite.Stage, *testsuite.Script) {
	t.Helper()
	script := testsuite.NewScript(replies...)
	var tools []string
	for _, s := range sources {
		tools = append(tools, "mcp:"+s.Name())
	}
	return testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Sources: sources, Agents: []agent.Definition{{Name: "clerk", Model: "m", Instructions: "Be brief.", Tools: tools}}},
		Model:  script,
	}), script
}

// A call that its server dies in is of unknown outcome, for the model and for people.
func TestRunWhoseServerDies(t *testing.T) {
	s, _ := stage(t, []testsuite.Reply{{Match: "begin", Calls: []testsuite.Call{{Tool: "tickets__die"}}}, {Match: "Unknown outcome", Text: "done"}}, setup(t, "usual", mcp.Options{}))
	r := s.Start("clerk", "begin", nil)
	r.Completed()
	result := r.Transcript()[2].Parts[0].Result
	require.Equal(t, agent.CallUnknown, result.Status)
	require.Equal(t, "Unknown outcome: the MCP server tickets ended during the call (exit status 3); the call may or may not have had its effect; its last words on stderr: the disk is gone / token", result.Text)
}
