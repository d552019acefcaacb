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
// (HA-113, HA-116); of those that match the strictest wins, and a call that none matches is
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

// request is what the tools of TestEachMatcherOfARule take.
type request struct {
	Path    string `json:"path,omitempty"`
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"`
	Method  string `json:"method,omitempty"`
}

func called(name string, in request) testsuite.Call {
	raw, _ := json.Marshal(in) // strings
	return testsuite.Call{Tool: name, Raw: string(raw)}
}

// An argument's pattern matches paths, commands, hosts and methods. A name's pattern matches the tools of
// one MCP server, or an agent below. Each rule refuses one call, and a call that differs in this alone is
// made (HA-113).
func TestEachMatcherOfARule(t *testing.T) {
	web := request{URL: "https://good.example/evil.example/", Method: "GET"}
	for name, c := range map[string]struct {
		rule          agent.Rule
		refused, made testsuite.Call
	}{
		"path": {
			agent.Rule{Arguments: json.RawMessage(`{"properties":{"path":{"pattern":"^/etc(/|$)"}},"required":["path"]}`)},
			called("write", request{Path: "/etc/hosts"}), called("write", request{Path: "/home/etc/hosts"}),
		},
		"command": {
			agent.Rule{Arguments: json.RawMessage(`{"properties":{"command":{"pattern":"^\\s*rm\\b"}},"required":["command"]}`)},
			called("run", request{Command: " rm -r ."}), called("run", request{Command: "ls rm"}),
		},
		"host": {
			agent.Rule{Arguments: json.RawMessage(`{"properties":{"url":{"pattern":"^https?://([^/?#]*\\.)?evil\\.example([:/?#]|$)"}},"required":["url"]}`)},
			called("fetch", request{URL: "https://www.evil.example/a", Method: "GET"}), called("fetch", web),
		},
		"method": {
			agent.Rule{Arguments: json.RawMessage(`{"properties":{"method":{"pattern":"^(POST|DELETE)$"}},"required":["method"]}`)},
			called("fetch", request{URL: web.URL, Method: "DELETE"}), called("fetch", web),
		},
		"MCP server":  {agent.Rule{Tools: []string{"tickets__*"}}, called("tickets__close", request{}), called("calendar__close", request{})},
		"agent below": {agent.Rule{Tools: []string{"subagent__cook"}}, called("subagent__cook", request{}), called("subagent__clerk", request{})},
		"name":        {agent.Rule{Tools: []string{"run"}}, called("run", request{}), called("write", request{})},
		"reads":       {agent.Rule{Class: agent.ClassReads}, called("fetch", web), called("write", request{})},
		"writes":      {agent.Rule{Class: agent.ClassWrites}, called("write", request{}), called("fetch", web)},
	} {
		t.Run(name, func(t *testing.T) {
			var made []request
			var tools []tool.Tool
			for _, name := range []string{"write", "run", "fetch", "tickets__close", "calendar__close", "subagent__cook", "subagent__clerk"} {
				tools = append(tools, tool.New(name, "", func(_ context.Context, _ *tool.Call, in request) (string, error) {
					made = append(made, in)
					return "made", nil
				}, &tool.Options{ReadOnly: name == "fetch"}))
			}
			c.rule.Do, c.rule.Reason = agent.RulingDeny, "Not this."
			b := setup(t, agent.Definition{Rules: []agent.Rule{c.rule}}, testsuite.NewScript(
				testsuite.Reply{Calls: []testsuite.Call{c.refused, c.made}}, testsuite.Reply{Text: "done"}), tools...)
			require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
			told := rows(b, 1)
			require.Equal(t, "Permission denied by rule 0. Not this.", told[0].Text)
			require.Equal(t, "made", told[1].Text)
			require.Len(t, made, 1)
			raw, err := json.Marshal(made[0])
			require.NoError(t, err)
			require.JSONEq(t, c.made.Raw, string(raw))
		})
	}
}

// A budget of one action: the second asks, as input_required, and an approval lets the run go on
// (HA-64).
func TestABudgetOfOneAction(t *testing.T) {
	made, asked := 0, false
	pay := tool.New("pay", "", func(context.Context, *tool.Call, none) (string, error) { made++; return "paid", nil }, nil)
	b := setup(t, agent.Definition{Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, AfterCalls: 1}}}, testsuite.NewScript(
		testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Text: "done"}), pay)
	b.after(time.Hour, func() {
		s := b.status(t).Suspension
		require.Equal(t, agent.SuspensionInputRequired, s.Kind)
		require.Equal(t, agent.RequestApproval, s.Requests[0].Type)
		require.Equal(t, 1, made)
		asked = true
		b.signal("approve", `{"request":"q-1"}`)
	})
	o := b.start(t, agent.Start{})
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.True(t, asked, "the run has waited")
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
