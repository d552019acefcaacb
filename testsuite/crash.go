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

// Crash is a point of a test at which the worker dies, as by kill -9. Nothing that it
// sends arrives any more, the contexts of its calls end, and another worker takes over.
// The zero Crash never happens; it only counts steps.
type Crash struct {
	// Step is the number of the step, from 1, in the order in which steps begin. Steps
	// are model calls, tool calls and all other activities.
	Step int
	// When is the moment in the step.
	When CrashPoint

	// mayBeShort means that the story may end before the step.
	mayBeShort bool

	mu       sync.Mutex
	steps    []string
	happened bool
}

// CrashPoint is when a worker dies.
type CrashPoint string

// The moments of a step.
const (
	CrashBefore CrashPoint = "before" // the worker has the step, and has not begun it
	CrashDuring CrashPoint = "in"     // the step had its effect, and nobody knows
	CrashAfter  CrashPoint = "after"  // the server has the step's result
)

// Steps returns the names of the steps that have begun, in order.
func (c *Crash) Steps() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.steps)
}

// startStep counts a step, and reports whether it is the one to crash in.
func (c *Crash) startStep(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, name)
	return c.Step == len(c.steps)
}

// tooShort reports whether the story has ended before the step, and may.
func (c *Crash) tooShort() bool {
	return c.mayBeShort && !c.Happened() && len(c.Steps()) < c.Step
}

// Happened reports whether the worker has died.
func (c *Crash) Happened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.happened
}

// EveryCrash runs story once without a crash. Then it runs story again for each of its
// steps, with the worker killed before, in and after that step. The result of story has
// to be the same each time, and must encode to JSON. story makes an [Env] with the crash
// in [Options.Crash], on a server. Up to 32 stories run at once, so each needs its own
// tools.
//
// The number of steps may vary, as that of a flow whose branches race for a quorum: what is dropped
// has begun in one story and not in another. A story that ends before the step of its crash is
// repeated up to twice, and then the crash is skipped, with the reason. Return only what does not
// depend on which branches win.
//
// After a crash in a tool that may not be repeated, the model sees an unknown result. For
// a story with the same result each time, let such tools have several attempts, and make
// them check their key.
func EveryCrash(t *testing.T, story func(t testing.TB, c *Crash) any) {
	t.Helper()
	undisturbed := &Crash{}
	want := story(t, undisturbed)
	// A story without the crash in its options would pass every time.
	require.NotEmpty(t, undisturbed.Steps(), "the story has no steps: does its Env have the crash in testsuite.Options.Crash?")
	require.NotNil(t, want, "the story returns nothing that could be compared")
	const atOnce = 32
	var wg sync.WaitGroup
	// Bounded: each story has its own connection and workers.
	free := make(chan struct{}, atOnce)
	for i, step := range undisturbed.Steps() {
		for _, when := range []CrashPoint{CrashBefore, CrashDuring, CrashAfter} {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				t.Run(fmt.Sprintf("%s step %d, %s", when, i+1, step), func(t *testing.T) {
					const tries = 3
					for try := range tries {
						c := &Crash{Step: i + 1, When: when, mayBeShort: true}
						// Its own test, so that its worker and its checks end with it.
						t.Run(fmt.Sprint("try ", try+1), func(t *testing.T) { require.JSONEq(t, text(want), text(story(t, c))) })
						if t.Failed() || !c.tooShort() {
							return
						}
					}
					t.Skipf("the story had fewer than %d steps each of %d times, so no worker died: the number of its steps varies", i+1, tries)
				})
			})
		}
	}
	wg.Wait()
}

// killableWorker is a connection to the server that can be cut, and the steps of its
// worker.
type killableWorker struct {
	interceptor.InterceptorBase
	crash *Crash
	alive context.Context
	die   context.CancelFunc

	mu    sync.Mutex
	token []byte            // the activity after whose result the worker dies
	local string            // the execution after whose next workflow task the worker dies
	tasks map[string]string // executions of workflow tasks, by token
}

// end kills the worker.
func (m *killableWorker) end() {
	m.crash.mu.Lock()
	m.crash.happened = true
	m.crash.mu.Unlock()
	m.die()
}

// dialKillable returns a client of the same server with its own connection.
func dialKillable(t testing.TB, o *Options) (*killableWorker, temporal.Client) {
	t.Helper()
	var server peer.Peer
	// The server's address comes from the connection: clients may have found it by any name.
	_, err := o.Server.WorkflowService().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{}, grpc.Peer(&server))
	require.NoError(t, err)
	require.IsType(t, &net.TCPAddr{}, server.Addr, "a crash needs a server that is reached by TCP")
	// A misspelt value would never crash, and the test would prove nothing.
	require.Contains(t, []CrashPoint{CrashBefore, CrashDuring, CrashAfter, ""}, o.Crash.When)
	require.True(t, o.Crash.Step == 0 || o.Crash.When != "", "testsuite.Crash.When is missing: before, in or after the step")
	m := &killableWorker{crash: o.Crash, tasks: map[string]string{}}
	m.alive, m.die = context.WithCancel(context.Background())
	own := o.Connection
	own.HostPort = cmp.Or(own.HostPort, server.Addr.String())
	// The dead worker's SDK logs one error after the other, which is expected.
	own.Namespace, own.Logger = o.namespace(), log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	// Clip makes append copy, because the options are the caller's.
	own.Interceptors = append(slices.Clip(own.Interceptors), m)
	own.ConnectionOptions.DialOptions = append(slices.Clip(own.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(m.carry))
	c, err := temporal.Dial(own)
	require.NoError(t, err, "a crash needs a connection like the server's own: see testsuite.Options.Connection")
	t.Cleanup(c.Close)
	return m, c
}

var errDead = status.Error(codes.Unavailable, "the worker is dead")

// carry passes calls on while the worker is alive.
func (m *killableWorker) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m.alive.Err() != nil {
		return errDead
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A call in flight ends too, as it does with the process.
	defer context.AfterFunc(m.alive, cancel)()
	err := invoke(ctx, method, req, reply, conn, opts...)
	// After the call: the server has the result, and the worker never learns that.
	if err == nil && m.last(req, reply) {
		m.end()
	}
	// The answer arrived after the death, so the worker must not see it.
	if m.alive.Err() != nil {
		return errDead
	}
	return err
}

// last reports whether a call is the one after which the worker dies.
func (m *killableWorker) last(req, reply any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A local activity has no result of its own: the workflow task carries it.
	// The token of a task is the only way to know its execution later.
	if task, ok := reply.(*workflowservice.PollWorkflowTaskQueueResponse); ok {
		m.tasks[string(task.GetTaskToken())] = task.GetWorkflowExecution().GetRunId()
		return false
	}
	switch r := req.(type) {
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskFailedRequest, *workflowservice.RespondActivityTaskCanceledRequest:
		token := r.(interface{ GetTaskToken() []byte }).GetTaskToken()
		// The result counts however the activity ended.
		return m.token != nil && bytes.Equal(m.token, token)
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		// A local activity's result is on the server only with its workflow task.
		return m.local != "" && m.tasks[string(r.GetTaskToken())] == m.local
	}
	return false
}

// InterceptActivity counts every activity as a step.
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
	defer context.AfterFunc(s.m.alive, cancel)() // everything else in the process ends with it
	info := activity.GetInfo(ctx)
	name := info.ActivityType.Name
	// These only watch. How often they run depends on time, so they can't be numbered.
	if beside := name == activities.CheckParent.Name || name == activities.AwaitInFlight.Name || name == activities.FetchOutcome.Name; beside || !s.m.crash.startStep(name) {
		return s.Next.ExecuteActivity(ctx, in)
	}
	if s.m.crash.When == CrashBefore {
		return nil, s.m.blockForever(ctx)
	}
	// The effect happens, but the result is lost.
	out, err := s.Next.ExecuteActivity(ctx, in)
	if s.m.crash.When == CrashDuring {
		return nil, s.m.blockForever(ctx)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	// Local activities share the token of their workflow task.
	if s.m.token = info.TaskToken; info.IsLocalActivity {
		s.m.token, s.m.local = nil, info.WorkflowExecution.RunID
	}
	return out, err
}

// blockForever kills the worker. The step never returns to anybody who could report it.
func (m *killableWorker) blockForever(ctx context.Context) error {
	m.end()
	<-ctx.Done()
	return ctx.Err()
}
