package signals

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
		`{"agent":"a","input":{"text":"x"},"limits":{"cost_usd":1e-7}}`:                     {agent.CodeInvalidInput, "limits.cost_usd"},
		`{"agent":"a","input":{"text":"x"},"limits":{"depth":-0}}`:                          {agent.CodeInvalidInput, "limits.depth"},
		`{"agent":"a","input":{"text":"x"},"judge":{"max_output_tokens":0}}`:                {agent.CodeInvalidInput, "judge.max_output_tokens"},
		`{"agent":"a","input":{"text":"x"},"judge":{"max_output_tokens":-1}}`:               {agent.CodeInvalidInput, "judge.max_output_tokens"},
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

// Every number of a start that is written as zero is refused, where it would mean the same as leaving
// it out: those that later fields bring, too (HA-38). A handoff says what a run has used, and has zeros.
func TestZerosOfAStart(t *testing.T) {
	found := map[string]bool{}
	for path, value := range zeros(reflect.TypeFor[agent.Start](), nil) {
		start := map[string]any{"agent": "a", "input": map[string]any{"text": "x"}}
		maps.Copy(start, value.(map[string]any))
		data, err := json.Marshal(start)
		require.NoError(t, err)
		_, bad := DecodeStart(data)
		require.NotNil(t, bad, "%s", data)
		require.Equal(t, path, bad.Path, "%s", data)
		require.Contains(t, bad.Message, path+" is zero; leave it out for the default")
		found[path] = true
	}
	for _, path := range []string{"v", "limits.turns", "limits.cost_usd", "limits.wall_clock", "limits.adaptive.shrink_by", "judge.max_output_tokens", "park.after", "park.any[0].after"} {
		require.True(t, found[path], path)
	}

	_, err := DecodeStart([]byte(`{"agent":"a","input":{"text":"x","briefing":{"tree":{"turns":0,"cost_usd":0}}}}`))
	require.ErrorContains(t, err, "input.briefing is no whole handoff")
}

// zeros yields, by their paths, objects in which one number or duration of a type is zero.
func zeros(of reflect.Type, within []reflect.Type) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if slices.Contains(within, of) || of == reflect.TypeFor[agent.Handoff]() {
			return
		}
		for f := range of.Fields() {
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			to, list := f.Type, false
			for to.Kind() == reflect.Pointer || to.Kind() == reflect.Slice {
				to, list = to.Elem(), list || to.Kind() == reflect.Slice
			}
			switch {
			case f.Type == reflect.TypeFor[agent.Duration]():
				yield(key, map[string]any{key: "0s"})
			case f.Type.Kind() >= reflect.Int && f.Type.Kind() <= reflect.Float64 && strings.Contains(options, "omit"):
				yield(key, map[string]any{key: 0})
			case to.Kind() == reflect.Struct && to != reflect.TypeFor[time.Time]():
				for path, value := range zeros(to, append(within[:len(within):len(within)], of)) {
					switch {
					case f.Anonymous && key == "":
						yield(path, value)
					case list:
						yield(key+"[0]."+path, map[string]any{key: []any{value}})
					default:
						yield(key+"."+path, map[string]any{key: value})
					}
				}
			}
		}
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
		m := agent.TextMessage(agent.RoleUser, string(bytes.Repeat([]byte("x"), 1_000)))
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
