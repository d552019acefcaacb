package signals

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
)

var update = flag.Bool("update", false, "rewrite the golden files: a change of one is a breaking change and needs a decision")

var at = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// said are the payloads that cross Temporal outward, one of each shape.
func said() map[string]any {
	usage := agent.Usage{Input: 1200, Output: 300, CacheRead: 800, CacheWrite: 100, Reasoning: 50}
	tools := []agent.ToolCount{{Tool: "fs_read", Calls: 3, OK: 2, Failed: 1}}
	failure := &agent.Error{
		Code: agent.CodeProviderError, Message: "anthropic/claude-sonnet-5: anthropic answered 529: overloaded", Session: "trip-42", Run: "01a1",
		Status: agent.StatusFailed, Provider: &agent.ProviderFault{Kind: agent.FaultOverload, Model: "anthropic/claude-sonnet-5", HTTP: 529, AfterToolResult: true},
	}
	completed := agent.Outcome{
		V: 1, Type: "outcome", Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.StatusCompleted, Reason: agent.ReasonDone, Text: "Rome",
		Output: json.RawMessage(`{"city":"Rome"}`), Turns: 12, Usage: usage, Cost: 412_300, Tools: tools, ToolsMode: agent.ToolsNative, Started: at, Ended: at.Add(time.Minute), Checkpoint: "cp-140-95279a", Seq: 140,
	}
	failed := completed
	failed.Status, failed.Reason, failed.Error, failed.Output = agent.StatusFailed, string(agent.CodeProviderError), failure, nil
	failed.Unread = []agent.UnreadMessage{{Event: 139, By: "ana", Text: "wait"}}
	call := &agent.ToolCall{ID: "t1.1", ProviderID: "toolu_1", Tool: "fs_read", Arguments: json.RawMessage(`{"path":"a.go"}`)}
	messages := []agent.Message{
		{ID: "m-1", Role: agent.RoleUser, By: "ana@acme.com", Parts: []agent.Part{{Type: agent.PartText, Text: "Where to?"}}},
		{Role: agent.RoleAssistant, Model: "anthropic/claude-sonnet-5", Parts: []agent.Part{
			{Type: agent.PartThinking, Text: "hm", Signature: "sig"}, {Type: agent.PartText, Text: "Let me look."}, {Type: agent.PartToolCall, Call: call}}},
		{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.1", Tool: "fs_read", Status: agent.CallOK, Text: "package a", Size: 200000}}}},
	}
	return map[string]any{
		"outcome-completed": completed, "outcome-failed": failed, "error": failure,
		"status": agent.RunStatus{
			V: 1, Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.StatusRunning, Since: at, Turn: 12, Turns: 12,
			InFlight: []agent.InFlight{{Kind: agent.InFlightModel, Name: "anthropic/claude-opus-5", Since: at}, {Kind: agent.InFlightTool, Call: "t12.1", Name: "shell_run", Since: at}},
			Labels:   map[string]string{"team": "travel"}, Usage: usage, Cost: 412_300, Build: "v0.3.1", Seq: 118,
			Limits: agent.LimitsUsed{Turns: &agent.Used[int]{Used: 12, Max: 40}, CostUSD: &agent.Used[agent.USD]{Used: 412_300, Max: 2 * agent.Dollar}, WallClock: &agent.Used[agent.Duration]{Used: agent.Duration(time.Minute), Max: agent.Duration(time.Hour)}},
		},
		"transcript":   TranscriptAnswer{V: 1, Head: "9f2c", Messages: messages, Total: 3, Seq: 118},
		"memo":         agent.Memo{V: 1, Run: "01a1", Task: "Plan a trip", Status: agent.StatusRunning, Since: at, Turn: 12, Turns: 12, Cost: 412_300, Labels: map[string]string{"team": "travel"}},
		"start":        agent.Start{V: 1, Agent: "payer", Input: agent.Input{Text: "Pay invoice 118"}, By: "ana@acme.com", Limits: agent.Limits{Turns: 5, CostUSD: agent.Dollar / 2, WallClock: agent.Duration(90 * time.Second)}, Labels: map[string]string{"team": "pay"}, Carry: agent.CarryReset, ID: "m-1"},
		"start-parked": agent.Start{V: 1, Agent: "payer", Input: agent.Input{Text: "Go on", Briefing: handoff()}, Park: conditions()},
		"start-daemon": agent.Start{V: 1, Agent: "watcher"},
		"status-daemon": agent.RunStatus{
			V: 1, Session: "desk", Run: "01a1", Agent: "watcher", Status: agent.StatusRunning, Since: at, InFlight: []agent.InFlight{}, QueuedEvents: &agent.Used[int]{Used: 3, Max: 256}, Watch: []string{"inbox"}, Event: &agent.HandledEvent{ID: "paid-118", Topic: "orders.paid"},
		},
		"tick":         agent.Tick{V: 1, Session: "desk", Agent: "watcher", Topic: "day.begins", Payload: json.RawMessage(`{"day":1}`), By: "schedule mornings"},
		"start-import": agent.Start{V: 1, Agent: "payer", By: "ana@acme.com", Import: strings.Repeat("9f", 16) + "-" + strings.Repeat("9f", 32)},
	}
}

// Whatever is said to a run and by it has one form, which a file holds (HL-26,
// HL-101, HL-102, HX-68, HX-69, HX-70, HA-149, PA-63, PA-72, PA-73).
func TestGoldenPayloads(t *testing.T) {
	all := said()
	maps.Copy(all, held())
	maps.Copy(all, told(t))
	for name, command := range verbs() {
		all[name] = command
	}
	for name, value := range all {
		t.Run(name, func(t *testing.T) {
			// As Temporal writes it: the default converter, plain JSON.
			p, err := converter.GetDefaultDataConverter().ToPayload(value)
			require.NoError(t, err)
			require.Equal(t, "json/plain", string(p.GetMetadata()["encoding"]))
			var got bytes.Buffer
			require.NoError(t, json.Indent(&got, p.GetData(), "", "  "))
			got.WriteByte('\n')
			path := filepath.Join("testdata", "wire", "v1", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
			if _, ok := value.(agent.Outcome); ok {
				for _, flat := range []string{"iterations", "duration_ms", "tools_used", "successful_tools", "rejected_tools", "tool_calling_mode"} {
					require.NotContains(t, got.String(), `"`+flat+`"`, "calls are counted in tools, and turns in report")
				}
			}
		})
	}
}

// What was written by an older build of this version is read by this one.
func TestGoldenStartsAreTaken(t *testing.T) {
	for _, name := range []string{"start", "start-parked", "start-import"} {
		s, refusal := DecodeStart(compact(t, name))
		require.Nil(t, refusal)
		require.Equal(t, said()[name], s)
	}
}

func TestGoldenVerbsAreTaken(t *testing.T) {
	for name, want := range verbs() {
		verb := agent.Verb(strings.TrimPrefix(name, "verb-"))
		got, refusal := Decode(verb, compact(t, name))
		require.Nil(t, refusal, name)
		require.Equal(t, want, got)
		require.Equal(t, verb, got.Verb())
		require.Equal(t, "ana@acme.com", got.Header().By)
	}
	require.Len(t, verbs(), len(Verbs))
}

// compact reads a golden file as Temporal carries it.
func compact(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wire", "v1", name+".json"))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, data))
	return out.Bytes()
}
