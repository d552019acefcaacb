package client

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// fake is a Temporal server as far as a client of ours sees one. What a test does
// not set must not be asked for. What changes while it is asked changes in now.
type fake struct {
	client.Client // nil: panics

	update   func(ctx context.Context, session string, command agent.Command) (agent.Ack, error)
	signal   func(session string, command agent.Command) error
	begin    func(start agent.Start) (run string, err error)
	describe func(session, execution string) (*workflowpb.WorkflowExecutionInfo, error)
	list     func(query string) []*workflowpb.WorkflowExecutionInfo
	status   func(ctx context.Context) (agent.RunStatus, error)
	history  func(ctx context.Context, execution string) (*historypb.HistoryEvent, error)
	result   func(execution string) (agent.Outcome, error)

	mu      sync.Mutex
	said    []agent.Command
	ids     []string // of updates
	queries []string
	queue   string // the task queue of the last start
	reuse   enums.WorkflowIdReusePolicy
}

func (f *fake) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func (f *fake) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	command := o.Args[0].(agent.Command)
	f.mu.Lock()
	f.said, f.ids = append(f.said, command), append(f.ids, o.UpdateID)
	f.mu.Unlock()
	ack, err := f.update(ctx, o.WorkflowID, command)
	return handle{ack: ack}, err
}

type handle struct {
	client.WorkflowUpdateHandle
	ack agent.Ack
}

func (h handle) Get(_ context.Context, into any) error { *into.(*agent.Ack) = h.ack; return nil }

func (f *fake) SignalWorkflow(_ context.Context, session, _, _ string, arg any) error {
	return f.signal(session, arg.(agent.Command))
}

type begun struct {
	client.WorkflowRun
	run string
}

func (b begun) GetRunID() string { return b.run }

func (f *fake) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	f.queue, f.reuse = o.TaskQueue, o.WorkflowIDReusePolicy
	run, err := f.begin(args[0].(agent.Start))
	return begun{run: run}, err
}

func (f *fake) DescribeWorkflowExecution(_ context.Context, session, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.describe == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	info, err := f.describe(session, execution)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: copied(info)}, err
}

func copied(info *workflowpb.WorkflowExecutionInfo) *workflowpb.WorkflowExecutionInfo {
	raw, err := info.Marshal()
	out := &workflowpb.WorkflowExecutionInfo{}
	if err == nil {
		err = out.Unmarshal(raw)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// ListWorkflow gives a page for each execution.
func (f *fake) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.queries = append(f.queries, req.GetQuery())
	all, page := f.list(req.GetQuery()), &workflowservice.ListWorkflowExecutionsResponse{}
	if n := len(req.GetNextPageToken()); n < len(all) {
		page.Executions = all[n : n+1]
		page.NextPageToken = []byte(strings.Repeat("p", n+1))
	}
	return page, nil
}

type answer struct {
	converter.EncodedValue
	s agent.RunStatus
}

func (a answer) Get(into any) error { *into.(*agent.RunStatus) = a.s; return nil }

func (f *fake) QueryWorkflow(ctx context.Context, _, _, _ string, _ ...any) (converter.EncodedValue, error) {
	s, err := f.status(ctx)
	return answer{s: s}, err
}

// events asks for one event after the other; none is the history's end.
type events struct {
	next func() (*historypb.HistoryEvent, error)
	e    *historypb.HistoryEvent
	err  error
}

func (e *events) HasNext() bool                          { e.e, e.err = e.next(); return e.e != nil || e.err != nil }
func (e *events) Next() (*historypb.HistoryEvent, error) { return e.e, e.err }

func (f *fake) GetWorkflowHistory(ctx context.Context, _, execution string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &events{next: func() (*historypb.HistoryEvent, error) {
		f.mu.Lock()
		history := f.history
		f.mu.Unlock()
		return history(ctx, execution)
	}}
}

func (f *fake) GetWorkflow(_ context.Context, _, execution string) client.WorkflowRun {
	return ended{execution: execution, f: f}
}

type ended struct {
	client.WorkflowRun
	execution string
	f         *fake
}

func (e ended) Get(_ context.Context, into any) (err error) {
	*into.(*agent.Outcome), err = e.f.result(e.execution)
	return err
}

// silent is a history that says nothing more.
func silent(ctx context.Context, _ string) (*historypb.HistoryEvent, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// execution is one as a server knows it.
func execution(t *testing.T, session, run string, status enums.WorkflowExecutionStatus, memo agent.Memo, attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: session, RunId: run}, FirstRunId: run, Status: status, HistoryLength: 10,
		Type:             &commonpb.WorkflowType{Name: signals.WorkflowType},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{}},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}},
	}
	payload := func(v any) *commonpb.Payload {
		p, err := converter.GetDefaultDataConverter().ToPayload(v)
		require.NoError(t, err)
		return p
	}
	if memo.V > 0 {
		info.Memo.Fields[agent.MemoKey] = payload(memo)
	}
	for name, v := range attributes {
		info.SearchAttributes.IndexedFields[name] = payload(v)
	}
	lasted(t, info, start, start.Add(time.Minute))
	return info
}

// lasted sets the times of an execution; one that runs is not closed.
func lasted(t *testing.T, info *workflowpb.WorkflowExecutionInfo, from, until time.Time) {
	t.Helper()
	var times workflowpb.WorkflowExecutionInfo
	text, err := json.Marshal(map[string]time.Time{"startTime": from, "closeTime": until})
	require.NoError(t, err)
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{}.Unmarshal(text, &times))
	info.StartTime = times.GetStartTime()
	if info.GetStatus() != running {
		info.CloseTime = times.GetCloseTime()
	}
}

const (
	running   = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	continued = enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
)

// onWire is what a command is on the wire.
func onWire(t *testing.T, command agent.Command) string {
	t.Helper()
	raw, err := json.Marshal(command)
	require.NoError(t, err)
	return string(raw)
}
