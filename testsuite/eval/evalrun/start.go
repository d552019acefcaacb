package evalrun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// NewID returns the id of a new evaluation of a suite.
func NewID(suite string) string { return fmt.Sprintf("%s-%s", suite, uuid.NewString()[:8]) }

// Start starts an evaluation on the task queue info.Evaluator, whose worker has
// [Register]ed evaluations. dir is where the suite's files are now; their digests are part
// of the evaluation. An empty id gets a new one. [agent.CodeBusy] means that the id is
// taken.
func Start(ctx context.Context, c temporalclient.Client, s *eval.Suite, info eval.Info, dir string) (*Handle, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if info.ID == "" {
		info.ID = NewID(s.Name)
	}
	if info.Evaluator == "" || info.Queue == "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "an evaluation needs the task queues of the runs and of the evaluator")
	}
	info.Suite, info.Total = s.Name, s.Total()
	digests, err := fileDigests(s, dir)
	if err != nil {
		return nil, err
	}
	in := input{Info: info, Definition: s.WithDefaults(), Digests: digests}
	run, err := c.ExecuteWorkflow(ctx, temporalclient.StartWorkflowOptions{
		ID: info.ID, TaskQueue: info.Evaluator, Memo: map[string]any{memoKey: info},
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, WorkflowType, in)
	if err != nil {
		return nil, fmt.Errorf("starting the evaluation %s: %w", info.ID, durable.FromRPC(err))
	}
	return &Handle{client: c, Info: info, run: run.GetRunID()}, nil
}

// Handle is one evaluation.
type Handle struct {
	eval.Info
	client temporalclient.Client
	run    string
}

// Get finds an evaluation by its id. Errors are [agent.CodeNotFound], also for a workflow
// of another type.
func Get(ctx context.Context, c temporalclient.Client, id string) (*Handle, error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, fmt.Errorf("looking for the evaluation %s: %w", id, durable.FromRPC(err))
	}
	info, ok := infoOf(d.GetWorkflowExecutionInfo())
	if !ok {
		return nil, agent.Errorf(agent.CodeNotFound, "%s is no evaluation", id)
	}
	return &Handle{client: c, Info: info, run: d.GetWorkflowExecutionInfo().GetExecution().GetRunId()}, nil
}

func infoOf(e *workflowpb.WorkflowExecutionInfo) (info eval.Info, ok bool) {
	p, ok := e.GetMemo().GetFields()[memoKey]
	if !ok || e.GetType().GetName() != WorkflowType || converter.GetDefaultDataConverter().FromPayload(p, &info) != nil {
		return info, false
	}
	return info, true
}

// Progress returns where the evaluation stands. Unless it has ended, it needs its worker:
// [agent.CodeNoWorker] and [agent.CodeTimeout] mean that none answers.
func (h *Handle) Progress(ctx context.Context) (Progress, error) {
	d, err := h.client.DescribeWorkflowExecution(ctx, h.ID, h.run)
	if err != nil {
		return Progress{}, durable.FromRPC(err)
	}
	if durable.Closed(d.GetWorkflowExecutionInfo()) {
		return h.Result(ctx)
	}
	return progress.Ask(ctx, h.client, h.ID, h.run, struct{}{})
}

// Ended reports whether the evaluation has ended. It needs no worker.
func (h *Handle) Ended(ctx context.Context) (bool, error) {
	d, err := h.client.DescribeWorkflowExecution(ctx, h.ID, h.run)
	if err != nil {
		return false, durable.FromRPC(err)
	}
	return durable.Closed(d.GetWorkflowExecutionInfo()), nil
}

// Result waits for the end of the evaluation.
func (h *Handle) Result(ctx context.Context) (p Progress, err error) {
	if err := h.client.GetWorkflow(ctx, h.ID, h.run).Get(ctx, &p); err != nil {
		var e *agent.Error
		if e = durable.FromTemporal(err); ctx.Err() != nil || e == nil {
			return p, durable.FromRPC(err)
		}
		return p, fmt.Errorf("the evaluation %s: %w", h.ID, e)
	}
	return p, nil
}

// Cancel stops the evaluation: the runs of its trials are cancelled, and what has not begun
// is left out.
func (h *Handle) Cancel(ctx context.Context) error {
	return durable.FromRPC(h.client.CancelWorkflow(ctx, h.ID, h.run))
}

// Load returns the evaluation with its trials. Those that run or have not begun are not in
// it, unless the evaluation has ended: then they were left out.
func (h *Handle) Load(ctx context.Context) (*eval.Evaluation, error) {
	d, err := h.client.DescribeWorkflowExecution(ctx, h.ID, h.run)
	if err != nil {
		return nil, durable.FromRPC(err)
	}
	e := &eval.Evaluation{Info: h.Info, Started: d.GetWorkflowExecutionInfo().GetStartTime().AsTime()}
	if t := d.GetWorkflowExecutionInfo().GetCloseTime(); t != nil {
		e.Finished = t.AsTime()
	}
	in, err := h.input(ctx)
	if err != nil {
		return nil, err
	}
	e.Definition = in.Definition
	if e.Progress, err = h.Progress(ctx); err != nil {
		return nil, err
	}
	done := map[string]eval.Counts{}
	for _, c := range e.Progress.Done {
		done[trialID(h.ID, c.Case, c.N)] = c
	}
	for i := range in.Definition.Cases {
		c := in.Definition.Complete(i)
		for n := 1; n <= c.Trials; n++ {
			t := eval.Trial{Counts: eval.Counts{Case: c.Name, N: n, State: eval.StateLeftOut}, Why: "it did not begin: " + string(e.Progress.Stopped)}
			counts, ended := done[trialID(h.ID, c.Name, n)]
			switch {
			case ended:
				if t, err = h.Trial(ctx, counts); err != nil {
					return nil, err
				}
			case !e.Progress.Ended:
				continue
			}
			e.Trials = append(e.Trials, t)
		}
	}
	return e, nil
}

// Trial returns the record of a trial that has ended.
func (h *Handle) Trial(ctx context.Context, c eval.Counts) (t eval.Trial, err error) {
	// Ended, so this does not wait. A trial that could not even begin has no workflow.
	err = h.client.GetWorkflow(ctx, trialID(h.ID, c.Case, c.N), "").Get(ctx, &t)
	if ctx.Err() != nil {
		return t, durable.FromRPC(ctx.Err())
	}
	if err != nil {
		t = eval.Trial{Counts: c, Why: "its record can't be read: " + err.Error()}
	}
	t.Counts = c
	return t, nil
}

// input reads the input of the evaluation from its history.
func (h *Handle) input(ctx context.Context) (in input, err error) {
	events := h.client.GetWorkflowHistory(ctx, h.ID, h.run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return in, agent.Errorf(agent.CodeNotFound, "the evaluation %s has no history", h.ID)
	}
	first, err := events.Next()
	if err != nil {
		return in, durable.FromRPC(err)
	}
	payloads := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &in); err != nil || in.Definition == nil {
		return in, agent.Errorf(agent.CodeIncompatible, "the input of the evaluation %s can't be read: %w", h.ID, errors.Join(err))
	}
	return in, nil
}

// Listed is an evaluation in a listing.
type Listed struct {
	eval.Info
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
}

// List lists the evaluations of the client's namespace, the latest first. The server keeps
// them for its retention.
func List(ctx context.Context, c temporalclient.Client) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		var next []byte
		for {
			page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = '" + WorkflowType + "'", PageSize: 100, NextPageToken: next})
			if err != nil {
				yield(Listed{}, fmt.Errorf("listing evaluations: %w", durable.FromRPC(err)))
				return
			}
			for _, e := range page.GetExecutions() {
				info, ok := infoOf(e)
				if !ok {
					continue
				}
				l := Listed{Info: info, Started: e.GetStartTime().AsTime()}
				if t := e.GetCloseTime(); t != nil {
					l.Finished = t.AsTime()
				}
				if !yield(l, nil) {
					return
				}
			}
			if next = page.GetNextPageToken(); len(next) == 0 {
				return
			}
		}
	}
}
