package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// Rules match by pattern, by what a tool does to the world, and by its arguments
// (HA-113); of those that match the strictest wins, and a call that none matches is
// made (HA-112). After so many calls of a tool a person may be asked (HA-64).
func TestWhatRulesMatch(t *testing.T) {
	type in struct {
		Eur int `json:"eur,omitempty"`
	}
	made := make(chan string, 9)
	makes := func(name string, o *tool.Options) tool.Tool {
		return tool.New(name, "", func(context.Context, *tool.Call, in) (string, error) { made <- name; return "made", nil }, o)
	}
	def := agent.Definition{Rules: []agent.Rule{
		{Do: agent.Deny, Tools: []string{"fs_*"}, Class: agent.ClassWrites, Reason: "Only look."},
		{Do: agent.Allow, Tools: []string{"*"}},
		{Do: agent.Deny, Tools: []string{"pay"}, Arguments: json.RawMessage(`{"properties":{"eur":{"minimum":100}},"required":["eur"]}`), Reason: "Too much."},
		{Do: agent.Ask, Tools: []string{"pay"}, Over: 2, Reason: "The third time."},
	}}
	pay := func(eur int) testsuite.Call {
		return testsuite.Call{Tool: "pay", Arguments: map[string]any{"eur": eur}}
	}
	b := setup(t, def, testsuite.NewScript(
		testsuite.Reply{Calls: append(calls("fs_read", "fs_write", "note"), pay(800), pay(5))},
		testsuite.Reply{Calls: []testsuite.Call{pay(6)}}, testsuite.Reply{Text: "done"}),
		makes("fs_read", &tool.Options{ReadOnly: true}), makes("fs_write", nil), makes("note", nil), makes("pay", nil))
	b.after(time.Hour, func() {
		q := b.status(t).Suspension.Requests
		require.Len(t, q, 1)
		require.Equal(t, "Run pay? The third time.", q[0].Text)
		require.JSONEq(t, `{"eur":6}`, string(q[0].Call.Arguments))
		b.signal("reject", `{"request":"q-1","reason":"not today"}`)
	})
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.Completed, o.Status, "%+v", o.Error)
	close(made)
	var names []string
	for name := range made {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"fs_read", "note", "pay"}, names)
	first := rows(b, 1)
	require.Equal(t, "Permission denied by rule 0. Only look.", first[1].Text)
	require.Equal(t, "Permission denied by rule 2. Too much.", first[3].Text)
	require.Contains(t, rows(b, 2)[0].Text, "not today")
}
