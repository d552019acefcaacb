package devserver

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
)

func greet(_ context.Context, name string) (string, error) { return "hello " + name, nil }

// greeter calls one activity and carries a search attribute.
func greeter(ctx workflow.Context, name string) (string, error) {
	key := temporal.NewSearchAttributeKeyKeyword(agent.AttrAgent)
	if err := workflow.UpsertTypedSearchAttributes(ctx, key.ValueSet(name)); err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var greeting string
	err := workflow.ExecuteActivity(ctx, greet, name).Get(ctx, &greeting)
	return greeting, err
}

func registerGreeter(r worker.Registry) {
	r.RegisterWorkflow(greeter)
	r.RegisterActivity(greet)
}

func TestRunsAWorkflow(t *testing.T) {
	s := ForTest(t)
	assert.Equal(t, "default", s.Namespace())
	assert.False(t, s.Shared())
	c := dial(t, s)
	work(t, c, registerGreeter)
	var greeting string
	require.NoError(t, run(t, c, "w", greeter, "you").Get(t.Context(), &greeting))
	assert.Equal(t, "hello you", greeting)
}

func TestNilOptions(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_DATA_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	s := start(t, nil)
	dial(t, s)
	dir, err := (*Options)(nil).dataDir()
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, databaseName))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestPackageServerIsOne(t *testing.T) {
	assert.Same(t, ForPackage(t), ForPackage(t))
	dial(t, ForPackage(t))
}

// Two servers in memory have nothing in common.
func TestServersInMemoryAreApart(t *testing.T) {
	one, two := dial(t, ForTest(t)), dial(t, ForTest(t))
	run(t, one, "w", "nobody")
	_, err := two.DescribeWorkflowExecution(t.Context(), "w", "")
	assert.ErrorContains(t, err, "not found")
}

func TestCapabilities(t *testing.T) {
	s := ForPackage(t)
	ns, err := dial(t, s).WorkflowService().DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace()})
	require.NoError(t, err)
	assert.True(t, ns.GetNamespaceInfo().GetCapabilities().GetWorkerCommands())
}

// A cancellation reaches an activity that never sends a heartbeat.
func TestCancellationIsPushed(t *testing.T) {
	c := dial(t, ForPackage(t))
	started := make(chan struct{})
	deaf := func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	canceled := func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour,
			WaitForCancellation: true,
		}), "deaf").Get(ctx, nil)
	}
	work(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(canceled, workflow.RegisterOptions{Name: "canceled"})
		r.RegisterActivityWithOptions(deaf, activity.RegisterOptions{Name: "deaf"})
	})
	r := run(t, c, "", "canceled")
	select {
	case <-started:
	case <-time.After(long):
		t.Fatal("the activity did not start")
	}
	require.NoError(t, c.CancelWorkflow(t.Context(), r.GetID(), ""))
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	err := r.Get(ctx, nil)
	assert.True(t, temporal.IsCanceledError(err), "%v", err)
}

// By default every timer takes a second, and so does a continuation of what has
// just begun. The fastest of some timers counts, since the machine may be busy.
func TestTimeIsNotRoundedUp(t *testing.T) {
	c := dial(t, ForPackage(t))
	hurried := func(ctx workflow.Context, again bool) (time.Duration, error) {
		if again {
			return 0, workflow.NewContinueAsNewError(ctx, "hurried", false)
		}
		fastest := time.Hour
		for range 8 {
			began := workflow.Now(ctx)
			if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil {
				return 0, err
			}
			fastest = min(fastest, workflow.Now(ctx).Sub(began))
		}
		return fastest, nil
	}
	work(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(hurried, workflow.RegisterOptions{Name: "hurried"})
	})
	r := run(t, c, "", "hurried", true)
	var fastest time.Duration
	require.NoError(t, r.Get(t.Context(), &fastest))
	assert.Less(t, fastest, time.Second/2)

	first, err := c.GetWorkflowHistory(t.Context(), r.GetID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	require.NoError(t, err)
	started := first.GetWorkflowExecutionStartedEventAttributes()
	assert.NotEmpty(t, started.GetContinuedExecutionRunId())
	assert.Zero(t, started.GetFirstWorkflowTaskBackoff().AsDuration())
}

// By default ten updates may be in flight.
func TestManyUpdatesInFlight(t *testing.T) {
	const updates = 50
	c := dial(t, ForPackage(t))
	counter := func(ctx workflow.Context) (n int, err error) {
		err = workflow.SetUpdateHandler(ctx, "add", func(ctx workflow.Context) error {
			n++
			return workflow.Await(ctx, func() bool { return n == updates })
		})
		if err != nil {
			return n, err
		}
		err = workflow.Await(ctx, func() bool { return n == updates && workflow.AllHandlersFinished(ctx) })
		return n, err
	}
	work(t, c, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(counter, workflow.RegisterOptions{Name: "counter"})
	})
	r := run(t, c, "", "counter")
	var all sync.WaitGroup
	for range updates {
		all.Go(func() {
			u, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
				WorkflowID:   r.GetID(),
				UpdateName:   "add",
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			if assert.NoError(t, err) {
				assert.NoError(t, u.Get(t.Context(), nil))
			}
		})
	}
	all.Wait()
	var n int
	require.NoError(t, r.Get(t.Context(), &n))
	assert.Equal(t, updates, n)
}

// A start that goes well has nothing to say; a setting of the wrong type would.
func TestStartIsQuiet(t *testing.T) {
	var log lockedBuffer
	s, err := Start(t.Context(), &Options{InMemory: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	s.Stop()
	assert.Empty(t, log.String())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestStartInAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, &Options{InMemory: true})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestStopFreesPortAndLock(t *testing.T) {
	o := &Options{DataDir: t.TempDir()}
	s := start(t, o)
	_, err := net.Listen("tcp", s.Addr())
	require.Error(t, err, "the port is in use while the server runs")

	var all sync.WaitGroup
	for range 4 {
		all.Go(s.Stop)
	}
	all.Wait()
	s.Stop()

	l, err := net.Listen("tcp", s.Addr())
	require.NoError(t, err)
	require.NoError(t, l.Close())

	o.Addr = s.Addr()
	again := start(t, o)
	assert.Equal(t, s.Addr(), again.Addr())
	assert.False(t, again.Shared())
}

// What stays after Stop is what Stop's comment says: four goroutines of the
// server's own client a start. They are counted in a process of its own, where
// no other test's server has any.
func TestStopLeavesFewGoroutines(t *testing.T) {
	const alone, starts = "DEVSERVER_TEST_ALONE", 3
	if os.Getenv(alone) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	before := runtime.NumGoroutine()
	for range starts {
		s := start(t, &Options{DataDir: t.TempDir()})
		require.Greater(t, runtime.NumGoroutine(), before+100)
		s.Stop()
	}
	assert.Eventually(t, func() bool {
		// Eventually runs this in a goroutine, beside a timer's.
		return runtime.NumGoroutine() <= before+2+starts*4
	}, long, 10*time.Millisecond, "before: %d", before)
}
