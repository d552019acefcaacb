package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// PreflightOptions say which runs [Preflight] replays. The zero value replays all open
// runs of the worker's task queue.
type PreflightOptions struct {
	// Query is a further condition in Temporal's list filter language.
	Query string
	// AllQueues replays the runs of all task queues of the namespace.
	AllQueues bool
	// Closed is how many closed executions are replayed too, the newest first. They may
	// have shapes that no open run has at the moment. Nobody continues them, so only
	// their replay counts.
	Closed int
	// Parallel is how many runs are replayed at the same time; zero means one for each
	// processor.
	Parallel int
}

// Preflight replays the histories of runs, and of the queue's daily limits, on this build
// before it is deployed. It yields a verdict for each when it is done, in no order. It
// changes nothing and queries no worker. It reads only the transcripts of flows, and only
// if the options have a Store. A run that is gone meanwhile is left out.
//
// Options are those of the new worker; see [Replay]. Without agents and flows only the
// workflow's code is tried. An error ends the sequence: [agent.CodeInvalidInput] for invalid options
// or an invalid query, [agent.CodeUnreachable] if the server can't be reached, [agent.CodeTimeout] if it
// answered none of three attempts in time, or the context's error.
func Preflight(ctx context.Context, c client.Client, o *Options, p *PreflightOptions) iter.Seq2[Verdict, error] {
	if p == nil {
		p = &PreflightOptions{}
	}
	if o == nil {
		o = &Options{}
	}
	return func(yield func(Verdict, error) bool) {
		has, err := o.activities()
		if err != nil {
			yield(Verdict{}, fmt.Errorf("preflight: %w", err))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		found := (&flightCheck{temporal: c, has: has}).start(ctx, p.queries(o.taskQueue()), cmp.Or(max(p.Parallel, 0), runtime.GOMAXPROCS(0)))
		defer func() {
			cancel()
			for range found { // wait for the goroutines in progress
			}
		}()
		for f := range found {
			if f.err != nil {
				f.err = fmt.Errorf("preflight: %w", f.err)
			}
			if !yield(f.verdict, f.err) || f.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Verdict{}, fmt.Errorf("preflight: %w", err))
		}
	}
}

// query is a listing with a maximum of results; zero for all.
type query struct {
	text string
	most int
}

func (p *PreflightOptions) queries(queue string) []query {
	var types []string
	for _, name := range judged {
		types = append(types, signals.Quote(name))
	}
	terms := []string{"WorkflowType IN (" + strings.Join(types, ", ") + ")"}
	if !p.AllQueues {
		terms = append(terms, "TaskQueue = "+signals.Quote(queue))
	}
	if p.Query != "" {
		terms = append(terms, "("+p.Query+")")
	}
	all := strings.Join(terms, " AND ")
	list := []query{{text: all + " AND ExecutionStatus = 'Running'"}}
	if p.Closed > 0 {
		list = append(list, query{text: all + " AND ExecutionStatus != 'Running'", most: p.Closed})
	}
	return list
}

// flightCheck is one preflight in progress.
type flightCheck struct {
	temporal client.Client
	has      *activities.Activities
}

// finding is the result of one run; err ends the preflight.
type finding struct {
	verdict Verdict
	err     error
}

// start replays runs until all are done or the context ends. Then it closes the channel.
func (f *flightCheck) start(ctx context.Context, queries []query, parallel int) <-chan finding {
	found, executions := make(chan finding), make(chan *commonpb.WorkflowExecution)
	report := func(r finding) {
		select {
		case found <- r:
		case <-ctx.Done():
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer close(executions)
		for _, q := range queries {
			if err := f.list(ctx, q, executions); err != nil {
				report(finding{err: err})
				return
			}
		}
	})
	for range parallel {
		all.Go(func() {
			for e := range executions {
				v, err := f.try(ctx, e)
				if ctx.Err() == nil && !errors.Is(err, agent.CodeNotFound) {
					report(finding{v, err})
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(found)
	}()
	return found
}

// list sends the executions that a query finds. The end of the context is no error.
func (f *flightCheck) list(ctx context.Context, q query, to chan<- *commonpb.WorkflowExecution) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: q.text}
	for n := 0; ; {
		page, err := durable.Thrice(ctx, func() (*workflowservice.ListWorkflowExecutionsResponse, error) {
			return f.temporal.ListWorkflow(ctx, req)
		})
		var bad *serviceerror.InvalidArgument
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &bad):
			return agent.Errorf(agent.CodeInvalidInput, "the query can't be read: %s", bad.Message).WithPath("query")
		case err != nil:
			return fmt.Errorf("listing runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			select {
			case to <- info.GetExecution():
			case <-ctx.Done():
				return nil
			}
			if n++; n == q.most {
				return nil
			}
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

// try reads the history of an execution and replays it.
func (f *flightCheck) try(ctx context.Context, e *commonpb.WorkflowExecution) (Verdict, error) {
	h, err := durable.Thrice(ctx, func() (*historypb.History, error) { return f.history(ctx, e) })
	if err != nil {
		return Verdict{}, fmt.Errorf("the history of %s: %w", e.GetWorkflowId(), err)
	}
	return replayWith(ctx, h, f.has)
}

func (f *flightCheck) history(ctx context.Context, e *commonpb.WorkflowExecution) (*historypb.History, error) {
	h := &historypb.History{}
	events := f.temporal.GetWorkflowHistory(ctx, e.GetWorkflowId(), e.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, event)
	}
	return h, nil
}
