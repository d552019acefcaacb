package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A worker's line about a tool that panics says in which session, run and turn.
func TestALineOfALogNamesItsSession(t *testing.T) {
	bad := tool.New("bad", "", func(context.Context, *tool.Call, struct{}) (string, error) { panic("oops") }, nil)
	b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("bad")}, testsuite.Reply{Text: "done"}), bad)
	b.between = &slowPost{held: true} // it names the run, which the environment does not
	var lines bytes.Buffer
	b.acts.Logger = slog.New(slog.NewJSONHandler(&lines, nil))
	b.fresh()
	o := b.run(t, "go")
	var line map[string]any
	require.NoError(t, json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &line), lines.String())
	require.Equal(t, "tool panicked", line["msg"])
	require.Equal(t, []any{o.Session, o.Run, 1.0}, []any{line["session"], line["run"], line["turn"]})
}
