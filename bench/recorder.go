package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// recorder reports the start and end of activities to the process that started this one,
// a line each. Times are of the machine's clock, which all processes share. Activities
// only queue their line, so that recording does not slow them.
//
//	ready
//	begin ID TYPE WORKFLOW NANOSECONDS
//	end ID NANOSECONDS
//	tool KEY
//	memory HEAP GOROUTINES RSS PEAK
//	cpu NANOSECONDS
type recorder struct {
	interceptor.InterceptorBase
	lines chan string
	last  atomic.Int64 // id
}

func newRecorder(out io.Writer) *recorder {
	r := &recorder{lines: make(chan string, 1<<16)}
	go func() {
		w := bufio.NewWriter(out)
		for line := range r.lines {
			fmt.Fprintln(w, line)
			if len(r.lines) == 0 {
				w.Flush()
			}
		}
	}()
	return r
}

func (r *recorder) ready() { r.lines <- "ready" }

// memory records what the process holds.
func (r *recorder) memory() {
	m := held()
	r.lines <- fmt.Sprintf("memory %d %d %d %d", m.Heap, m.Goroutines, m.RSS, m.Peak)
}

// cpu records the processor time of the process.
func (r *recorder) cpu() { r.lines <- fmt.Sprintf("cpu %d", spentCPU().Nanoseconds()) }

// tool records that a tool was called, by the call's idempotency key.
func (r *recorder) tool(key string) { r.lines <- "tool " + key }

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (r *recorder) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &recorded{interceptor.ActivityInboundInterceptorBase{Next: next}, r}
}

type recorded struct {
	interceptor.ActivityInboundInterceptorBase
	to *recorder
}

func (a *recorded) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info, id := activity.GetInfo(ctx), a.to.last.Add(1)
	a.to.lines <- fmt.Sprintf("begin %d %s %s %d", id, info.ActivityType.Name, info.WorkflowExecution.ID, time.Now().UnixNano())
	defer func() { a.to.lines <- fmt.Sprintf("end %d %d", id, time.Now().UnixNano()) }()
	return a.Next.ExecuteActivity(ctx, in)
}
