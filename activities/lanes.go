package activities

import (
	"cmp"
	"context"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
)

// Lane is a kind of step that has slots of its own in every process: steps of one lane
// never wait for those of another.
type Lane string

// The lanes. A provider whose calls are rated has one more, see [RatedLane].
const (
	ModelLane Lane = "model" // asks models
	ToolLane  Lane = "tool"  // calls tools, and lists those of tool sources
	StoreLane Lane = "store" // reads and writes the store
)

// RatedLane is the lane of a model whose provider's calls are rated: the provider is the
// part of the full name before the first slash.
func RatedLane(model string) Lane {
	provider, _, _ := strings.Cut(model, "/")
	return ModelLane + "." + Lane(provider)
}

// Queue is the lane's task queue beside that of the runs; that of the runs for no lane.
// It is recorded in histories.
func (l Lane) Queue(runs string) string {
	if l == "" {
		return runs
	}
	return runs + "." + string(l)
}

// runs is the task queue of the runs, of which queue is the lane's.
func (l Lane) runs(queue string) string { return strings.TrimSuffix(queue, l.Queue("")) }

// inLane gives an activity the slots of its lane, for steps that come by the runs' own task
// queue. A step that finds none free goes back with [durable.NoSlot] before anything is
// done, and the run schedules it on the lane's queue. A local activity does not: Temporal
// counts those apart.
func inLane[In, Out any](slots func(In) *Slots, do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		info := activity.GetInfo(ctx)
		if info.IsLocalActivity {
			return do(ctx, in)
		}
		s := slots(in)
		if !s.TryAcquire() {
			full := durable.NoSlot{Tried: int(info.Attempt) - 1}
			if activity.HasHeartbeatDetails(ctx) {
				_ = activity.GetHeartbeatDetails(ctx, &full.HeartbeatDetails) // without it the attempts count as lost
			}
			return out, full
		}
		defer s.Release()
		return do(ctx, in)
	}
}

// Register registers every step, for the worker on the runs' own task queue.
func (d *Activities) Register(r durable.Registry) {
	Open.Register(r, d.open)
	Claim.Register(r, inLane(of[OpenInput](d.Slots[StoreLane]), d.claimHead))
	Locate.Register(r, inLane(of[loop.LocateArgs](d.Slots[StoreLane]), d.locate))
	Import.Register(r, inLane(of[loop.ImportArgs](d.Slots[StoreLane]), d.importRun))
	Seal.Register(r, inLane(of[SealInput](d.Slots[StoreLane]), d.seal))
	List.Register(r, inLane(of[loop.ListArgs](d.Slots[ToolLane]), d.list))
	CallTool.Register(r, inLane(of[ToolInput](d.Slots[ToolLane]), d.callTool))
	CallModel.Register(r, inLane(func(in ModelInput) *Slots { return d.Slots[cmp.Or(in.Lane, ModelLane)] }, d.askModel))
	CheckParent.Register(r, d.checkParent)
	FetchOutcome.Register(r, d.fetch)
	AwaitInFlight.Register(r, d.awaitInFlight)
	Tick.Register(r, d.tick)
}

// of are the same slots whatever the input.
func of[In any](s *Slots) func(In) *Slots { return func(In) *Slots { return s } }

// RegisterLane registers the steps of one lane, for the worker on the lane's queue.
func (d *Activities) RegisterLane(r durable.Registry, l Lane) {
	switch l {
	case StoreLane:
		Claim.Register(r, d.claimHead)
		Locate.Register(r, d.locate)
		Import.Register(r, d.importRun)
		Seal.Register(r, d.seal)
		Tick.Register(r, d.tick)
	case ToolLane:
		List.Register(r, d.list)
		CallTool.Register(r, d.callTool)
	default:
		CallModel.Register(r, d.askModel)
	}
}
