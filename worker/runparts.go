package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
)

// recorded is the state of a run, which names its parts.
type recorded struct{ loop.State }

// argument decodes an argument of the run; the zero value if it is invalid, which the run
// itself will find.
func argument[T any](start *historypb.WorkflowExecutionStartedEventAttributes, n int) (v T) {
	if p := start.GetInput().GetPayloads(); n < len(p) {
		_ = json.Unmarshal(p[n].GetData(), &v)
	}
	return v
}

// tooNew returns why this build cannot read the state that an execution began with; empty
// if it can.
func tooNew(start *historypb.WorkflowExecutionStartedEventAttributes) string {
	p := start.GetInput().GetPayloads()
	if len(p) < 2 || len(p[1].GetData()) == 0 {
		return ""
	}
	if _, err := loop.ReadState(p[1].GetData()); err != nil {
		return err.Error()
	}
	return ""
}

// unbegun returns what is known of an execution before its first task.
func unbegun(start *historypb.WorkflowExecutionStartedEventAttributes) recorded {
	if carried := argument[recorded](start, 1); carried.Spec != nil {
		return carried
	}
	begun := argument[agent.Start](start, 0)
	return recorded{loop.State{Origin: loop.Origin{Start: &begun}}}
}

func (r recorded) agent() string {
	switch {
	case r.Spec != nil:
		return r.Spec.Name
	case r.Origin.Start != nil && agent.CheckName(r.Origin.Start.Agent) == nil:
		return r.Origin.Start.Agent
	}
	return ""
}

// lacks lists the run's parts that a worker lacks; empty if it has all.
func (r recorded) lacks(has *activities.Activities) string {
	if has == nil {
		return ""
	}
	var lacks []string
	lack := func(kind, name string, has bool) {
		if text := kind + " " + name; !has && !slices.Contains(lacks, text) {
			lacks = append(lacks, text)
		}
	}
	source := func(name string) { _, ok := has.Sources[name]; lack("tool source", name, ok) }
	_, known := has.Agents[r.agent()]
	lack("agent", r.agent(), known || r.agent() == "")
	for _, name := range r.Origin.Sources {
		source(name)
	}
	if r.Spec == nil {
		return strings.Join(lacks, ", ")
	}
	for _, name := range r.Spec.Models() {
		if r.Spec.Flow && name == agent.FlowModel {
			continue
		}
		_, err := has.Model(name)
		lack("model", name, err == nil)
	}
	for _, sub := range r.Spec.Agents {
		_, ok := has.Agents[sub.Agent]
		lack("agent", sub.Agent, ok)
	}
	for _, t := range r.Spec.Toolset {
		_, ok := has.Tools[t.Name]
		switch of, _, remote := strings.Cut(t.Name, tool.Separator); {
		case t.Executor != "" || t.Temporal != nil || ok:
		case remote:
			source(of)
		default:
			lack("tool", t.Name, false)
		}
	}
	return strings.Join(lacks, ", ")
}

// stateReader reads the state of a replayed run, by the run's own query handler.
type stateReader struct {
	interceptor.WorkerInterceptorBase
	machine func(converter.RawValue) (json.RawMessage, error)
	// converter is that of the worker's options: what a call came to depends on it.
	converter converter.DataConverter
}

// ask reads the state at the end of the replay.
func (w *stateReader) ask(into *recorded) error {
	if w.machine == nil {
		return agent.Errorf(agent.CodeInternal, "replaying: the run answers no query %s", signals.Machine.Name)
	}
	raw, err := w.machine(converter.RawValue{})
	if err == nil {
		err = jsonv1.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("replaying: the run's state: %w", durable.Within(signals.Machine.Name, err))
	}
	return nil
}

// InterceptWorkflow wraps the run, to see its query handlers.
func (w *stateReader) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &stateReaderInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, w}
}

type stateReaderInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	by *stateReader
}

// Init wraps the outbound interceptor, which sees SetQueryHandler.
func (i *stateReaderInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&handlers{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.by})
}

type handlers struct {
	interceptor.WorkflowOutboundInterceptorBase
	by *stateReader
}

// SetQueryHandler keeps the handler of the query for the state.
func (h *handlers) SetQueryHandler(ctx workflow.Context, name string, handler any) error {
	if machine, ok := handler.(func(converter.RawValue) (json.RawMessage, error)); ok && name == signals.Machine.Name {
		h.by.machine = machine
	}
	return h.Next.SetQueryHandler(ctx, name, handler)
}
