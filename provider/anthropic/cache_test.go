package anthropic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

const mark = `"cache_control":{"type":"ephemeral"}`

// cached is what of a request the provider caches, in the order in which it does:
// up to the last mark, and without the marks.
func cached(t *testing.T, body []byte) (prefix string, marks int) {
	t.Helper()
	var in struct{ Tools, System, Messages json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	whole := string(in.Tools) + string(in.System) + strings.TrimSuffix(string(in.Messages), "]")
	marks = strings.Count(whole, mark)
	whole = whole[:strings.LastIndex(whole, mark)]
	return strings.NewReplacer(","+mark, "", mark+",", "", mark, "").Replace(whole), marks
}

// The next turn's request begins with what this turn's has written to the cache,
// byte for byte, and is marked there, too, so that it is read from it.
func TestNextTurnReadsTheCache(t *testing.T) {
	m, s := serve(t, standin.Answer(200, "text/event-stream", whole))
	turn := []agent.Message{
		assistant(sonnet, thought("Once more.", "b25l"), call("t2.1", "weather", `{"city":"Oslo"}`)),
		{Role: agent.RoleTool, Parts: []agent.Part{result("t2.1", "weather", agent.CallOK, "-3 °C")}},
	}
	messages := conversation[:3:3]
	for range 3 {
		standin.Reply(t, m, &model.Request{Model: "claude-sonnet-5-5", Instructions: "Be brief.", Tools: []agent.ToolSpec{now, weather}, Messages: messages})
		messages = append(messages, turn...)
	}
	for i := range 2 {
		written, _ := cached(t, s.Bodies[i])
		next, marks := cached(t, s.Bodies[i+1])
		// What stands behind the mark of a block ends it: the mark is its last field or not.
		written = strings.TrimRight(written, `,}]`)
		if !strings.HasPrefix(next, written) || len(next) <= len(written) {
			t.Errorf("turn %d has cached\n%s\nand the next one asks\n%s", i+1, written, next)
		}
		if marks > 4 {
			t.Errorf("there are %d marks, and the provider takes 4", marks)
		}
		var was, is struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(s.Bodies[i], &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.Bodies[i+1], &is); err != nil {
			t.Fatal(err)
		}
		last := len(was.Messages) - 1
		if !bytes.Equal(was.Messages[last], is.Messages[last]) || !bytes.Contains(is.Messages[last], []byte(mark)) {
			t.Errorf("the last message of turn %d was %s and is %s: it is not marked where it was written", i+1, was.Messages[last], is.Messages[last])
		}
	}
}
