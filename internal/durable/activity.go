package durable

import (
	"context"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
)

// Activity declares an activity with its input and output. Histories record its name, so
// it must never change.
type Activity[In, Out any] struct{ Name string }

// Start schedules the activity on a task queue.
func (a Activity[In, Out]) Start(ctx workflow.Context, o workflow.ActivityOptions, in In) Future[Out] {
	return Future[Out]{workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), a.Name, in)}
}

// StartLocal runs the activity within the workflow task, in this process. The history
// gets one marker with the result.
func (a Activity[In, Out]) StartLocal(ctx workflow.Context, o workflow.LocalActivityOptions, in In) Future[Out] {
	return Future[Out]{workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, o), a.Name, in)}
}

// Registry registers activities: a Temporal worker, or a test environment.
type Registry interface {
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

// Register registers do as the activity's function.
func (a Activity[In, Out]) Register(r Registry, do func(context.Context, In) (Out, error)) {
	r.RegisterActivityWithOptions(func(ctx context.Context, in In) (out Out, err error) {
		// The server would retry a panic for ever, and only a new build mends it.
		defer func() {
			if p := recover(); p != nil {
				activity.GetLogger(ctx).Error("step panicked", "step", a.Name, "panic", p, "stack", string(debug.Stack()))
				err = toTemporal(agent.Errorf(agent.CodeInternal, "%s panicked: %v", a.Name, p))
			}
		}()
		growStack(0)
		out, err = do(ctx, in)
		return out, toTemporal(err)
	}, activity.RegisterOptions{Name: a.Name})
}

// Future is the result of an activity that may still run.
type Future[Out any] struct{ Raw workflow.Future }

// Get waits for the result.
func (f Future[Out]) Get(ctx workflow.Context) (out Out, err *agent.Error) {
	// A run that is replayed reads all its results, and encoding/json, which Temporal's converter
	// uses, takes twice as long.
	var raw converter.RawValue
	if f.Raw.Get(ctx, &raw) == nil && isJSON(raw.Payload()) && json.Unmarshal(raw.Payload().GetData(), &out, inOnePass) == nil {
		return out, nil
	}
	var slowly Out
	err = FromTemporal(f.Raw.Get(ctx, &slowly))
	return slowly, err
}

// inOnePass decodes as encoding/json does, but does not look for errors first.
var inOnePass = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

func isJSON(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingJSON
}

// growStack makes the goroutine's stack as large as most activities need while there is little on it
// to copy. The SDK runs each activity on a new goroutine. Its stack would double again and again as
// calls get deeper, and be copied each time, frame by frame: a third of what a local activity costs.
//
//go:noinline
func growStack(i int) byte {
	var room [20 << 10]byte
	return room[i]
}
