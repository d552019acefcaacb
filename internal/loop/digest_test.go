package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Whoever approves makes a digest with what there is: jq -cS, or JSON.stringify.
func TestADigestIsThatOfAnyOtherProgram(t *testing.T) {
	sum := sha256.Sum256([]byte(`{"command":"cd x && make > out","n":1.50}`))
	escaped, err := json.Marshal(json.RawMessage(`{"n": 1.50, "command": "cd x && make > out"}`))
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:8]), Digest(escaped))
}

// Long arguments are digested before the workflow has them, to the same end as in it.
func TestDigestsOfLongArgumentsComeWithTheReply(t *testing.T) {
	long := json.RawMessage(`{"key": "s3cret", "list": [` + strings.Repeat("1.50, ", 2000) + `0]}`)
	spec := &agent.Spec{Toolset: []agent.ToolSpec{{Name: "pay", Secrets: []string{"key"}}, {Name: "theirs", Secrets: []string{"key"}, Executor: agent.ExecutorClient}}}
	calls := []agent.ToolCall{{Tool: "pay", Arguments: long}, {Tool: "theirs", Arguments: long}, {Tool: "pay"}}
	require.Nil(t, Digests(calls[2:], spec))
	list := Digests(calls, spec)
	require.Len(t, list, 3)
	for i, c := range calls {
		tool, _ := spec.Tool(c.Tool)
		kind := agent.RequestApproval
		if tool.Executor == agent.ExecutorClient {
			kind = agent.RequestClientTool
		}
		there, here := wire.Reply{Digests: list}, wire.Reply{}
		require.Equal(t, sameOf(here, i, c), sameOf(there, i, c))
		require.Equal(t, request(here, i, kind, Call{ToolCall: c}, tool, agent.Rule{}), request(there, i, kind, Call{ToolCall: c}, tool, agent.Rule{}))
	}
	require.NotEqual(t, list[0].Shown, list[1].Shown)
	// They are taken as they are.
	list[0] = wire.CallDigests{Same: "same", Shown: "shown"}
	require.Equal(t, "same", sameOf(wire.Reply{Digests: list}, 0, calls[0]))
	require.Equal(t, "shown", shownOf(wire.Reply{Digests: list}, 0, long))
}

// The quick way to a digest's text, which most arguments take, comes to what the other one does. A
// digest that differed would make people compare two numbers for one call.
func TestCanonicalTextsAgree(t *testing.T) {
	quick := 0
	for _, raw := range []string{
		`{"b":1,"a":[{"d":null,"c":-0.50e+3}],"aa":"x"}`, ` { "a" : 12345678901234567890 , "A":true}`, `{"a":"<b>&</b>"}`, `[]`, `"x"`, `1.0`, `-0`,
		`{"a":1,"a":2}`, `{"a":"\u0041\n"}`, `{"é":"ü","z":"🙂"}`, `{"a":1} {`, `{"a":`, ``, "{\"a\":\"\x7f\"}", "\"\x01\"", `{"":{}}`, "\t[1,\n2]\r",
	} {
		plain, ok := sorted(json.RawMessage(raw))
		if ok {
			quick++
			require.Equal(t, string(sortedAnyway(json.RawMessage(raw))), string(plain), raw)
		}
	}
	require.Equal(t, 9, quick)
}
