package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

type invoice struct {
	Number int `json:"number"`
	EUR    int `json:"eur"`
}

func pay(_ context.Context, _ *tool.Call, in invoice) (string, error) {
	return fmt.Sprintf("invoice %d is paid", in.Number), nil
}

var checking = make(chan struct{})

// reconcile is slow, and gives what it has when it is interrupted.
func reconcile(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
	close(checking)
	<-ctx.Done()
	return "half of the ledger is checked", nil
}

func main() {
	if err := hold(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func hold(ctx context.Context, out io.Writer) error {
	server, err := devserver.Start(ctx, &devserver.Options{InMemory: true})
	if err != nil {
		return err
	}
	defer server.Stop()
	c, err := server.Dial(ctx, temporal.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	stop, err := work(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	return steer(ctx, out, client.New(c, nil))
}

// steer does what people and programs do to a run.
func steer(ctx context.Context, out io.Writer, c *client.Client) error {
	run, err := c.Start(ctx, "payer", "Pay invoice 118, then check the ledger.", nil)
	if err != nil {
		return err
	}
	rest, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	ask := rest.Suspension.Requests[0]
	fmt.Fprintf(out, "%s %s\n", ask.Text, ask.Call.Arguments)
	if _, err := c.Approve(ctx, ask, &client.ApproveOptions{By: "ana"}); err != nil {
		return err
	}
	<-checking // the ledger is being checked
	if _, err := run.Interrupt(ctx, "the auditor rings", nil); err != nil {
		return err
	}
	if rest, err = run.Wait(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", rest.Status, rest.Suspension.Holds[0].Reason)
	if _, err := run.Stop(ctx, "the audit comes first", &client.StopOptions{Deadline: 10 * time.Second}); err != nil {
		return err
	}
	end, err := run.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n\n%s", end.Status, handoff.Markdown(*end.Handoff))
	return nil
}

// work starts a worker for the agent.
func work(ctx context.Context, c temporal.Client) (stop func(), err error) {
	folder, err := os.MkdirTemp("", "hold")
	if err != nil {
		return nil, err
	}
	transcripts, err := store.OpenDir(folder, nil)
	if err != nil {
		return nil, err
	}
	w, err := worker.New(c, &worker.Options{
		Agents: []agent.Definition{{
			Name: "payer", Model: "script", Tools: []string{"pay", "reconcile"},
			Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, Reason: "It costs money."}},
		}},
		Tools: []tool.Tool{tool.New("pay", "Pays an invoice.", pay, nil), tool.New("reconcile", "Checks the ledger.", reconcile, nil)},
		Models: map[string]model.Model{"script": testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"number": 118, "eur": 800}}}},
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "reconcile", Arguments: map[string]any{}}}},
			testsuite.Reply{Text: `{"summary":"Invoice 118 is paid. Half of the ledger is checked; the other half is open.","confidence":0.9}`},
		)},
		Store: transcripts,
	})
	if err != nil {
		return nil, err
	}
	if err := w.Start(ctx); err != nil {
		return nil, err
	}
	return func() { w.Stop(); os.RemoveAll(folder) }, nil
}
