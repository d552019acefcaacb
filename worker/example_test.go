package worker_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// claude stands for anthropic.New(nil), of the module provider/anthropic.
var claude model.Model = testsuite.NewScript()

// refund pays money back.
var refund = tool.New("refund", "Pays money back.",
	func(_ context.Context, _ *tool.Call, in struct{ EUR int }) (string, error) { return "paid", nil },
	&tool.Options{Approval: &agent.ToolApproval{}})

// server is a client of a Temporal server, and transcripts a store, as in ExampleRun.
var (
	server      temporal.Client
	transcripts store.Store
)

// options are what the worker of a support desk runs.
func options() *worker.Options {
	return &worker.Options{
		Agents: []agent.Definition{{Name: "cashier", Model: "anthropic/claude-sonnet-5", Tools: []string{"refund"}}},
		Tools:  []tool.Tool{refund},
		Models: map[string]model.Model{"anthropic": claude},
		Store:  transcripts,
	}
}

// A worker process runs agents until it is told to end, and then lets calls end.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := temporal.DialContext(ctx, temporal.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	transcripts, err := store.OpenDir("transcripts", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = worker.Run(ctx, server, &worker.Options{
		Agents:    []agent.Definition{{Name: "cashier", Model: "anthropic/claude-sonnet-5", Tools: []string{"refund"}}},
		Tools:     []tool.Tool{refund},
		Models:    map[string]model.Model{"anthropic": claude}, // anthropic.New(nil)
		Approvals: map[string]agent.ToolApproval{"bank__*": {Reason: "It moves money."}},
		Store:     transcripts,
		Logger:    worker.FromSlog(slog.Default()),
	})
	if err != nil {
		log.Fatal(err)
	}
}

// New tells all that is wrong with its options at once, before anything starts.
func ExampleNew() {
	_, err := worker.New(server, &worker.Options{
		Agents: []agent.Definition{{Name: "cashier", Model: "openai/gpt-5.4", Tools: []string{"refnd"}}},
		Tools:  []tool.Tool{refund},
		Models: map[string]model.Model{"anthropic": claude},
	})
	fmt.Println(err)
	// Output:
	// worker: worker.Options.Store is missing; open one with store.OpenDir
	// agent cashier: model "openai/gpt-5.4" is not in this worker's build; it has anthropic
	// agent cashier: tool "refnd" is not known; the worker has refund
}

// A program that logs with slog gives the worker its own logger.
func ExampleFromSlog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // so that the output is always the same
			return slog.Attr{}
		}
		return a
	}})
	o := options()
	o.Logger = worker.FromSlog(slog.New(handler).With("desk", "berlin"))

	o.Logger.Info("the worker starts", zap.Int("agents", len(o.Agents))) // as the worker logs
	// Output: level=INFO msg="the worker starts" desk=berlin agents=1
}

// The hook of Temporal's options lets a process run at most 20 tools at once.
func ExampleOptions_temporal() {
	o := options()
	o.Temporal = func(l worker.Lane, own *sdk.Options) {
		if l == worker.LaneTools {
			own.MaxConcurrentActivityExecutionSize = 20
		}
	}
	w, err := worker.New(server, o)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// All workers together begin 5 calls of a provider in a second, and a day costs 200 USD.
func ExampleOptions_limits() {
	o := options()
	o.RateLimits = map[string]worker.RateLimit{"anthropic": {PerSecond: 5, Concurrent: 10}}
	o.DailyLimits = agent.DailyLimits{CostUSD: 200 * agent.Dollar}
	if err := worker.Run(context.Background(), server, o); err != nil {
		log.Fatal(err)
	}
}

// Before a deploy, a new build tries the histories of all open runs.
func ExamplePreflight() {
	for v, err := range worker.Preflight(context.Background(), server, options(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		if v.Compatibility != worker.Compatible {
			fmt.Println(v.Session, v.Compatibility, v.Reason)
		}
	}
}
