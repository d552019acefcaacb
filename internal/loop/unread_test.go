package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The outcome names what was said too late for the model, and nothing that it has read, or that the
// runtime has said (HA-28). The log has it for the session's next run.
func TestTheOutcomeNamesWhatTheModelHasNotRead(t *testing.T) {
	opened := `opened {"limits":{"turns":2},"toolset":[{"name":"add"}]}`
	p := played(t, "begin go", opened, `send {"text":"early","by":"ana"}`, "calls add {}", "result t1.1 ok 1",
		`send {"text":"late","by":"ana"}`, `send {"text":"later","mode":"queue"}`, "calls add {}", "result t2.1 ok 1")
	o := p.state.End.Outcome
	require.Len(t, o.Unread, 2)
	var said []string
	for _, e := range p.state.Log.Tail {
		if e.Seq == o.Unread[0] || e.Seq == o.Unread[1] {
			said = append(said, e.Message.Text())
		}
	}
	require.Equal(t, []string{"late", "later"}, said)

	p = played(t, "begin go", opened, `send {"text":"early","by":"ana"}`, "calls add {}", "result t1.1 ok 1", "says done")
	require.Empty(t, p.state.End.Outcome.Unread)
}
