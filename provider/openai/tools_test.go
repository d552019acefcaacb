package openai_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// One tool with an odd schema does not make the server refuse every request: the
// schema is rewritten, and what that loses stands in the tool's description.
func TestOddTools(t *testing.T) {
	chat, chats := serve(t, standin.Drip(wholeChat, 0))
	response, responses := serveResponses(t, standin.Drip(wholeResponse, 0))
	req := ask("Hello")
	req.Tools = standin.OddTools
	standin.Reply(t, chat, req)
	standin.Reply(t, response, req)
	for _, body := range [][]byte{chats.Bodies[0], responses.Bodies[0]} {
		var in basics
		require.NoError(t, json.Unmarshal(body, &in))
		require.Len(t, in.Tools, len(standin.OddTools))
		for i, f := range in.Tools {
			schema := f.Function.Parameters
			if schema == nil {
				schema = f.Parameters
			}
			require.Empty(t, standin.Faults(schema), "%s: %s", standin.OddTools[i].Name, schema)
		}
		first := cmp.Or(in.Tools[0].Function.Description, in.Tools[0].Description)
		require.Contains(t, first, string(standin.OddTools[0].Input))
	}
}
