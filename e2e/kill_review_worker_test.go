package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/examples/review"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// options are those of the example, with models that answer at once and a service that notes what
// it merged. mortal is nil in the worker that goes on.
func (k *reviewKill) options(mortal *mortal) *worker.Options {
	o := review.Options(func(_ context.Context, _ int, key string) error { return k.note("merged", key) })
	o.TaskQueue, o.Logger = k.Session, zap.NewNop()
	o.Models = map[string]model.Model{"anthropic": modelFunc(func(ctx context.Context, r *model.Request) *model.Reply {
		aspect := strings.Fields(r.Messages[0].Text())[2] // "Review the security of"
		place := slices.Index(k.Fast, aspect)
		if place < 0 {
			mortal.hang(ctx)
			<-ctx.Done()
			return saysText("")
		}
		mortal.inTurn(place)
		if err := k.note("answered", k.name(ctx)); err != nil {
			return nil
		}
		if aspect == "security" {
			return saysText(`{"risk":"high","says":["it logs the key"]}`)
		}
		return saysText(fmt.Sprintf(`{"risk":"low","says":["fine %s"]}`, aspect))
	})}
	return o
}

// reviewers is how many work at once.
const reviewers = 5

// mortal is a worker process that kills itself with SIGKILL at its moment.
type mortal struct {
	interceptor.InterceptorBase
	*reviewKill

	mu    sync.Mutex
	begun map[string]int
	// asked is how often the flow was asked for its next steps, and reviewing how many reviewers
	// have begun.
	asked, reviewing int
	changed          *sync.Cond
	dying            string // the activity in which it dies, by session
	token            []byte // the activity after whose result it dies
	local            string // the session after whose next workflow task it dies
}

// reviewUntilKilled is the process's main function.
func reviewUntilKilled(spec string) error {
	var k reviewKill
	if err := json.Unmarshal([]byte(spec), &k); err != nil {
		return err
	}
	m := &mortal{reviewKill: &k, begun: map[string]int{}}
	m.changed = sync.NewCond(&m.mu)
	how := connection(slog.DiscardHandler)
	how.ConnectionOptions.DialOptions = append(how.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(m.carry))
	c, err := remote(k.Addr).Dial(context.Background(), how)
	if err != nil {
		return err
	}
	o := k.options(m)
	if o.Store, _, err = openStore(k.Dir); err != nil { // until it is killed
		return err
	}
	o.Temporal = func(_ worker.Lane, o *sdk.Options) { o.Interceptors = append(o.Interceptors, m) }
	return workFor(c, o)
}

// die is kill -9.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		_ = self.Kill()
	}
	select {}
}

// name returns an activity's type, and the end of its session.
func (k *reviewKill) name(ctx context.Context) string {
	info := activity.GetInfo(ctx)
	return info.ActivityType.Name + strings.TrimPrefix(info.WorkflowExecution.ID, k.Session)
}

// inTurn waits until every reviewer works, and the flow knows the findings of those before. So each
// process has the same steps.
func (m *mortal) inTurn(place int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.reviewing < reviewers || m.asked <= place {
		m.changed.Wait()
	}
}

// hang kills the process if it is to die while the slow reviewer works.
func (m *mortal) hang(ctx context.Context) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dying == m.name(ctx) {
		die()
	}
}

// InterceptActivity counts every activity as a step.
func (m *mortal) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &mortalActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, m}
}

type mortalActivity struct {
	interceptor.ActivityInboundInterceptorBase
	*mortal
}

// watching are activities that only look. How often depends on time.
var watching = []string{activities.CheckParent.Name, activities.AwaitInFlight.Name, activities.FetchOutcome.Name}

// ExecuteActivity dies before, in or after the activity.
func (m *mortalActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	here := m.begin(ctx, info)
	if here && m.When == testsuite.CrashBefore {
		die()
	}
	out, err := m.Next.ExecuteActivity(ctx, in)
	if here && m.When == testsuite.CrashDuring {
		die()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if info.ActivityType.Name == activities.AskFlow.Name {
		m.asked++
		m.changed.Broadcast()
	}
	if here && info.IsLocalActivity {
		m.local = info.WorkflowExecution.ID
	} else if here {
		m.token = info.TaskToken
	}
	return out, err
}

// begin notes a step, and reports whether it is the one in which the process dies.
func (m *mortal) begin(ctx context.Context, info activity.Info) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := m.name(ctx)
	if slices.Contains(watching, info.ActivityType.Name) {
		return false
	}
	m.begun[name]++
	if info.ActivityType.Name == activities.CallModel.Name {
		m.reviewing++
		m.changed.Broadcast()
	}
	step := fmt.Sprintf("%s#%d", name, m.begun[name])
	if m.Step == "" {
		_ = m.note("steps", step)
	}
	if step != m.Step {
		return false
	}
	if m.When == testsuite.CrashDuring {
		m.dying = name
	}
	return true
}

// carry passes calls to the server on, and dies when it has the step's result.
func (m *mortal) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.stores(req) {
		die()
	}
	return err
}

// stores reports whether a call tells the server the step's result.
func (m *mortal) stores(req any) bool {
	switch r := req.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest: // it has the results of local activities
		return m.local != "" && strings.HasSuffix(r.GetResourceId(), m.local)
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskCanceledRequest, *workflowservice.RespondActivityTaskFailedRequest:
		return m.token != nil && bytes.Equal(m.token, r.(interface{ GetTaskToken() []byte }).GetTaskToken())
	}
	return false
}
