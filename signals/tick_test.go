package signals

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestTicksThatCantBeMeant(t *testing.T) {
	for data, path := range map[string]string{
		``:                               "session",
		`{"session":"desk"}`:             "agent",
		`{"session":"desk","agent":"a"}`: "text",
		`{"session":"a/b","agent":"a","text":"x"}`:              "session",
		`{"session":"desk","agent":"a","text":"x","topic":"t"}`: "text",
		`{"session":"desk","agent":"a","text":"x","payload":1}`: "payload",
		`{"session":"desk","agent":"a","topic":"a b"}`:          "topic",
		`{"session":"desk","agent":"a","text":"x","mode":"q"}`:  "mode",
	} {
		_, err := DecodeTick([]byte(data))
		require.NotNil(t, err, data)
		require.ErrorIs(t, err, agent.CodeInvalidInput, data)
		require.Equal(t, path, err.Path, data)
		require.Contains(t, err.Message, "tick refused: ")
	}
	for _, long := range []agent.Tick{
		{Session: "desk", Agent: "a", Topic: "t", Payload: json.RawMessage(`"` + strings.Repeat("x", 64<<10-90) + `"`)}, // with an id it is too long
		{Session: "desk", Agent: "a", Text: strings.Repeat("x", agent.MaxPayload-50)},
	} {
		require.ErrorIs(t, CheckTick(long), agent.CodeTooLarge)
	}
	require.ErrorIs(t, CheckTick(agent.Tick{Session: "desk", Agent: "a", Text: " "}), agent.CodeInvalidInput)
	_, err := DecodeTick([]byte(`{"v":2,"session":"desk","agent":"a","text":"x"}`))
	require.ErrorIs(t, err, agent.CodeIncompatible)
	tick, err := DecodeTick([]byte(`{"session":"desk","agent":"a","topic":"t","payload":{"n":1}}`))
	require.Nil(t, err)
	require.JSONEq(t, `{"n":1}`, string(tick.Payload))
}
