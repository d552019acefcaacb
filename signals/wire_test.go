package signals

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A start that can't be meant is refused with its field, before there is a run (HA-38).
func TestStartsThatCantBeMeant(t *testing.T) {
	for data, want := range map[string]struct {
		code agent.Code
		path string
	}{
		``:                                   {agent.CodeInvalidInput, "agent"},
		`{"agent":"a","input":{"text":" "}}`: {agent.CodeInvalidInput, "input.text"},
		`{"agent":"A","input":{"text":"x"}}`: {agent.CodeInvalidInput, "agent"},
		`{"v":2,"agent":"a","input":{"text":"x"}}`:                                          {agent.CodeIncompatible, "v"},
		`{"agent":"a","input":{"text":"x"},"carry":"all"}`:                                  {agent.CodeInvalidInput, "carry"},
		`{"agent":"a","input":{"text":"x"},"limits":{"turns":-1}}`:                          {agent.CodeInvalidInput, "limits.turns"},
		`{"agent":"a","input":{"text":"x"},"limits":{"turns":0}}`:                           {agent.CodeInvalidInput, "limits.turns"},
		`{"agent":"a","input":{"text":"x"},"limits":{"cost_usd":0.0}}`:                      {agent.CodeInvalidInput, "limits.cost_usd"},
		`{"agent":"a","input":{"text":"x"},"limits":{"turns":"x"}}`:                         {agent.CodeInvalidInput, "limits.turns"},
		`{"agent":"a","input":{"parts":[{"type":"tool_call"}]}}`:                            {agent.CodeInvalidInput, "input.parts[0].type"},
		`{"agent":"a","input":{"text":"x"},"park":{"after":"-1h"}}`:                         {agent.CodeInvalidInput, "park.after"},
		`{"agent":"a","input":{"parts":[{"type":"text","text":"x"},{"type":"text"}]}}`:      {agent.CodeInvalidInput, "input.parts[1].text"},
		`{"agent":"a","input":{"text":"x"},"limits":{"wall_clock":"5 minutes"}}`:            {agent.CodeInvalidInput, "limits.wall_clock"},
		`{"agent":"a","input":{"briefing":{"session":"s","summary":"x"}}}`:                  {agent.CodeInvalidInput, "input.briefing"},
		`{"agent":"a","input":{"text":"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}}`: {agent.CodeTooLarge, ""},
	} {
		_, err := DecodeStart([]byte(data))
		require.NotNil(t, err, "%.80s", data)
		require.Equal(t, want.code, err.Code, "%.80s: %v", data, err)
		require.Equal(t, want.path, err.Path, "%.80s", data)
		require.Contains(t, err.Message, "start refused: ")
	}
}

// A start that says nothing is for the run to judge: only that knows whether its agent
// is a daemon, and whether a checkpoint leaves the model something to answer.
func TestSilentStarts(t *testing.T) {
	for _, data := range []string{
		`{"agent":"a"}`, `{"agent":"a","park":{"after":"1h"}}`, `{"agent":"a","from":{"checkpoint":"cp-1"},"park":{"after":"1h"}}`,
	} {
		_, err := DecodeStart([]byte(data))
		require.Nil(t, err, data)
	}
}

// A page of messages is bounded, and says how many there are.
func TestTranscriptPages(t *testing.T) {
	var tail []agent.Event
	for i := range 250 {
		m := agent.TextMessage(agent.RoleUser, string(bytes.Repeat([]byte("x"), 10_000)))
		tail = append(tail, agent.Event{Seq: int64(2*i + 1), Message: &m}, agent.Event{Seq: int64(2*i + 2), Type: agent.EventTurnEnded})
	}
	first, err := MessagesOf("h", 500, tail, Page{})
	require.NoError(t, err)
	require.Len(t, first.Messages, 100)
	require.Equal(t, 250, first.Total)
	last, err := MessagesOf("h", 500, tail, Page{From: 249})
	require.NoError(t, err)
	require.Len(t, last.Messages, 1)
	_, err = MessagesOf("h", 500, tail, Page{Limit: 5000})
	require.ErrorIs(t, err, agent.CodeInvalidInput)

	var seen []agent.Event
	for after, more := int64(0), true; more; {
		open := TailOf("h", tail, TailArgs{Seq: after})
		raw, err := json.Marshal(open)
		require.NoError(t, err)
		require.Less(t, len(raw), 2<<20, "an answer fits into a payload")
		seen, more = append(seen, open.Events...), open.More
		after = seen[len(seen)-1].Seq
	}
	require.Equal(t, tail, seen)
}
