package testsuite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// shop is what a program's worker runs.
func shop() *worker.Options {
	refund := tool.New("refund", "Gives money back.", func(context.Context, *tool.Call, struct{ EUR int }) (string, error) { return "refunded", nil }, &tool.Options{Attempts: 3})
	return &worker.Options{Tools: []tool.Tool{refund}, Agents: []agent.Definition{{
		Name: "desk", Model: "anthropic/claude-sonnet-5", Tools: []string{"refund", agent.AwaitResumptionTool}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"refund"}}},
	}}}
}

// refunding gives the money back, waits for a day, and is done.
func refunding() *testsuite.Script {
	return testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "refund", Arguments: map[string]any{"EUR": 20}}}},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "the bank", "conditions": map[string]any{"after": "24h"}}}}},
		testsuite.Reply{Text: "It has arrived."},
	)
}

// A stage plays an agent's whole story. A person's part is the test's own here.
func ExampleNew() {
	TestRefund := func(t *testing.T) {
		s := testsuite.New(t, &testsuite.Options{Worker: shop(), Model: refunding()})
		run := s.Start("desk", "I want my money back", nil)
		run.Approve()
		s.FastForward(24 * time.Hour)
		run.Completed()
		run.Golden("testdata/refund.txt")
	}
	fmt.Printf("%T\n", TestRefund)
	// Output: func(*testing.T)
}

// A person answers by rules, whenever something is asked.
func ExamplePerson() {
	TestRefund := func(t *testing.T) {
		person := &testsuite.Person{Rules: []testsuite.PersonRule{{Tool: "refund", Approve: true, Times: 1}, {Fail: "more than one refund"}}}
		s := testsuite.New(t, &testsuite.Options{Worker: shop(), Model: refunding(), Person: person})
		run := s.Start("desk", "I want my money back", nil)
		s.FastForward(24 * time.Hour)
		run.Completed()
	}
	fmt.Printf("%T\n", TestRefund)
	// Output: func(*testing.T)
}

// A story comes to the same end wherever its worker dies. The server is a client of
// any, such as devserver.ForTest(t).Client(t).
func ExampleEveryCrash() {
	var server temporal.Client
	TestRefund := func(t *testing.T) {
		testsuite.EveryCrash(t, func(t testing.TB, c *testsuite.Crash) any {
			s := testsuite.New(t, &testsuite.Options{Worker: shop(), Model: refunding(), Server: server, Crash: c})
			run := s.Start("desk", "I want my money back", nil)
			run.Approve()
			s.FastForward(24 * time.Hour)
			return run.Completed().Text
		})
	}
	fmt.Printf("%T\n", TestRefund)
	// Output: func(*testing.T)
}

// Recorded histories are replayed on the workflow of this build, and on what its
// worker has.
func ExampleReplay() {
	TestHistories := func(t *testing.T) {
		testsuite.Replay(t, shop(), "testdata/refund.json")
	}
	fmt.Printf("%T\n", TestHistories)
	// Output: func(*testing.T)
}

// What a model said once is played again, at no cost.
func ExampleScriptFromMessages() {
	script := testsuite.ScriptFromMessages([]agent.Message{
		agent.TextMessage(agent.RoleUser, "What is 1+2?"),
		agent.TextMessage(agent.RoleAssistant, "3"),
	})
	TestSum := func(t *testing.T) {
		s := testsuite.New(t, &testsuite.Options{Worker: shop(), Model: script})
		s.Start("desk", "What is 1+2?", nil).Completed()
	}
	fmt.Printf("%T\n", TestSum)
	// Output: func(*testing.T)
}

// The examples' tests, run.
func TestTheExamples(t *testing.T) {
	person := &testsuite.Person{Rules: []testsuite.PersonRule{{Tool: "refund", Approve: true, Times: 1}, {Fail: "more than one refund"}}}
	s := testsuite.New(t, &testsuite.Options{Worker: shop(), Model: refunding(), Person: person})
	run := s.Start("desk", "I want my money back", nil)
	s.FastForward(24 * time.Hour)
	run.Completed()
	run.Golden("testdata/refund.txt")
	testsuite.Replay(t, nil, "../workflows/testdata/history/v1-approved.json")
}
