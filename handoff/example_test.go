package handoff_test

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
)

// stopped is how a cashier ended, as client.Run.Result returns it.
func stopped() *agent.Outcome {
	h := handoff.Complete(agent.Handoff{
		Session: "ticket-7", Run: "01a1", Agent: "cashier", Status: agent.StatusStopped,
		Task: "Settle the broken lamp.", Reason: "the shift is over",
		Done:           []agent.WorkItem{{What: "look_up succeeded", Ref: "t1.1"}},
		UnknownEffects: []agent.UnknownEffect{{Call: "t2.1", Tool: "refund", Key: "01a1/t2.1", Since: "2026-11-25T16:00:00Z"}},
	}, `{"summary":"The lamp was delivered broken. I could not see whether the refund was paid.","not_started":["Tell the customer"],"confidence":0.9}`)
	return &agent.Outcome{Session: h.Session, Run: h.Run, Agent: h.Agent, Status: h.Status, Handoff: &h}
}

// A program reads a handoff as data: here what it has to look at before it continues.
func Example() {
	end := stopped() // client.Run.Result
	h := end.Handoff
	if h == nil { // it was not stopped
		return
	}
	fmt.Printf("%s, sure to %.0f%%: %s\n", h.Agent, 100*h.Confidence, h.Summary)
	for _, effect := range h.UnknownEffects {
		fmt.Printf("ask the bank whether %s with the key %s was paid\n", effect.Tool, effect.Key)
	}
	for _, item := range h.NotStarted {
		fmt.Println("to do:", item.What)
	}
	// Output:
	// cashier, sure to 90%: The lamp was delivered broken. I could not see whether the refund was paid.
	// ask the bank whether refund with the key 01a1/t2.1 was paid
	// to do: Tell the customer
}

// The model adds its summary to what the runtime knows, and changes none of that.
func ExampleComplete() {
	known := agent.Handoff{
		Session: "ticket-7", Run: "01a1", Agent: "cashier", Status: agent.StatusStopped, Task: "Settle the broken lamp.",
		Failed: []agent.WorkItem{{What: "refund failed: no such account", Ref: "t2.1"}},
	}
	h := handoff.Complete(known, `{"summary":"All is paid.","done":[{"what":"refund failed: no such account"},{"what":"Found the order"}]}`)
	fmt.Println("summary by", h.SummarizedBy)
	fmt.Println("done:", h.Done[0].What)
	fmt.Println("failed:", h.Failed[0].What)

	h = handoff.Complete(known, "") // the model did not answer in time
	fmt.Println("summary by", h.SummarizedBy)
	// Output:
	// summary by model
	// done: Found the order
	// failed: refund failed: no such account
	// summary by rule
}

// A run of several agents leaves one handoff, with the ends of its children in it.
func ExampleFromOutcome() {
	lead := agent.Handoff{Session: "ticket-7", Run: "01a1", Agent: "lead", Status: agent.StatusStopped, Task: "Triage the ticket.", Summary: "I wait for the cashier."}
	research := agent.Outcome{Session: "ticket-7/research-1", Agent: "research", Status: agent.StatusCompleted, Text: "It was delivered broken."}
	lead.Children = []agent.Handoff{
		handoff.FromOutcome(research, "Find the order."),
		handoff.Missing("ticket-7/cashier-1", "01a3", "cashier", "Pay 80 EUR back."),
	}
	h := handoff.Complete(lead, "")
	for one := range h.All() {
		fmt.Printf("%s (%s): %s\n", one.Agent, one.Status, one.Summary)
	}
	// Output:
	// lead (stopped): I wait for the cashier.
	// research (completed): It was delivered broken.
	// cashier (cancelled): It did not report in time: how far it got, and what it spent, is not known here.
}

// People read a handoff as a page of Markdown.
func ExampleMarkdown() {
	fmt.Print(handoff.Markdown(*stopped().Handoff))
	// Output:
	// # Handoff of cashier: stopped (the shift is over)
	//
	// Session ticket-7, run 01a1. Task: Settle the broken lamp.
	//
	// > The lamp was delivered broken. I could not see whether the refund was paid.
	//
	// Summed up by model. Confidence 0.90 by model.
	//
	// **Done**
	//
	// - look_up succeeded (t1.1)
	//
	// **Not started**
	//
	// - Tell the customer
	//
	// **Effects that nobody knows**
	//
	// - refund, call t2.1, began 2026-11-25T16:00:00Z, idempotency key 01a1/t2.1
	//
	// Used: 0 tokens in, 0 out, 0 USD.
}
