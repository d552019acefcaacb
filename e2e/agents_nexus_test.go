package e2e

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// inNewNamespace returns a client of a namespace that is made for the test.
func inNewNamespace(t *testing.T, s *stage) temporal.Client {
	t.Helper()
	namespace := "callers-" + uuid.NewString()[:8]
	_, err := s.temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	o := connection(slog.DiscardHandler)
	o.Namespace, o.HostPort = namespace, s.addr
	c, err := temporal.DialContext(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// endpoint makes a Nexus endpoint that leads to a task queue of the stage.
func (s *stage) endpoint(t *testing.T, queue string) string {
	t.Helper()
	name := "e-" + uuid.NewString()
	_, err := s.temporal.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{Spec: &nexuspb.EndpointSpec{
		Name: name, Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{Worker: &nexuspb.EndpointTarget_Worker{Namespace: "default", TaskQueue: queue}}},
	}})
	require.NoError(t, err)
	return name
}

// item is an operation's input.
type item struct {
	Name string `json:"name"`
}

// review and greet are the operations of the tests, and call is a workflow in another namespace.
const (
	reviewOperation = "review"
	greetOperation  = "greet"
)

func callReview(ctx workflow.Context, endpoint string, in item) (v verdict, err error) {
	err = workflow.NewNexusClient(endpoint, "agents").ExecuteOperation(ctx, reviewOperation, in, workflow.NexusOperationOptions{}).Get(ctx, &v)
	return v, err
}

func callGreet(ctx workflow.Context, endpoint, name string) (text string, err error) {
	err = workflow.NewNexusClient(endpoint, "agents").ExecuteOperation(ctx, greetOperation, name, workflow.NexusOperationOptions{}).Get(ctx, &text)
	return text, err
}

// An agent is a Nexus operation, on Fermata's own worker. Callers are workflows in another
// namespace, which know nothing of Fermata.
func TestAnAgentIsANexusOperation(t *testing.T) {
	t.Parallel()
	working := make(chan string, 1)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch text := r.Messages[0].Text(); {
		case strings.Contains(text, "tea"):
			return saysText(`{"fine":true}`)
		case strings.Contains(text, "ana"):
			return saysText("good day")
		case strings.Contains(text, "endless"):
			return callsTool("block", `{}`)
		}
		return callsTool("ask_user", `{"question":"Which?"}`)
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	service := nexus.NewService("agents")
	service.MustRegister(
		agents.Operation[item, verdict](reviewOperation, "reviewer", func(in item) agents.Options {
			return agents.Options{TaskQueue: s.queue, Session: in.Name + "-" + s.queue}
		}),
		agents.Operation[string, string](greetOperation, "reviewer", func(string) agents.Options { return agents.Options{TaskQueue: s.queue} }))
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "reviewer", Model: "script", Tools: []string{"block", agent.AskUserTool}, Limits: agent.Limits{Turns: 2}}}, Tools: []tool.Tool{block(working)},
		Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
		Register: func(r sdk.Registry) { r.RegisterNexusService(service) },
	})
	there, endpoint := inNewNamespace(t, s), s.endpoint(t, s.queue)
	w := sdk.New(there, "callers", sdk.Options{})
	w.RegisterWorkflow(callReview)
	w.RegisterWorkflow(callGreet)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	start := func(wf any, in any) temporal.WorkflowRun {
		run, err := there.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: "callers"}, wf, endpoint, in)
		require.NoError(t, err)
		return run
	}

	var v verdict
	require.NoError(t, start(callReview, item{"tea"}).Get(t.Context(), &v))
	require.True(t, v.Fine)
	run, err := s.Get(t.Context(), "tea-"+s.queue)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.result(t, run).Status)
	s.keepOperation(t, "operation", run)
	var text string
	require.NoError(t, start(callGreet, "ana").Get(t.Context(), &text))
	require.Equal(t, "good day", text)

	asks := start(callReview, item{"coffee"})
	run = s.live(t, "coffee-"+s.queue)
	require.Equal(t, agent.SuspensionInputRequired, s.suspended(t, run).Kind)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "the strong one"})
	s.say(t, run, agent.AnswerCommand{Request: s.suspended(t, run).Requests[0].ID, Text: "no other"})
	err = asks.Get(t.Context(), nil)
	require.Equal(t, agent.CodeLimitTurns, agent.CodeOf(err), "%v", err)

	endless := start(callReview, item{"endless"})
	<-working
	run = s.live(t, "endless-"+s.queue)
	require.NoError(t, there.CancelWorkflow(t.Context(), endless.GetID(), ""))
	require.True(t, sdktemporal.IsCanceledError(endless.Get(t.Context(), nil)))
	require.Equal(t, agent.StatusCancelled, s.result(t, run).Status)
	s.keepOperation(t, "operation-cancelled", run)
}

// The page's command makes an endpoint, with the plain temporal command.
func TestThePageMakesAnEndpoint(t *testing.T) {
	t.Parallel()
	temporalCommand(t)
	s := on(t, shared(t))
	page, err := os.ReadFile("../docs/temporal.md")
	require.NoError(t, err)
	const makes = "\ntemporal operator nexus endpoint create "
	_, flags, _ := strings.Cut(string(page), makes)
	flags, _, _ = strings.Cut(flags, "\n")
	_, err = s.cli(t, append(strings.Fields(makes)[1:], strings.Fields(flags)...)...)
	require.NoError(t, err)
	list, err := s.temporal.OperatorService().ListNexusEndpoints(t.Context(), &operatorservice.ListNexusEndpointsRequest{Name: "agents"})
	require.NoError(t, err)
	require.Len(t, list.Endpoints, 1)
	made := list.Endpoints[0]
	require.Equal(t, "fermata", made.GetSpec().GetTarget().GetWorker().GetTaskQueue())
	_, err = s.temporal.OperatorService().DeleteNexusEndpoint(t.Context(), &operatorservice.DeleteNexusEndpointRequest{Id: made.GetId(), Version: made.GetVersion()})
	require.NoError(t, err)
}

// keepOperation keeps the history of the workflow that is between an operation and a run.
func (s *stage) keepOperation(t *testing.T, shape string, run *client.Run) {
	t.Helper()
	d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, run.ID)
	require.NoError(t, err)
	parent := d.GetWorkflowExecutionInfo().GetParentExecution()
	s.keep(t, shape, parent.GetWorkflowId(), parent.GetRunId())
}
