package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// charge is what the house's activities and workflows take.
type charge struct {
	Card  string `json:"card"`
	Cents int    `json:"cents"`
}

type receipt struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// outsider is a worker that somebody has without Fermata.
type outsider struct {
	queue string
	did   counts
	begun chan string
	free  chan bool
}

func (h *outsider) pay(_ context.Context, in charge) (receipt, error) {
	switch n := h.did.add("pay " + in.Card); {
	case in.Card == "declined":
		return receipt{}, temporal.NewApplicationError("the card was declined", "CardDeclined")
	case in.Card == "stolen":
		return receipt{}, temporal.NewApplicationError("the card is stolen", "denied")
	case in.Card == "flaky" && n < 3:
		return receipt{}, errors.New("the bank is away")
	}
	return receipt{ID: "r-1", Cents: in.Cents}, nil
}

// slow works until it is let go or cancelled.
func (h *outsider) slow(ctx context.Context, _ charge) (string, error) {
	h.did.add("slow")
	h.begun <- activity.GetInfo(ctx).WorkflowExecution.ID
	for {
		select {
		case <-h.free:
			return "slowly done", nil
		case <-ctx.Done():
			h.did.add("slow cancelled")
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
			activity.RecordHeartbeat(ctx)
		}
	}
}

// lost is an activity whose first attempt gives no sign of life, as if its worker were killed.
func (h *outsider) lost(ctx context.Context, _ charge) (string, error) {
	if h.did.add("lost") == 1 {
		h.begun <- ""
		<-h.free
	}
	return "found", nil
}

// order is a workflow that waits for a signal.
func (h *outsider) order(ctx workflow.Context, in charge) (receipt, error) {
	if in.Card == "stubborn" {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	if in.Card == "waits" || in.Card == "stubborn" {
		h.begun <- workflow.GetInfo(ctx).WorkflowExecution.ID //workflowcheck:ignore only the test sees it
		wait := workflow.NewSelector(ctx)
		wait.AddReceive(workflow.GetSignalChannel(ctx, "go"), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil) })
		wait.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
		if wait.Select(ctx); ctx.Err() != nil {
			return receipt{}, ctx.Err()
		}
	}
	if in.Card == "declined" {
		return receipt{}, temporal.NewApplicationError("the order was declined", "OrderDeclined")
	}
	return receipt{ID: "o-1", Cents: in.Cents}, nil
}

// outsider starts such a worker.
func (s *stage) outsider(t *testing.T, c client.Client) *outsider {
	t.Helper()
	h := &outsider{queue: s.queue + ".house", begun: make(chan string, 20), free: make(chan bool, 20)}
	h.work(t, c)
	return h
}

func (h *outsider) work(t *testing.T, c client.Client) {
	t.Helper()
	w := sdk.New(c, h.queue, sdk.Options{WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 100 * time.Millisecond})
	w.RegisterActivityWithOptions(h.pay, activity.RegisterOptions{Name: "Pay"})
	w.RegisterActivityWithOptions(h.slow, activity.RegisterOptions{Name: "Slow"})
	w.RegisterActivityWithOptions(func(context.Context, charge) ([]byte, error) { return []byte{1, 2}, nil }, activity.RegisterOptions{Name: "Bytes"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "Nothing"})
	w.RegisterActivityWithOptions(h.lost, activity.RegisterOptions{Name: "Lost"})
	w.RegisterWorkflowWithOptions(h.order, workflow.RegisterOptions{Name: "Order"})
	service := nexus.NewService("payments")
	pay := nexus.NewSyncOperation("pay", func(ctx context.Context, in charge, _ nexus.StartOperationOptions) (receipt, error) {
		if in.Card == "declined" {
			return receipt{}, nexus.NewOperationFailedErrorf("the card was declined abroad")
		}
		return receipt{ID: "n-1", Cents: in.Cents}, nil
	})
	require.NoError(t, service.Register(pay))
	w.RegisterNexusService(service)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// agentWith is a stage with an agent whose model calls one tool and says what came of it.
func agentWith(t *testing.T, make func(queue string) tool.Tool, arguments string, rules ...agent.Rule) (*stage, *outsider) {
	t.Helper()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	h := s.outsider(t, s.temporal)
	outside := make(h.queue)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if last := lastSaid(r); last.Role == agent.RoleTool {
			return saysText(string(last.Parts[0].Result.Status) + ": " + last.Parts[0].Result.Text)
		}
		return callsTool(outside.Spec().Name, arguments)
	})
	s.workOutside(t, m, []tool.Tool{outside}, agent.Definition{Tools: []string{outside.Spec().Name}, Rules: rules})
	return s, h
}

// workOutside starts a worker of one agent.
func (s *stage) workOutside(t *testing.T, m modelFunc, tools []tool.Tool, def agent.Definition) {
	t.Helper()
	def.Name, def.Model = "tester", "script"
	s.worker = s.open(t, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{def}, Tools: tools, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
	})
}

func TestAToolIsAnActivity(t *testing.T) {
	t.Parallel()
	target := func(kind string, o *tool.Options) func(string) tool.Tool {
		return func(queue string) tool.Tool {
			return tool.Activity[charge]("pay", "Pays.", tool.ActivityTarget{Type: kind, TaskQueue: queue}, o)
		}
	}
	for name, c := range map[string]struct {
		make      func(string) tool.Tool
		card      string
		says, not string
	}{
		"succeeds":       {target("Pay", nil), "visa", `ok: {"id":"r-1","cents":7}`, ""},
		"fails":          {target("Pay", nil), "declined", "failed: the card was declined", ""},
		"is refused":     {target("Pay", &tool.Options{Attempts: 3}), "stolen", "rejected: the card is stolen", ""},
		"is tried again": {target("Pay", &tool.Options{Attempts: 3}), "flaky", `ok: {"id":"r-1","cents":7}`, ""},
		"is not there":   {target("Play", nil), "visa", "failed: A worker took activity Play on task queue", ""},
		"is no JSON":     {target("Bytes", nil), "visa", "its result can't be read: it is binary/plain, and not JSON", ""},
		"nobody polls": {func(queue string) tool.Tool {
			return tool.Activity[charge]("pay", "Pays.", tool.ActivityTarget{Type: "Pay", TaskQueue: queue + ".none", StartTimeout: time.Second}, nil)
		}, "visa", "failed: No worker took activity Pay on task queue", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := agentWith(t, c.make, fmt.Sprintf(`{"card":%q,"cents":7}`, c.card))
			_, out := s.run(t, "pay", nil)
			require.Contains(t, out.Text, c.says)
		})
	}
}

// Rules and approvals hold for them as for every tool; edited arguments are checked once more.
func TestAnActivityNeedsAnApproval(t *testing.T) {
	t.Parallel()
	rules := []agent.Rule{
		{Tools: []string{"pay"}, Do: agent.RulingDeny, Arguments: []byte(`{"properties":{"cents":{"minimum":100}},"required":["cents"]}`), Reason: "Too much."},
		{Tools: []string{"pay"}, Do: agent.RulingAsk},
	}
	make := func(queue string) tool.Tool {
		return tool.Activity[charge]("pay", "Pays.", tool.ActivityTarget{Type: "Pay", TaskQueue: queue}, nil)
	}
	for edited, says := range map[string]string{
		`{"card":"visa","cents":9}`:   `{"id":"r-1","cents":9}`,
		`{"card":"visa","cents":900}`: "rejected: ",
	} {
		s, h := agentWith(t, make, `{"card":"visa","cents":7}`, rules...)
		run, err := s.Start(t.Context(), "tester", "pay", nil)
		require.NoError(t, err)
		r := s.suspended(t, run).Requests[0]
		s.say(t, run, agent.ApproveCommand{Request: r.ID, Arguments: []byte(edited)})
		out := s.rest(t, run)
		require.Contains(t, out.Text, says)
		require.Equal(t, map[bool]int{true: 1, false: 0}[says != "rejected: "], h.did.n["pay visa"])
	}
}

func TestAToolIsAWorkflow(t *testing.T) {
	t.Parallel()
	make := func(queue string) tool.Tool {
		return tool.Workflow[charge]("order", "Orders.", tool.WorkflowTarget{Type: "Order", TaskQueue: queue}, nil)
	}
	for card, says := range map[string]string{"visa": `ok: {"id":"o-1","cents":7}`, "declined": "failed: the order was declined"} {
		s, _ := agentWith(t, make, fmt.Sprintf(`{"card":%q,"cents":7}`, card))
		_, out := s.run(t, "order", nil)
		require.Equal(t, says, out.Text)
	}
}

func TestAToolIsANexusOperation(t *testing.T) {
	t.Parallel()
	if _, ok := shared(t).(remote); ok {
		t.Skip("another server may have no HTTP port, or let nobody make endpoints")
	}
	for card, says := range map[string]string{"visa": `ok: {"id":"n-1","cents":7}`, "declined": "failed: the card was declined abroad"} {
		endpoint := "e" + uuid.NewString()[:8]
		s, h := agentWith(t, func(string) tool.Tool {
			return tool.Nexus[charge]("pay", "Pays.", tool.NexusTarget{Endpoint: endpoint, Service: "payments", Operation: "pay"}, nil)
		}, fmt.Sprintf(`{"card":%q,"cents":7}`, card))
		create := func() {
			_, err := s.temporal.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{Spec: &nexuspb.EndpointSpec{
				Name: endpoint, Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{Worker: &nexuspb.EndpointTarget_Worker{Namespace: "default", TaskQueue: h.queue}}},
			}})
			require.NoError(t, err)
		}
		if card == "visa" {
			create()
		}
		run, err := s.Start(t.Context(), "tester", "pay", nil)
		require.NoError(t, err)
		if card == "declined" { // the call waits for the endpoint, and the run answers all the same
			s.until(t, run, agent.EventCallStarted)
			status, err := run.Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.StatusRunning, status.Status)
			create()
		}
		require.Equal(t, says, s.rest(t, run).Text)
		if card == "visa" {
			s.keep(t, "outside-nexus", run.Session, run.ID)
			s.keep(t, "outside-nexus-call", agent.IdempotencyKey(run.ID, "t1.1"), "")
		}
	}
}

// flowOutside is a stage with a flow and somebody's own worker.
func flowOutside(t *testing.T, make func(h *outsider) func(flow.Context, string) (string, error)) (*stage, *outsider) {
	t.Helper()
	var do func(flow.Context, string) (string, error)
	s, _ := flows(t, flow.New("outside", func(c flow.Context, in string) (string, error) { return do(c, in) }, nil), nil, nil)
	h := s.outsider(t, s.temporal)
	do = make(h)
	return s, h
}

func TestAFlowCallsActivitiesAndWorkflows(t *testing.T) {
	t.Parallel()
	s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
		at := &flow.ActivityOptions{TaskQueue: h.queue}
		return func(c flow.Context, card string) (string, error) {
			switch card {
			case "nowhere":
				return flow.Activity[string](c, "Pay", charge{}, nil)
			case "wrong":
				n, err := flow.Activity[int](c, "Pay", charge{Cents: 3}, at)
				return fmt.Sprint(n), err
			}
			paid, err := flow.Activity[receipt](c, "Pay", charge{card, 7}, at)
			if err != nil {
				return "", err
			}
			if _, err := flow.Activity[receipt](c, "Nothing", nil, at); err != nil {
				return "", err
			}
			ordered, err := flow.Workflow[receipt](c, "Order", charge{card, paid.Cents + 1}, &flow.WorkflowOptions{TaskQueue: h.queue})
			return fmt.Sprint(paid, ordered), err
		}
	})
	for in, says := range map[string]string{
		"visa":     "{r-1 7} {o-1 8}",
		"declined": "step Pay (temporal): failed: the card was declined",
		"wrong":    `step Pay: "{\"id\":\"r-1\",\"cents\":3}" is no int`,
		"nowhere":  "the call of the activity needs a task queue",
	} {
		run, err := s.Start(t.Context(), "outside", in, nil)
		require.NoError(t, err)
		out := s.rest(t, run)
		if out.Error != nil {
			out.Text = out.Error.Message
		}
		require.Contains(t, out.Text, says)
		if in == "visa" {
			s.keep(t, "outside", run.Session, run.ID)
		}
	}
	require.Equal(t, 1, h.did.n["pay visa"])
}

// An interrupt cancels an activity, and a person says what to do about it.
func TestAnInterruptCancelsAnActivity(t *testing.T) {
	t.Parallel()
	s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
		return func(c flow.Context, _ string) (string, error) {
			return flow.Activity[string](c, "Slow", charge{}, &flow.ActivityOptions{TaskQueue: h.queue, Heartbeat: 10 * time.Second})
		}
	})
	run, err := s.Start(t.Context(), "outside", "go", nil)
	require.NoError(t, err)
	<-h.begun
	s.say(t, run, agent.InterruptCommand{})
	r := s.suspended(t, run)
	require.Equal(t, 1, h.did.n["slow cancelled"])
	require.Len(t, r.Requests, 1)
	require.Contains(t, r.Requests[0].Context, "activity Slow on task queue")
	s.say(t, run, agent.AnswerCommand{Request: r.Requests[0].ID, Text: "again"})
	s.say(t, run, agent.ResumeCommand{})
	<-h.begun
	h.free <- true
	require.Equal(t, "slowly done", s.rest(t, run).Text)
	require.Equal(t, 2, h.did.n["slow"])
}

// A workflow is cancelled by an interrupt, and made again with the same ID.
func TestAnInterruptCancelsAWorkflow(t *testing.T) {
	t.Parallel()
	s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
		return func(c flow.Context, _ string) (string, error) {
			o := &flow.WorkflowOptions{TaskQueue: h.queue}
			o.OnUnknown = flow.OnUnknownAgain
			r, err := flow.Workflow[receipt](c, "Order", charge{"waits", 7}, o)
			return r.ID, err
		}
	})
	run, err := s.Start(t.Context(), "outside", "go", nil)
	require.NoError(t, err)
	id := <-h.begun
	require.Equal(t, agent.IdempotencyKey(run.ID, "Order"), id)
	s.say(t, run, agent.InterruptCommand{})
	s.suspended(t, run)
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_CANCELED, d.WorkflowExecutionInfo.Status)
	s.say(t, run, agent.ResumeCommand{})
	require.Equal(t, id, <-h.begun)
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), id, "", "go", ""))
	require.Equal(t, "o-1", s.rest(t, run).Text)
	s.keep(t, "outside-interrupted", run.Session, run.ID)
}

// A workflow that does not heed its cancellation is no reason to start it twice: made again, the
// step waits for it.
func TestAWorkflowGoesOnInSpiteOfAnInterrupt(t *testing.T) {
	t.Parallel()
	s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
		return func(c flow.Context, _ string) (string, error) {
			r, err := flow.Workflow[receipt](c, "Order", charge{"stubborn", 7}, &flow.WorkflowOptions{TaskQueue: h.queue})
			return r.ID, err
		}
	})
	run, err := s.Start(t.Context(), "outside", "go", nil)
	require.NoError(t, err)
	id := <-h.begun
	s.say(t, run, agent.InterruptCommand{Grace: agent.Duration(100 * time.Millisecond)})
	require.Len(t, s.suspended(t, run).Requests, 1)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "again"})
	s.say(t, run, agent.ResumeCommand{})
	s.until(t, run, agent.EventRunResumed)
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), id, "", "go", ""))
	require.Equal(t, "o-1", s.rest(t, run).Text)
	require.Empty(t, h.begun)
}

// A workflow that runs already, or has completed, is not started again: the step takes its result.
func TestAWorkflowIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	for _, card := range []string{"visa", "waits"} {
		s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
			return func(c flow.Context, _ string) (string, error) {
				if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
					return "", err
				}
				r, err := flow.Workflow[receipt](c, "Order", charge{"other", 9}, &flow.WorkflowOptions{TaskQueue: h.queue})
				return fmt.Sprint(r), err
			}
		})
		run, err := s.Start(t.Context(), "outside", "go", nil)
		require.NoError(t, err)
		s.suspended(t, run)
		id := agent.IdempotencyKey(run.ID, "Order")
		order, err := s.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: h.queue}, "Order", charge{card, 7})
		require.NoError(t, err)
		if card == "visa" {
			require.NoError(t, order.Get(t.Context(), nil))
		}
		s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
		if card == "waits" {
			<-h.begun
			s.until(t, run, agent.EventCallStarted)
			require.NoError(t, s.temporal.SignalWorkflow(t.Context(), id, "", "go", ""))
		}
		require.Equal(t, "{o-1 7}", s.rest(t, run).Text)
	}
}

// A stop cancels what is called, and so does a branch that has decided.
func TestAStopAndADropCancelWhatIsCalled(t *testing.T) {
	t.Parallel()
	s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
		return func(c flow.Context, in string) (string, error) {
			at := &flow.ActivityOptions{TaskQueue: h.queue, Heartbeat: 10 * time.Second}
			if in == "stop" {
				r, err := flow.Workflow[receipt](c, "Order", charge{"waits", 7}, &flow.WorkflowOptions{TaskQueue: h.queue})
				return r.ID, err
			}
			got, err := flow.Map(c, "kind", []string{"Slow", "Pay"}, func(c flow.Context, kind string) (string, error) {
				return flow.Activity[string](c, kind, charge{"visa", 7}, at)
			}, &flow.MapOptions{Need: 1})
			return fmt.Sprint(flow.Values(got)), err
		}
	})
	run, err := s.Start(t.Context(), "outside", "drop", nil)
	require.NoError(t, err)
	require.Equal(t, `[{"id":"r-1","cents":7}]`, s.rest(t, run).Text)
	<-h.begun
	require.Eventually(t, func() bool { h.did.mu.Lock(); defer h.did.mu.Unlock(); return h.did.n["slow cancelled"] == 1 }, patience, 10*time.Millisecond)

	run, err = s.Start(t.Context(), "outside", "stop", nil)
	require.NoError(t, err)
	id := <-h.begun
	s.say(t, run, agent.StopCommand{})
	require.Equal(t, agent.StatusStopped, s.rest(t, run).Status)
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		return err == nil && d.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED
	}, patience, 10*time.Millisecond)
}

// A lost worker of somebody's own leaves a call unknown, or the server tries again.
func TestTheWorkerOfAnActivityIsLost(t *testing.T) {
	t.Parallel()
	for attempts, says := range map[int]string{1: "step Lost (temporal): unknown: Unknown outcome: the worker of activity Lost", 2: "found"} {
		s, h := flowOutside(t, func(h *outsider) func(flow.Context, string) (string, error) {
			return func(c flow.Context, _ string) (string, error) {
				o := &flow.ActivityOptions{TaskQueue: h.queue, Heartbeat: time.Second}
				o.Attempts, o.OnUnknown = attempts, flow.OnUnknownFail
				return flow.Activity[string](c, "Lost", charge{}, o)
			}
		})
		run, err := s.Start(t.Context(), "outside", "go", nil)
		require.NoError(t, err)
		out := s.rest(t, run)
		if out.Error != nil {
			out.Text = out.Error.Message
		}
		require.Contains(t, out.Text, says)
		close(h.free)
	}
}

// The worker of Fermata is replaced while an activity works: the call is not made again.
func TestAnActivityOutlivesTheRunsWorker(t *testing.T) {
	t.Parallel()
	s, h := agentWith(t, func(queue string) tool.Tool {
		return tool.Activity[charge]("slow", "Waits.", tool.ActivityTarget{Type: "Slow", TaskQueue: queue}, nil)
	}, `{"card":"visa","cents":7}`)
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	<-h.begun
	s.worker.Stop()
	h.free <- true
	s.workOutside(t, func(_ context.Context, r *model.Request) *model.Reply {
		return saysText(r.Messages[len(r.Messages)-1].Parts[0].Result.Text)
	}, nil, agent.Definition{})
	require.Equal(t, "slowly done", s.rest(t, run).Text)
	require.Equal(t, 1, h.did.n["slow"])
}

// Somebody's own workers may have a codec. The worker of Fermata needs it too, and so does a
// preflight.
func TestTheWorkersOfActivitiesHaveACodec(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	zipped := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	options := connection(slog.DiscardHandler)
	options.DataConverter = zipped
	c, err := shared(t).Dial(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	h := s.outsider(t, c)
	f := flow.New("outside", func(c flow.Context, _ string) (string, error) {
		paid, err := flow.Activity[receipt](c, "Pay", charge{"visa", 7}, &flow.ActivityOptions{TaskQueue: h.queue})
		if err != nil {
			return "", err
		}
		if _, err := flow.Ask[string](c, "Go on?", nil); err != nil {
			return "", err
		}
		ordered, err := flow.Workflow[receipt](c, "Order", charge{"visa", 8}, &flow.WorkflowOptions{TaskQueue: h.queue})
		return fmt.Sprint(paid, ordered), err
	}, nil)
	for _, taken := range []bool{false, true} {
		o := &worker.Options{TaskQueue: s.queue, Flows: []flow.Flow{f}, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Converter: zipped}
		if !taken {
			s.open(t, o)
		}
		run, err := s.Start(t.Context(), "outside", "go", nil)
		require.NoError(t, err)
		s.suspended(t, run)
		if taken { // by a workflow that was there before
			order, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: agent.IdempotencyKey(run.ID, "Order"), TaskQueue: h.queue}, "Order", charge{"visa", 8})
			require.NoError(t, err)
			require.NoError(t, order.Get(t.Context(), nil))
		}
		s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "yes"})
		require.Equal(t, "{r-1 7} {o-1 8}", s.rest(t, run).Text)
		for v, err := range worker.Preflight(t.Context(), s.temporal, o, &worker.PreflightOptions{Closed: maxReplays}) {
			require.NoError(t, err)
			require.NoError(t, v.Err())
		}
	}
}

// A versioned worker's runs call what has no versions.
func TestAVersionedWorkerCallsUnversionedOnes(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	h := s.outsider(t, s.temporal)
	f := fleet{s, "shop-" + uuid.NewString()[:8]}
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Deployment: f.name, Build: "a",
		Flows: []flow.Flow{flow.New("outside", func(c flow.Context, _ string) (string, error) {
			paid, err := flow.Activity[receipt](c, "Pay", charge{"visa", 7}, &flow.ActivityOptions{TaskQueue: h.queue})
			if err != nil {
				return "", err
			}
			ordered, err := flow.Workflow[receipt](c, "Order", charge{"visa", 8}, &flow.WorkflowOptions{TaskQueue: h.queue})
			return fmt.Sprint(paid, ordered), err
		}, nil)},
	})
	f.switchTo(t, "a")
	run, err := s.Start(t.Context(), "outside", "go", nil)
	require.NoError(t, err)
	require.Equal(t, "{r-1 7} {o-1 8}", s.rest(t, run).Text)
}

// A worker says at its start which task queues its tools call in vain.
func TestAWorkerWarnsOfATaskQueueThatNobodyPolls(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	h := s.outsider(t, s.temporal)
	require.Eventually(t, func() bool {
		d, err := s.temporal.DescribeTaskQueue(t.Context(), h.queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
		return err == nil && len(d.GetPollers()) > 0
	}, patience, 10*time.Millisecond)
	core, said := observer.New(zap.WarnLevel)
	target := tool.ActivityTarget{Type: "Pay", TaskQueue: h.queue}
	nobody := tool.WorkflowTarget{Type: "Order", TaskQueue: "nobody-" + s.queue}
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.New(core), Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Models: map[string]model.Model{"script": modelFunc(nil)},
		Tools: []tool.Tool{tool.Activity[charge]("pay", "", target, nil), tool.Workflow[charge]("order", "", nobody, nil), tool.Workflow[charge]("again", "", nobody, nil)},
	})
	warned := said.FilterMessageSnippet("no worker polls").All()
	require.Len(t, warned, 1)
	require.Contains(t, warned[0].Message, "the task queue nobody-"+s.queue+" for workflows, which the tools order, again call")
}
