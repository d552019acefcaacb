package signals

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
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
		Code: agent.ProviderError, Message: "anthropic/claude-sonnet-5: anthropic answered 529: overloaded", Session: "trip-42", Run: "01a1",
		Status: agent.Failed, Provider: &agent.ProviderFault{Kind: agent.FaultOverload, Model: "anthropic/claude-sonnet-5", HTTP: 529, AfterToolResult: true},
	}
	completed := agent.Outcome{
		V: 1, Type: "outcome", Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.Completed, Reason: agent.ReasonDone, Text: "Rome",
		Output: json.RawMessage(`{"city":"Rome"}`), Turns: 12, Usage: usage, Cost: 412_300, Tools: tools, Started: at, Ended: at.Add(time.Minute), Seq: 140,
	}
	failed := completed
	failed.Status, failed.Reason, failed.Error, failed.Output = agent.Failed, string(agent.ProviderError), failure, nil
	call := &agent.ToolCall{ID: "t1.1", ProviderID: "toolu_1", Tool: "fs_read", Arguments: json.RawMessage(`{"path":"a.go"}`)}
	messages := []agent.Message{
		{ID: "m-1", Role: agent.RoleUser, By: "ana@acme.com", Parts: []agent.Part{{Type: agent.PartText, Text: "Where to?"}}},
		{Role: agent.RoleAssistant, Model: "anthropic/claude-sonnet-5", Parts: []agent.Part{
			{Type: agent.PartThinking, Text: "hm", Signature: "sig"}, {Type: agent.PartText, Text: "Let me look."}, {Type: agent.PartCall, Call: call}}},
		{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartResult, Result: &agent.ToolResult{Call: "t1.1", Tool: "fs_read", Status: agent.CallOK, Text: "package a", Size: 200000}}}},
	}
	return map[string]any{
		"outcome-completed": completed, "outcome-failed": failed, "error": failure,
		"status": agent.RunStatus{
			V: 1, Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.Running, Since: at, Turn: 12,
			Doing:  []agent.Doing{{Kind: agent.DoingModel, What: "anthropic/claude-opus-5", Since: at}, {Kind: agent.DoingTool, Call: "t12.1", What: "shell_run", Since: at}},
			Labels: map[string]string{"team": "travel"}, Usage: usage, Cost: 412_300, Build: "v0.3.1", Seq: 118,
			Limits: agent.LimitsUsed{Turns: &agent.Used[int]{Used: 12, Max: 40}, CostUSD: &agent.Used[agent.USD]{Used: 412_300, Max: 2 * agent.Dollar}, Clock: &agent.Used[agent.Duration]{Used: agent.Duration(time.Minute), Max: agent.Duration(time.Hour)}},
		},
		"transcript": Messages{V: 1, Head: "9f2c", Messages: messages, Total: 3, Seq: 118},
		"memo":       agent.Memo{V: 1, Run: "01a1", Task: "Plan a trip", Status: agent.Running, Since: at, Turn: 12, Cost: 412_300, Labels: map[string]string{"team": "travel"}},
		"start":      agent.Start{V: 1, Agent: "payer", Input: agent.Input{Text: "Pay invoice 118"}, By: "ana@acme.com", Limits: agent.Limits{Turns: 5, CostUSD: agent.Dollar / 2, WallClock: agent.Duration(90 * time.Second)}, Labels: map[string]string{"team": "pay"}, Carry: agent.CarryReset, ID: "m-1"},
	}
}

func TestGoldenPayloads(t *testing.T) {
	for name, value := range said() {
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
		})
	}
}

// What was written by an older build of this version is read by this one.
func TestGoldenStartIsTaken(t *testing.T) {
	data, err := os.ReadFile("testdata/wire/v1/start.json")
	require.NoError(t, err)
	s, refusal := DecodeStart(data)
	require.Nil(t, refusal)
	require.Equal(t, said()["start"], s)
}

func TestStartsThatCantBeMeant(t *testing.T) {
	for data, want := range map[string]struct {
		code agent.Code
		path string
	}{
		``:                                   {agent.InvalidInput, "agent"},
		`{"agent":"a"}`:                      {agent.InvalidInput, "input"},
		`{"agent":"A","input":{"text":"x"}}`: {agent.InvalidInput, "agent"},
		`{"v":2,"agent":"a","input":{"text":"x"}}`:                                          {agent.Incompatible, "v"},
		`{"agent":"a","input":{"text":"x"},"carry":"all"}`:                                  {agent.InvalidInput, "carry"},
		`{"agent":"a","input":{"text":"x"},"limits":{"turns":-1}}`:                          {agent.InvalidInput, "limits.turns"},
		`{"agent":"a","input":{"parts":[{"type":"tool_call"}]}}`:                            {agent.InvalidInput, "input.parts[0].type"},
		`{"agent":"a","input":{"text":"x"},"park":{"after":"-1h"}}`:                         {agent.InvalidInput, "park.after"},
		`{"agent":"a","input":{"parts":[{"type":"text","text":"x"},{"type":"text"}]}}`:      {agent.InvalidInput, "input.parts[1].text"},
		`{"agent":"a","input":{"text":"x"},"limits":{"wall_clock":"5 minutes"}}`:            {agent.InvalidInput, "limits.wall_clock"},
		`{"agent":"a","input":{"text":"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}}`: {agent.TooLarge, ""},
	} {
		_, err := DecodeStart([]byte(data))
		require.NotNil(t, err, "%.80s", data)
		require.Equal(t, want.code, err.Code, "%.80s: %v", data, err)
		require.Equal(t, want.path, err.Path, "%.80s", data)
		require.Contains(t, err.Message, "start refused: ")
	}
}

// A page of messages is bounded, and says how many there are.
func TestTranscriptPages(t *testing.T) {
	var tail []agent.Event
	for i := range 250 {
		m := agent.TextMessage(agent.RoleUser, string(bytes.Repeat([]byte("x"), 10_000)))
		tail = append(tail, agent.Event{Seq: int64(2*i + 1), Message: &m}, agent.Event{Seq: int64(2*i + 2), Type: agent.TurnEnded})
	}
	first, err := MessagesOf("h", 500, tail, Page{})
	require.NoError(t, err)
	require.Len(t, first.Messages, 100)
	require.Equal(t, 250, first.Total)
	last, err := MessagesOf("h", 500, tail, Page{From: 249})
	require.NoError(t, err)
	require.Len(t, last.Messages, 1)
	_, err = MessagesOf("h", 500, tail, Page{Limit: 5000})
	require.ErrorIs(t, err, agent.InvalidInput)

	var seen []agent.Event
	for after, more := int64(0), true; more; {
		open := OpenOf("h", tail, After{Seq: after})
		raw, err := json.Marshal(open)
		require.NoError(t, err)
		require.Less(t, len(raw), 2<<20, "an answer fits into a payload")
		seen, more = append(seen, open.Events...), open.More
		after = seen[len(seen)-1].Seq
	}
	require.Equal(t, tail, seen)
}
