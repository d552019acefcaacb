package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// The tool of a custom compaction gets arguments without their secrets, as judges do, and what it
// returns is bounded as any result is (HA-145).
func TestACustomCompactionGetsNoSecretsAndIsBounded(t *testing.T) {
	var got agent.CompactionInput
	own := tool.New("sum_up", "", func(_ context.Context, _ *tool.Call, in agent.CompactionInput) (agent.CompactionSummary, error) {
		got = in
		return agent.CompactionSummary{Summary: strings.Repeat("x", 2*maxResult)}, nil
	}, &tool.Options{ReadOnly: true})
	require.NoError(t, own.Err())
	d := &Activities{Tools: map[string]tool.Tool{"sum_up": own}, Logger: slog.New(slog.DiscardHandler)}
	spec := &agent.Spec{
		Definition: agent.Definition{Compaction: agent.CompactionPolicy{Strategy: agent.CompactionCustom, Tool: "sum_up"}},
		Toolset:    []agent.ToolSpec{{Name: "sign_in", Secrets: []string{"password"}}},
	}
	call := &agent.ToolCall{ID: "t1.1", Tool: "sign_in", Arguments: json.RawMessage(`{"user":"ann","password":"hunter2"}`)}
	log := []store.Entry{{Message: agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: call}}}}}
	var text string
	require.NoError(t, inActivity(t, func(ctx context.Context) (err error) {
		text, err = d.customSummary(ctx, spec, log, ModelInput{})
		return err
	}))
	require.Less(t, len(text), maxResult+1000, "with the note that it is cut")
	require.Len(t, got.Archived, 1)
	require.JSONEq(t, `{"user":"ann","password":"[secret]"}`, got.Archived[0].Arguments)
}
