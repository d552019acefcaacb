package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// busyFor is how long a worker that starts waits for a server that is too busy to be
// looked at. A deploy starts many at once, and listings are bounded by the namespace.
const busyFor = 2 * time.Minute

// check looks at all that a worker needs before it takes work.
func (w *Worker) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	for _, look := range []func(context.Context) error{w.checkStore, w.checkAttributes, w.checkKeys} {
		if err := w.patiently(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

// patiently looks again where the server did not answer in time, and says so.
func (w *Worker) patiently(ctx context.Context, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if !errors.Is(err, agent.Timeout) || ctx.Err() != nil {
			return err
		}
		w.logger.Info("the server is too busy to be looked at; looking again", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// again is how long a worker waits between two looks.
const again = time.Second

// checkStore refuses transcripts that another worker could not read.
func (w *Worker) checkStore(ctx context.Context) error {
	var server peer.Peer
	_, err := w.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}, grpc.Peer(&server))
	if err != nil {
		return durable.ArriveRPC(err)
	}
	kept := w.store
	if e, ok := kept.(*store.Encrypted); ok {
		kept = e.Inner()
	}
	dir, ok := kept.(*store.Dir)
	if !ok || dir.Shared() || server.Addr == nil || loopback(server.Addr.String()) {
		return nil
	}
	return agent.Errorf(agent.NotSetUp, "the store in %s is on this machine, and Temporal is at %s: a worker elsewhere could not read the transcripts. Open the store as shared (store.DirOptions, --store-shared) if every worker sees this folder, or use another store", dir.Root(), server.Addr)
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a pipe or a socket file
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// checkAttributes refuses a namespace that lacks a search attribute: the first
// run would hang there for ever.
func (w *Worker) checkAttributes(ctx context.Context) error {
	missing, err := MissingAttributes(ctx, w.temporal)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return agent.Errorf(agent.NotSetUp, "the namespace lacks the search attributes %s: run fermata setup, once a namespace", strings.Join(missing, ", "))
	}
	return nil
}

// checkKeys refuses to take work that this process can't decrypt: it looks at a live
// run of its queue, and at a head of the store. Where there is neither the first task tells.
func (w *Worker) checkKeys(ctx context.Context) error {
	live, err := w.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 1, Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = %s", signals.WorkflowType, signals.Quote(w.bus.queue)),
	})
	if err != nil {
		return fmt.Errorf("looking at a live run: %w", durable.ArriveRPC(err))
	}
	for _, run := range live.GetExecutions() {
		for _, p := range run.GetMemo().GetFields() {
			if err := durable.Unreadable(p); err != nil {
				return err
			}
		}
	}
	if w.store == nil {
		return nil
	}
	for _, err := range store.NewLog(w.store).Store().Heads(ctx, "") {
		if errors.Is(err, agent.NotSetUp) {
			return err
		}
		break
	}
	return nil
}

// MissingAttributes lists the search attributes that the client's namespace
// lacks, or has with another type. It asks as any reader would, since not every
// server shows its attributes to workers; and once where nothing is missing, since a
// server lets through ten listings a second by default.
func MissingAttributes(ctx context.Context, c client.Client) (missing []string, err error) {
	var all []string
	for _, a := range agent.Attributes() {
		all = append(all, a.Name+comparisons[a.Type])
	}
	known, err := knows(ctx, c, strings.Join(all, " AND "))
	if known || err != nil {
		return nil, err
	}
	for i, a := range agent.Attributes() {
		switch known, err := knows(ctx, c, all[i]); {
		case err != nil:
			return nil, err
		case !known:
			missing = append(missing, a.Name)
		}
	}
	return missing, nil
}

// knows tells whether a namespace has all that a query names.
func knows(ctx context.Context, c client.Client, query string) (bool, error) {
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	var unknown *serviceerror.InvalidArgument
	if errors.As(err, &unknown) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for search attributes: %w", durable.ArriveRPC(err))
	}
	return true, nil
}

// comparisons are queries that only an attribute of the type stands.
var comparisons = map[agent.AttributeType]string{
	agent.Keyword: " = 'none'", agent.KeywordList: " = 'none'", agent.Datetime: " < '1970-01-02T00:00:00Z'",
}
