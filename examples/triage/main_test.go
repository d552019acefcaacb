package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

func TestARefundIsApprovedAtTheTerminal(t *testing.T) {
	calls := func(tool string, arguments map[string]any) []testsuite.Call {
		return []testsuite.Call{{Tool: tool, Arguments: arguments}}
	}
	c, o := devserver.ForTest(t).Client(t), options()
	var err error
	o.Store, err = store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	o.Models = map[string]model.Model{"anthropic": testsuite.NewScript(
		testsuite.Reply{Match: "is broken$", Calls: calls("subagent__research", map[string]any{"task": "find order 7"})},
		testsuite.Reply{Match: "^find", Calls: calls("look_up", map[string]any{"Number": 7})},
		testsuite.Reply{Match: "lamp", Text: "It was delivered broken."},
		testsuite.Reply{Match: "delivered broken", Calls: calls("subagent__cashier", map[string]any{"task": "pay 80 EUR for order 7"})},
		testsuite.Reply{Match: "^pay", Calls: calls("refund", map[string]any{"order": 7, "eur": 80})},
		testsuite.Reply{Match: "on their way", Text: "Paid."},
		testsuite.Reply{Match: "Paid", Text: `{"urgent":false,"reply":"We have sent you 80 EUR."}`},
	)}
	w, err := worker.New(c, o)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	defer w.Stop()
	var out strings.Builder
	require.NoError(t, triage(t.Context(), client.New(c, nil), "order 7 is broken", strings.NewReader("y\n"), &out))
	require.Equal(t, "Run refund? {\"eur\":80,\"order\":7} (y/n) \nWe have sent you 80 EUR.\n", out.String())
}
