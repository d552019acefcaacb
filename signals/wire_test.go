package signals

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestStartsThatCantBeMeant(t *testing.T) {
	for data, want := range map[string]struct {
		code agent.Code
		path string
	}{
		``:                                   {agent.InvalidInput, "agent"},
		`{"agent":"a","input":{"text":" "}}`: {agent.InvalidInput, "input.text"},
		`{"agent":"A","input":{"text":"x"}}`: {agent.InvalidInput, "agent"},
		`{"v":2,"agent":"a","input":{"text":"x"}}`:                                          {agent.Incompatible, "v"},
		`{"agent":"a","input":{"text":"x"},"carry":"all"}`:                                  {agent.InvalidInput, "carry"},
		`{"agent":"a","input":{"text":"x"},"limits":{"turns":-1}}`:                          {agent.InvalidInput, "limits.turns"},
		`{"agent":"a","input":{"parts":[{"type":"tool_call"}]}}`:                            {agent.InvalidInput, "input.parts[0].type"},
		`{"agent":"a","input":{"text":"x"},"park":{"after":"-1h"}}`:                         {agent.InvalidInput, "park.after"},
		`{"agent":"a","input":{"parts":[{"type":"text","text":"x"},{"type":"text"}]}}`:      {agent.InvalidInput, "input.parts[1].text"},
		`{"agent":"a","input":{"text":"x"},"limits":{"wall_clock":"5 minutes"}}`:            {agent.InvalidInput, "limits.wall_clock"},
		`{"agent":"a","input":{"briefing":{"session":"s","summary":"x"}}}`:                  {agent.InvalidInput, "input.briefing"},
		`{"agent":"a","input":{"text":"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}}`: {agent.TooLarge, ""},
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
