package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// books are a company's open orders, and what was booked, by idempotency key.
type books struct {
	orders map[string][]string // by customer
	booked map[string]string
}

// book books an invoice. It finds out only while it works whether it needs a person.
func (b *books) book(_ context.Context, call *tool.Call, customer string) (string, error) {
	found := b.orders[customer] // looks: it may be done again
	if len(found) > 1 {
		order, err := flow.AskIn[string](call, "Which order is the invoice for?", &flow.AskOptions{Choices: found})
		if err != nil {
			return "", err // the first time: tool.ErrAsked. The code runs again with the answer
		}
		found = []string{order}
	}
	b.booked[call.Key] = strings.Join(found, "") // the same key each time that the step runs
	return b.booked[call.Key], nil
}

func invoices(b *books) flow.Flow {
	return flow.New("invoice", func(c flow.Context, customer string) (string, error) {
		return flow.Do(c, "book", func(ctx context.Context, call *tool.Call) (string, error) {
			return b.book(ctx, call, customer)
		}, nil)
	}, nil)
}

// An invoice that matches two orders: the step asks which one, and goes on with the answer.
func ExampleAskIn() {
	b := &books{orders: map[string][]string{"ana": {"A-1", "A-2"}}, booked: map[string]string{}}
	f := invoices(b) // for worker.Options.Flows
	TestInvoice := func(t *testing.T) {
		r := testsuite.Rehearse(t, f, "ana", func(s testsuite.RehearsedStep) (any, error) { return s.Do(t.Context(), "A-2") })
		require.Equal(t, "A-2", r.Text)
	}
	fmt.Printf("%s %T\n", f.Definition().Name, TestInvoice)
	// Output: invoice func(*testing.T)
}

// invoice is what an agent reads out of a letter.
type invoice struct {
	Supplier string   `json:"supplier"`
	Items    []string `json:"items"`
	EUR      int      `json:"eur"`
}

// letters reads invoices, and a person corrects what the agent has read.
var letters = flow.New("letters", func(c flow.Context, letter string) (invoice, error) {
	read, err := flow.Agent[invoice](c, "reader", letter, nil)
	if err != nil {
		return read, err
	}
	err = flow.Overlay(c, "What is wrong?", &read, &flow.AskOptions{Deadline: 24 * time.Hour, Default: "{}"})
	return read, err
}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reader"}}})

// The answer names the fields that are wrong, and the others stay. After a day without one, all stay.
func ExampleOverlay() {
	fmt.Println(letters.Definition().Name) // a worker gets it in worker.Options.Flows, and TestLetters rehearses it
	// Output: letters
}

// The example, run: with one order nobody is asked.
func TestTheExample(t *testing.T) {
	b := &books{orders: map[string][]string{"ana": {"A-1", "A-2"}, "ben": {"B-1"}}, booked: map[string]string{}}
	for customer, want := range map[string]string{"ana": "A-2", "ben": "B-1"} {
		r := testsuite.Rehearse(t, invoices(b), customer, func(s testsuite.RehearsedStep) (any, error) { return s.Do(t.Context(), "A-2") })
		require.NoError(t, r.Err)
		require.Equal(t, want, r.Text)
	}
}

// The letters, rehearsed.
func TestLetters(t *testing.T) {
	r := testsuite.Rehearse(t, letters, "Dear Sirs, …", func(s testsuite.RehearsedStep) (any, error) {
		if s.Name == "reader" {
			return invoice{"Acme", []string{"ink", "pens"}, 50}, nil
		}
		return json.RawMessage(`{"items":["ink"],"eur":5}`), nil
	})
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"supplier":"Acme","items":["ink"],"eur":5}`, string(r.Output))
}
