package testsuite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// noStore is a store that nobody may call.
type noStore struct{ store.Store }

// sorting starts a stateless agent. Its store has no method that could be called.
func sorting(t *testing.T, tools []tool.Tool, replies ...testsuite.Reply) (*testsuite.Env, *testsuite.Script) {
	t.Helper()
	names := []string{agent.AskUserTool}
	for _, one := range tools {
		names = append(names, one.Spec().Name)
	}
	script := testsuite.NewScript(replies...)
	return testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{
		Store: noStore{}, Tools: tools, Agents: []agent.Definition{{Name: "sorter", Model: "anthropic/claude-sonnet-5", Tools: names, Stateless: true}},
	}}), script
}

// A stateless run waits for a person for a month, in the one execution that it has, and stores nothing (OA-85).
func TestAStatelessRunWaits(t *testing.T) {
	s, _ := sorting(t, nil, testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Is it spam?"}}}}, testsuite.Reply{Text: "spam"})
	run := s.Start("sorter", "a letter", nil)
	run.Suspended()
	s.FastForward(30 * 24 * time.Hour)
	run.Answer("yes")
	o := run.Completed()
	require.Equal(t, "spam", o.Text)
	require.Equal(t, 30*24*time.Hour, time.Duration(o.SuspendedFor).Round(time.Hour))
}

// A file would be stored, so the call that makes one fails, and the model reads why (OA-85).
func TestAStatelessRunKeepsNoFile(t *testing.T) {
	draw := tool.New("draw", "Draws.", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		return "", c.AddFile(ctx, agent.FileInput{Name: "a.txt", MediaType: "text/plain", Data: []byte("private")})
	}, nil)
	s, script := sorting(t, []tool.Tool{draw}, testsuite.Reply{Calls: []testsuite.Call{{Tool: "draw", Arguments: map[string]any{}}}}, testsuite.Reply{Text: "ok"})
	run := s.Start("sorter", "a letter", nil)
	require.Equal(t, []agent.ToolCount{{Tool: "draw", Calls: 1, Failed: 1}}, run.Completed().Tools)
	asked := script.Requests()[1].Messages
	require.Contains(t, asked[len(asked)-1].Parts[0].Result.Text, "stateless, and stores no file")
}

// A stateless run whose log has no more room fails, and says what to do (OA-112).
func TestAStatelessRunIsBounded(t *testing.T) {
	read := tool.New("read", "Reads.", func(context.Context, *tool.Call, map[string]any) (string, error) {
		return strings.Repeat("private ", 6000), nil
	}, nil)
	var replies []testsuite.Reply
	for page := range 40 {
		replies = append(replies, testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"page": page}}}})
	}
	s, _ := sorting(t, []tool.Tool{read}, replies...)
	o := s.Start("sorter", "a letter", nil).Ended()
	require.Equal(t, agent.StatusFailed, o.Status)
	require.ErrorIs(t, o.Err(), agent.CodeTooLarge)
	require.Contains(t, o.Error.Message, "leave stateless out")
	require.Greater(t, o.Turns, 2)
}
