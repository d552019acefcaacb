package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// What the tools take. The model sees it as JSON Schemas.
type order struct{ Number int }
type query struct{ Words string }
type refund struct {
	Order int `json:"order" jsonschema:"the order's number"`
	EUR   int `json:"eur" jsonschema:"how much is paid back"`
}

// verdict is the form of the lead's answer.
type verdict struct {
	Urgent bool   `json:"urgent" jsonschema:"whether a person has to look today"`
	Reply  string `json:"reply" jsonschema:"what the customer is told"`
}

func lookUp(_ context.Context, _ *tool.Call, in order) (string, error) {
	return fmt.Sprintf("order %d: a lamp for 80 EUR, delivered broken", in.Number), nil
}

func search(_ context.Context, _ *tool.Call, in query) (string, error) {
	return "Broken goods are refunded in full.", nil
}

// payBack stands for a bank. A real one gets call.Key, so that a second attempt does not pay again.
func payBack(_ context.Context, call *tool.Call, in refund) (string, error) {
	return fmt.Sprintf("%d EUR are on their way (%s)", in.EUR, call.Key), nil
}

// options are what the worker runs.
func options() *worker.Options {
	return &worker.Options{
		Agents: []agent.Definition{
			{
				Name: "lead", Model: "anthropic/claude-sonnet-5", Output: model.OutputOf[verdict](),
				Instructions: "Triage the ticket: let research find the facts, and the cashier pay what we owe.",
				Agents:       []agent.SubAgent{{Agent: "research", Tools: []string{"*"}}, {Agent: "cashier", Tools: []string{"*"}}}, // all of their own tools
			},
			{Name: "research", Model: "anthropic/claude-sonnet-5", Tools: []string{"look_up", "search"}},
			{Name: "cashier", Model: "anthropic/claude-sonnet-5", Tools: []string{"refund"}},
		},
		Tools: []tool.Tool{
			tool.New("look_up", "Looks an order up.", lookUp, &tool.Options{ReadOnly: true}),
			tool.New("search", "Searches the terms of trade.", search, &tool.Options{ReadOnly: true}),
			tool.New("refund", "Pays money back.", payBack, &tool.Options{Attempts: 3, Approval: &agent.ToolApproval{}}),
		},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

// run is the client of a ticket or, without one, the worker.
func run(ctx context.Context, ticket string) error {
	c, err := temporal.DialContext(ctx, temporal.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	if ticket != "" {
		return triage(ctx, client.New(c, nil), ticket, os.Stdin, os.Stdout)
	}
	o := options()
	o.Models = map[string]model.Model{"anthropic": anthropic.New(nil)}
	if o.Store, err = store.OpenDir("transcripts", nil); err != nil {
		return err
	}
	return worker.Run(ctx, c, o)
}

// triage starts a run, asks the person at the terminal about each call that needs an approval, and
// shows the answer. Here nothing else asks.
func triage(ctx context.Context, c *client.Client, ticket string, in io.Reader, out io.Writer) error {
	run, err := c.Start(ctx, "lead", ticket, nil)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for q, err := range c.Requests(ctx, run.Session) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s (y/n) ", q.Text, q.Call.Arguments)
		if lines.Scan() && lines.Text() == "y" {
			_, err = c.Approve(ctx, q, nil)
		} else {
			_, err = c.Reject(ctx, q, "The clerk says no.", nil)
		}
		if err != nil {
			return err
		}
	}
	end, err := run.Result(ctx)
	if err != nil {
		return err
	}
	var v verdict
	if err := end.Decode(&v); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n", v.Reply)
	return err
}
