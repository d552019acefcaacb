package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// The example, run: with one order nobody is asked.
func TestTheExample(t *testing.T) {
	b := &books{orders: map[string][]string{"ana": {"A-1", "A-2"}, "ben": {"B-1"}}, booked: map[string]string{}}
	for customer, want := range map[string]string{"ana": "A-2", "ben": "B-1"} {
		r := testsuite.Rehearse(t, invoices(b), customer, func(s testsuite.RehearsedStep) (any, error) { return s.Do(t.Context(), "A-2") })
		require.NoError(t, r.Err)
		require.Equal(t, want, r.Text)
	}
}
