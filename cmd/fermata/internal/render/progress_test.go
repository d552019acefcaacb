package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/live"
)

func remark(turn int, call, text string) live.Event {
	return live.Event{Type: agent.EventCallProgress, Turn: turn, Data: live.Data{Call: call, Text: text}}
}

// A remark of a tool is told after its call, whichever comes first, and none after the
// call's end.
func TestRemarksFollowTheirCalls(t *testing.T) {
	out := told(render.Options{Color: true},
		turn(1), says(1, "", call("t1.1", "pay", `{}`), call("t1.2", "look", `{}`)), remark(1, "t1.1", "early"),
		noted(agent.EventCallStarted, 1, "t1.2", "look", ""), remark(1, "t1.2", "at once"),
		noted(agent.EventCallStarted, 2, "t1.1", "pay", ""), noted(agent.EventCallDone, 3, "t1.1", "pay", agent.CallOK), remark(1, "t1.1", "late"))
	require.Regexp(t, `(?s)look.*at once.*pay.*early`, out)
	require.NotContains(t, out, "late")
}
