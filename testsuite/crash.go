package testsuite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fermata-agents/fermata/activities"
)

// Crash is a place in a story at which the worker dies, as by kill -9: nothing that it
// says is heard of any more, the contexts of its calls end, and another worker goes on.
// The zero Crash does not happen; it counts steps.
type Crash struct {
	// Step is the number of the step, from 1, in the order in which steps begin: each
	// model call, each tool call, and whatever else is done outside of the workflow.
	Step int
	// When is the moment of the step.
	When CrashPoint

	mu       sync.Mutex
	steps    []string
	happened bool
}

// CrashPoint is when a worker dies.
type CrashPoint string

// The moments of a step.
const (
	CrashBefore CrashPoint = "before" // it has been handed to the worker, and is not begun
	CrashDuring CrashPoint = "in"     // it has had its effect, and nobody knows
	CrashAfter  CrashPoint = "after"  // the server knows its result
)

// Steps names the steps that were begun so far, in their order.
func (c *Crash) Steps() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.steps)
}

// begin counts a step, and reports whether it is the one.
func (c *Crash) begin(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, name)
	return c.Step == len(c.steps)
}

// Happened reports whether the worker has died.
func (c *Crash) Happened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.happened
}

// EveryCrash plays a story undisturbed, and then anew for each of its steps with the
// worker killed before it, in it and after it. What story returns has to be the same
// each time, and JSON. It makes a [Env] with the crash that it is given in
// [Options.Crash], on a server; up to thirty-two are played at once, so tools have to be
// the story's own.
//
// A tool that may not be called again is unknown to the model after a crash in it: in a
// story that comes to the same end, such tools allow several attempts and look at
// their key.
func EveryCrash(t *testing.T, story func(t testing.TB, c *Crash) any) {
	t.Helper()
	undisturbed := &Crash{}
	want := story(t, undisturbed)
	require.NotEmpty(t, undisturbed.Steps(), "the story has no steps: does its Env have the crash in testsuite.Options.Crash?")
	require.NotNil(t, want, "the story returns nothing that could be compared")
	const atOnce = 32
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i, step := range undisturbed.Steps() {
		for _, when := range []CrashPoint{CrashBefore, CrashDuring, CrashAfter} {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				t.Run(fmt.Sprintf("%s step %d, %s", when, i+1, step), func(t *testing.T) {
					c := &Crash{Step: i + 1, When: when}
					got := story(t, c)
					require.JSONEq(t, text(want), text(got))
				})
			})
		}
	}
	wg.Wait()
}

// killableWorker is a connection to the server that can be cut, and the steps that go over it.
type killableWorker struct {
	interceptor.InterceptorBase
	crash *Crash
	alive context.Context
	die   context.CancelFunc

	mu    sync.Mutex
	token []byte            // of the activity after whose result it dies
	local string            // the execution whose next workflow task it dies after
	tasks map[string]string // executions of workflow tasks, by token
}

// end is the worker's end.
func (m *killableWorker) end() {
	m.crash.mu.Lock()
	m.crash.happened = true
	m.crash.mu.Unlock()
	m.die()
}

// dialKillable makes a client of the same server with a connection of its own.
func dialKillable(t testing.TB, o *Options) (*killableWorker, temporal.Client) {
	t.Helper()
	var server peer.Peer
	_, err := o.Server.WorkflowService().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{}, grpc.Peer(&server))
	require.NoError(t, err)
	require.IsType(t, &net.TCPAddr{}, server.Addr, "a crash needs a server that is reached by TCP")
	require.Contains(t, []CrashPoint{CrashBefore, CrashDuring, CrashAfter, ""}, o.Crash.When)
	require.True(t, o.Crash.Step == 0 || o.Crash.When != "", "testsuite.Crash.When is missing: before, in or after the step")
	m := &killableWorker{crash: o.Crash, tasks: map[string]string{}}
	m.alive, m.die = context.WithCancel(context.Background())
	own := o.Connection
	own.HostPort = cmp.Or(own.HostPort, server.Addr.String())
	own.Namespace, own.Logger = o.namespace(), log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	own.Interceptors = append(slices.Clip(own.Interceptors), m)
	own.ConnectionOptions.DialOptions = append(slices.Clip(own.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(m.carry))
	c, err := temporal.Dial(own)
	require.NoError(t, err, "a crash needs a connection like the server's own: see testsuite.Options.Connection")
	t.Cleanup(c.Close)
	return m, c
}

var errDead = status.Error(codes.Unavailable, "the worker is dead")

// carry lets a call through while the worker lives.
func (m *killableWorker) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m.alive.Err() != nil {
		return errDead
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.alive, cancel)()
	err := invoke(ctx, method, req, reply, conn, opts...)
	if err == nil && m.last(req, reply) {
		m.end()
	}
	if m.alive.Err() != nil {
		return errDead
	}
	return err
}

// last reports whether a call was the one after which the worker dies.
func (m *killableWorker) last(req, reply any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if task, ok := reply.(*workflowservice.PollWorkflowTaskQueueResponse); ok {
		m.tasks[string(task.GetTaskToken())] = task.GetWorkflowExecution().GetRunId()
		return false
	}
	switch r := req.(type) {
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskFailedRequest, *workflowservice.RespondActivityTaskCanceledRequest:
		token := r.(interface{ GetTaskToken() []byte }).GetTaskToken()
		return m.token != nil && bytes.Equal(m.token, token)
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		return m.local != "" && m.tasks[string(r.GetTaskToken())] == m.local
	}
	return false
}

// InterceptActivity sees every step.
func (m *killableWorker) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &killableActivity{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, m: m}
}

type killableActivity struct {
	interceptor.ActivityInboundInterceptorBase
	m *killableWorker
}

func (s *killableActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.m.alive, cancel)() // what else is under way in the process ends with it
	info := activity.GetInfo(ctx)
	name := info.ActivityType.Name
	if beside := name == activities.CheckParent.Name || name == activities.AwaitInFlight.Name || name == activities.FetchOutcome.Name; beside || !s.m.crash.begin(name) {
		return s.Next.ExecuteActivity(ctx, in)
	}
	if s.m.crash.When == CrashBefore {
		return nil, s.m.blockForever(ctx)
	}
	out, err := s.Next.ExecuteActivity(ctx, in)
	if s.m.crash.When == CrashDuring {
		return nil, s.m.blockForever(ctx)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.m.token = info.TaskToken; info.IsLocalActivity {
		s.m.token, s.m.local = nil, info.WorkflowExecution.RunID
	}
	return out, err
}

// blockForever ends the worker: the step never returns to anybody who could tell.
func (m *killableWorker) blockForever(ctx context.Context) error {
	m.end()
	<-ctx.Done()
	return ctx.Err()
}
