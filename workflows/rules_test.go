package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// Rules match by pattern, by what a tool does to the world, and by its arguments
// (HA-113); of those that match the strictest wins, and a call that none matches is
// made (HA-112). After so many calls of a tool a person may be asked.
func TestWhatRulesMatch(t *testing.T) {
	type in struct {
		Eur int `json:"eur,omitempty"`
	}
	made := make(chan string, 9)
	makes := func(name string, o *tool.Options) tool.Tool {
		return tool.New(name, "", func(context.Context, *tool.Call, in) (string, error) { made <- name; return "made", nil }, o)
	}
	def := agent.Definition{Rules: []agent.Rule{
		{Do: agent.RulingDeny, Tools: []string{"fs_*"}, Class: agent.ClassWrites, Reason: "Only look."},
		{Do: agent.RulingAllow, Tools: []string{"*"}},
		{Do: agent.RulingDeny, Tools: []string{"pay"}, Arguments: json.RawMessage(`{"properties":{"eur":{"minimum":100}},"required":["eur"]}`), Reason: "Too much."},
		{Do: agent.RulingAsk, Tools: []string{"pay"}, AfterCalls: 2, Reason: "The third time."},
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
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
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

// A budget of one action: the second asks, as input_required, and an approval lets the run go on
// (HA-64).
func TestABudgetOfOneAction(t *testing.T) {
	made := 0
	pay := tool.New("pay", "", func(context.Context, *tool.Call, none) (string, error) { made++; return "paid", nil }, nil)
	b := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, AfterCalls: 1}}}, testsuite.NewScript(
		testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Text: "done"}), pay)
	b.after(time.Hour, func() {
		s := b.status(t).Suspension
		require.Equal(t, agent.SuspensionInputRequired, s.Kind)
		require.Equal(t, agent.RequestApproval, s.Requests[0].Type)
		require.Equal(t, 1, made)
		b.signal("approve", `{"request":"q-1"}`)
	})
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 2, made)
}

// Whom a rule names as approver may edit the arguments of the call; the same arguments of
// somebody who is none for them are refused by the step, and the tool is not called.
func TestAnApproverEditsArguments(t *testing.T) {
	small := json.RawMessage(`{"properties":{"eur":{"maximum":9}}}`)
	for _, c := range []struct{ rest, want string }{{"ana", "paid 7"}, {"bo", "the edited arguments want the approval of bo"}} {
		pay := tool.New("pay", "", func(_ context.Context, _ *tool.Call, in struct {
			Eur int `json:"eur"`
		}) (string, error) {
			return fmt.Sprint("paid ", in.Eur), nil
		}, nil)
		def := agent.Definition{Rules: []agent.Rule{
			{Do: agent.RulingAsk, Tools: []string{"pay"}, Arguments: json.RawMessage(`{"properties":{"eur":{"minimum":10}}}`), Approvers: []string{"ana"}},
			{Do: agent.RulingAsk, Tools: []string{"pay"}, Arguments: small, Approvers: []string{c.rest}},
		}}
		b := setup(t, def, testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 800}}}}, testsuite.Reply{Text: "done"}), pay)
		b.between = &slowPost{held: true} // it names the run, which the environment does not
		signer, err := signals.NewSigner("k1")
		require.NoError(t, err)
		b.keys = signer.Keys()
		b.fresh()
		b.after(time.Minute, func() {
			s := b.status(t)
			edits := json.RawMessage(`{"eur":7}`)
			claim := signals.ClaimFor("q-1", agent.ApproveCommand{Digest: s.Suspension.Requests[0].Digest, Arguments: edits})
			claim.Session, claim.Execution, claim.Principal, claim.Expires = s.Session, s.Execution, "ana", b.Now().Add(time.Hour)
			token, err := signer.Mint(claim)
			require.NoError(t, err)
			b.UpdateWorkflow("approve", "u-1", &sdktest.TestUpdateCallback{
				OnReject: func(err error) { require.NoError(t, err) }, OnAccept: func() {}, OnComplete: func(_ any, err error) { require.NoError(t, err) },
			}, agent.ApproveCommand{CommandHeader: agent.CommandHeader{Token: token}, Request: "q-1", Digest: claim.Digest, Arguments: edits})
		})
		require.Equal(t, agent.StatusCompleted, b.start(t, agent.Start{}).Status)
		require.Contains(t, rows(b, 1)[0].Text, c.want)
	}
}
