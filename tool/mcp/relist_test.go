//go:build unix

package mcp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

// A run hears of other tools once, and so does each run.
func TestToolsChangeWithinARun(t *testing.T) {
	r := setup(t, "changing", mcp.Options{Per: mcp.PerWorker})
	for _, run := range []string{"r1", "r2"} {
		specs, err := r.List(tool.WithCaller(t.Context(), "ana", run))
		require.NoError(t, err)
		require.Equal(t, []string{"tickets__leaves", "tickets__stays"}, fullNames(specs))
		_, changed := r.Relist(t.Context(), "ana", run)
		require.False(t, changed)
	}
	r.ok(t, "leaves", "")
	for _, run := range []string{"r1", "r2"} {
		var names []string
		require.Eventually(t, func() bool { // the notice may come behind the answer
			specs, changed := r.Relist(t.Context(), "ana", run)
			names = fullNames(specs)
			return changed
		}, soon, 5*time.Millisecond)
		require.Equal(t, []string{"tickets__comes", "tickets__stays"}, names)
		_, changed := r.Relist(t.Context(), "ana", run)
		require.False(t, changed, "it is said once")
	}
}

// Who has signed in has the server's tools in the same run.
func TestSignInBringsTheTools(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{}})
	ana := &visitor{t: t, r: r, session: "ana"}
	require.Equal(t, []string{"tickets__sign_in"}, ana.list())
	q := ana.asked("sign_in")
	_, changed := r.Relist(t.Context(), "ana", "r")
	require.False(t, changed)
	ana.answer(q, said(ana.browse(q)))
	_, _, err := ana.call("sign_in")
	require.NoError(t, err)
	specs, changed := r.Relist(t.Context(), "ana", "r")
	require.True(t, changed)
	require.Contains(t, fullNames(specs), "tickets__result")
	_, changed = r.Relist(t.Context(), "ana", "r")
	require.False(t, changed)
}

// A run asks a person to sign in, rests for weeks, and has the server's tools when they did.
func TestRunThatSignsIn(t *testing.T) {
	g := newGuard(t, httpHandler(teller(), nil))
	r := reach(t, g.mcp.URL+"/mcp", mcp.Options{OAuth: &mcp.OAuth{Vault: &chest{kept: map[string][]byte{}}}})
	s, script := stage(t, []testsuite.Reply{
		{Match: "begin", Calls: []testsuite.Call{{Tool: "tickets__sign_in"}}},
		{Match: "Somebody has signed in", Calls: []testsuite.Call{{Tool: "tickets__result", Arguments: map[string]any{"text": "x"}}}},
		{Match: "Bearer", Text: "done"},
	}, r)
	run := s.Start("clerk", "begin", nil)
	require.Equal(t, agent.StatusSuspended, run.Wait().Status)
	q := run.Suspended().Requests[0]
	s.FastForward(21 * 24 * time.Hour)
	v := &visitor{t: t, r: r}
	run.Command(agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: q.ID, Text: v.browse(&agent.ToolQuestion{Text: q.Text})})
	run.Completed()
	var offered [][]string
	for _, req := range script.Requests() {
		offered = append(offered, fullNames(req.Tools))
	}
	require.Equal(t, []string{"tickets__sign_in", agent.AwaitResumptionTool}, offered[0])
	require.Contains(t, offered[1], "tickets__result", "from the next turn on")
	require.NotContains(t, offered[1], "tickets__sign_in")
	events, err := json.Marshal(run.Events())
	require.NoError(t, err)
	messages, err := json.Marshal(run.Transcript())
	require.NoError(t, err)
	require.Contains(t, string(messages), "Bearer [token]")
	g.silent(string(events), string(messages), r.log.String())
}
