package loop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The outcome returns what was said too late for the model, and nothing that it has read, or that the
// runtime has said (HA-28). The log has it for the session's next run.
func TestTheOutcomeReturnsWhatTheModelHasNotRead(t *testing.T) {
	opened := `opened {"limits":{"turns":2},"toolset":[{"name":"add"}]}`
	p := played(t, "begin go", opened, `send {"text":"early","by":"ana"}`, "calls add {}", "result t1.1 ok 1",
		`send {"text":"late","by":"ana"}`, `send {"text":"later","mode":"queue"}`, "calls add {}", "result t2.1 ok 1")
	said := map[int64]string{}
	for _, e := range p.state.Log.Tail {
		if e.Message != nil {
			said[e.Seq] = e.Message.Text()
		}
	}
	unread := p.state.End.Outcome.Unread
	require.Len(t, unread, 2)
	for i, want := range []agent.UnreadMessage{{By: "ana", Text: "late"}, {Text: "later"}} {
		want.Event = unread[i].Event
		require.Equal(t, want, unread[i])
		require.Equal(t, want.Text, said[want.Event], "the log has it")
	}

	p = played(t, "begin go", opened, `send {"text":"early","by":"ana"}`, "calls add {}", "result t1.1 ok 1", "says done")
	require.Empty(t, p.state.End.Outcome.Unread)
}

// However much was said too late, the outcome has a part of it, and where the rest stands.
func TestUnreadMessagesAreBounded(t *testing.T) {
	long := `send {"text":"` + strings.Repeat("x", unreadShare/2) + `"}`
	p := played(t, "begin go", `opened {"limits":{"turns":1},"toolset":[{"name":"add"}]}`, "calls add {}", long, long, long, "result t1.1 ok 1")
	unread := p.state.End.Outcome.Unread
	require.Len(t, unread, 3)
	require.Len(t, unread[1].Text, unreadShare/2)
	require.Empty(t, unread[2].Text)
	require.NotZero(t, unread[2].Event)
}
