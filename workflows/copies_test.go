package workflows_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/workflows"
)

// noCopies lets copies of files fail for a time, as if the store were away. After that, they copy
// nothing.
func noCopies(b *bench, within time.Duration) {
	until := b.Now().Add(within)
	b.OnActivity(activities.CopyFiles.Name, mock.Anything, mock.Anything).Return(func(context.Context, activities.CopyFilesInput) (activities.CopiedFiles, error) {
		if b.Now().Before(until) {
			return activities.CopiedFiles{}, &agent.Error{Code: agent.CodeStoreUnavailable, Message: "away", Retryable: true}
		}
		return activities.CopiedFiles{}, nil
	})
}

// A flow continues as new only when the files of its step are copied, and has the whole answer.
func TestAFlowDoesNotContinueWhileFilesAreCopied(t *testing.T) {
	b := setupFlow(t, flow.New("tester", func(c flow.Context, _ string) (flow.WithFiles[string], error) {
		return flow.Agent[flow.WithFiles[string]](c, "scout", "Draw a map.", nil)
	}, &flow.Options{Tools: []string{"paint"}, Agents: []agent.SubAgent{{Agent: "scout"}}}))
	p := paint()
	lead := b.acts.Agents["tester"]
	lead.Spec.Toolset = append(lead.Spec.Toolset, p.Spec())
	b.acts.Agents["tester"], b.acts.Tools["paint"] = lead, p
	long := strings.Repeat("word ", 2000) + "See map.pdf."
	withScout(b, testsuite.NewScript(paints("map.pdf"), testsuite.Reply{Text: long}))
	start := b.Now()
	noCopies(b, 30*time.Second)
	b.after(10*time.Second, func() {
		b.SetContinueAsNewSuggested(true)
		b.signal("send", `{"text":"hello"}`)
	})
	o := b.run(t, "go")
	require.True(t, long == o.Text, "%d bytes: %v", len(o.Text), o.Err())
	require.GreaterOrEqual(t, b.Now().Sub(start), 30*time.Second)
}

// A run that stops takes the end of a sub-agent without the files that can't be copied yet.
func TestAStopDoesNotWaitForFiles(t *testing.T) {
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}}, testsuite.NewScript(passes(map[string]any{"task": "Draw a map."}), testsuite.Reply{Text: "summed up", Repeat: 5}), paint())
	withScout(b, testsuite.NewScript(paints("map.pdf"), testsuite.Reply{Text: "See map.pdf."}))
	noCopies(b, time.Hour)
	var stopped time.Time
	b.after(40*time.Second, func() {
		stopped = b.Now()
		b.signal("stop", `{}`)
	})
	o := b.run(t, "go")
	require.Equal(t, agent.StatusStopped, o.Status)
	require.Equal(t, agent.StatusCompleted, o.Handoff.Children[0].Status)
	require.Less(t, b.Now().Sub(stopped), 10*time.Second)
}

// post notes when orders leave for a sub-agent.
type post struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	left func(at time.Time, order string)
}

func (p *post) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &postIn{interceptor.WorkflowInboundInterceptorBase{Next: next}, p}
}

type postIn struct {
	interceptor.WorkflowInboundInterceptorBase
	post *post
}

func (i *postIn) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&postOut{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.post})
}

type postOut struct {
	interceptor.WorkflowOutboundInterceptorBase
	post *post
}

func (o *postOut) SignalExternalWorkflow(ctx workflow.Context, id, run, name string, arg any) workflow.Future {
	if raw, _ := json.Marshal(arg); name == signals.ParentOrder {
		o.post.left(workflow.Now(ctx), string(raw))
	}
	return o.Next.SignalExternalWorkflow(ctx, id, run, name, arg)
}

// What comes after orders with files waits two seconds for all their copies: a hold, and the cancel of a
// run that ends.
func TestOrdersDoNotWaitLongForFiles(t *testing.T) {
	for name, last := range map[string]testsuite.Reply{
		"interrupt": {Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "x"}}}},
		"cancel":    {Text: "over"},
	} {
		t.Run(name, func(t *testing.T) {
			call := func(tool string, arguments map[string]any) testsuite.Call {
				return testsuite.Call{Tool: tool, Arguments: arguments}
			}
			resume := call("subagent_resume", map[string]any{"child": "default-test-workflow-id/scout-1", "input": "Read this.", "files": []string{"plan.pdf"}})
			b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}, Lifecycle: true, Tools: []string{agent.AwaitResumptionTool}}, testsuite.NewScript(
				paints("plan.pdf"), passes(map[string]any{"task": "Wait.", "background": true}), testsuite.Reply{Calls: []testsuite.Call{call("subagent_wait", nil)}},
				testsuite.Reply{Calls: []testsuite.Call{resume, resume, resume}}, last, testsuite.Reply{Text: "over", Repeat: 9},
			), paint())
			park := testsuite.Reply{Calls: []testsuite.Call{call(agent.AwaitResumptionTool, map[string]any{"reason": "nothing to read"})}, Repeat: 9}
			withScout(b, testsuite.NewScript(park))
			noCopies(b, time.Hour)
			var orders []string
			var hold, left time.Time
			shell := &workflows.Shell{LogCache: b.acts.LogCache, InFlight: b.acts.InFlight}
			b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{shell.Interceptor(), &post{left: func(at time.Time, order string) {
				orders, left = append(orders, order), at
			}}}})
			hold = b.Now()
			if name == "interrupt" {
				b.after(3*time.Second, func() {
					hold = b.Now()
					b.signal("interrupt", `{}`)
				})
				b.after(time.Minute, func() { b.CancelWorkflow() })
			}
			b.after(30*time.Second, func() {
				require.Len(t, orders, 4)
				require.Contains(t, orders[0], "could not be copied")
				require.Contains(t, orders[3], name)
				require.LessOrEqual(t, left.Sub(hold), 3*time.Second)
			})
			b.run(t, "go")
		})
	}
}
