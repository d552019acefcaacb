package activities

import (
	"cmp"
	"context"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// Lane is a kind of activity with slots of its own in every process. Activities of one
// lane never wait for those of another.
type Lane string

// The lanes. A provider with a rate limit has one more; see [RatedLane].
const (
	ModelLane Lane = "model" // asks models
	ToolLane  Lane = "tool"  // calls tools, and lists those of tool sources
	StoreLane Lane = "store" // reads and writes the store, and asks flows: a long tool must not keep them waiting
)

// RatedLane returns the lane of a model whose provider has a rate limit. The provider is
// the part of the full name before the first slash.
func RatedLane(model string) Lane {
	provider, _, _ := strings.Cut(model, "/")
	return ModelLane + "." + Lane(provider)
}

// Queue returns the lane's task queue, given the runs' task queue. The empty lane's queue
// is that of the runs. Histories record it, so its form must stay.
func (l Lane) Queue(runs string) string {
	if l == "" {
		return runs
	}
	return runs + "." + string(l)
}

// runs returns the runs' task queue, given the lane's.
func (l Lane) runs(queue string) string { return strings.TrimSuffix(queue, l.Queue("")) }

// inLane limits an activity to the slots of its lane, when it comes by the runs' task
// queue. An activity that finds no free slot fails with [durable.NoSlot] before it has
// done anything, and the run schedules it on the lane's queue. A local activity needs no
// slot: Temporal limits those itself.
func inLane[In, Out any](slots func(In) *Slots, do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		info := activity.GetInfo(ctx)
		if info.IsLocalActivity {
			return do(ctx, in)
		}
		s := slots(in)
		if !s.TryAcquire() {
			return out, notBegun(ctx, durable.NoSlot{})
		}
		defer s.Release()
		return do(ctx, in)
	}
}

// notBegun returns the error of an activity that has done nothing; e says what this build lacks. The
// attempts so far, and what they left, must not be lost with this activity: the run passes them to
// the next one.
func notBegun(ctx context.Context, e durable.NoSlot) error {
	info := activity.GetInfo(ctx)
	e.Tried = int(info.Attempt) - 1
	if !info.IsLocalActivity && activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &e.HeartbeatDetails) // on an error they count as lost attempts
	}
	return e
}

// Register registers every activity, for the worker on the runs' task queue.
func (d *Activities) Register(r durable.Registry) {
	Open.Register(r, d.open)
	Refresh.Register(r, d.refresh)
	Claim.Register(r, inLane(of[OpenInput](d.Slots[StoreLane]), d.claimHead))
	Locate.Register(r, inLane(of[loop.LocateArgs](d.Slots[StoreLane]), d.locate))
	Import.Register(r, inLane(of[loop.ImportArgs](d.Slots[StoreLane]), d.importRun))
	Seal.Register(r, inLane(of[SealInput](d.Slots[StoreLane]), d.seal))
	List.Register(r, inLane(of[loop.ListArgs](d.Slots[ToolLane]), d.list))
	MakeWorkspace.Register(r, inLane(of[loop.MakeWorkspaceArgs](d.Slots[ToolLane]), d.makeWorkspace))
	EndWorkspace.Register(r, inLane(of[loop.EndWorkspaceArgs](d.Slots[ToolLane]), d.endWorkspace))
	Look.Register(r, inLane(of[loop.LookArgs](d.Slots[ToolLane]), d.look))
	CallTool.Register(r, inLane(of[ToolInput](d.Slots[ToolLane]), d.makeCall))
	AwaitWorkflow.Register(r, inLane(of[AwaitWorkflowInput](d.Slots[ToolLane]), d.awaitWorkflow))
	AskFlow.Register(r, inLane(of[FlowInput](d.Slots[StoreLane]), d.askFlow))
	CopyFiles.Register(r, inLane(of[CopyFilesInput](d.Slots[StoreLane]), d.copyFiles))
	CallModel.Register(r, inLane(func(in ModelInput) *Slots { return d.Slots[cmp.Or(in.Lane, ModelLane)] }, d.askModel))
	CheckParent.Register(r, d.checkParent)
	FetchOutcome.Register(r, d.fetch)
	AwaitInFlight.Register(r, d.awaitInFlight)
	Tick.Register(r, d.tick)
}

// of returns s for every input.
func of[In any](s *Slots) func(In) *Slots { return func(In) *Slots { return s } }

// RegisterLane registers the activities of one lane, for the worker on the lane's queue.
// It uses no inLane: that worker polls only while a slot is free.
func (d *Activities) RegisterLane(r durable.Registry, l Lane) {
	switch l {
	case StoreLane:
		Claim.Register(r, d.claimHead)
		Locate.Register(r, d.locate)
		Import.Register(r, d.importRun)
		Seal.Register(r, d.seal)
		Tick.Register(r, d.tick)
		AskFlow.Register(r, d.askFlow)
		CopyFiles.Register(r, d.copyFiles)
	case ToolLane:
		List.Register(r, d.list)
		MakeWorkspace.Register(r, d.makeWorkspace)
		EndWorkspace.Register(r, d.endWorkspace)
		Look.Register(r, d.look)
		CallTool.Register(r, d.makeCall)
		AwaitWorkflow.Register(r, d.awaitWorkflow)
	default:
		CallModel.Register(r, d.askModel)
	}
}
