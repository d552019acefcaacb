package worker

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/activities"
)

// Lane is what one of Temporal's own workers does in a process. Each has a task queue
// and activity slots of its own, so that none waits for what another is busy with
// (docs/decisions/0018).
type Lane = activities.Lane

// The lanes. A provider in [Options.RateLimits] has one more, [LaneModels] + "." + its name.
const (
	// LaneRuns executes workflows, and the steps that they get started at once: of those, as
	// many of each other lane as that lane has slots.
	LaneRuns   Lane = ""
	LaneModels      = activities.ModelLane
	LaneTools       = activities.ToolLane
	LaneStores      = activities.StoreLane
)

// laneSlots is how many steps of a lane a process has in flight unless the user says
// otherwise: as many as Temporal's own default for all activities of a worker.
const laneSlots = 1000

// lanes makes the SDK's workers and registers what each does; that of the runs is first.
func (o *Options) lanes(c client.Client, acts *activities.Activities, common sdk.Options) []sdk.Worker {
	acts.Slots = map[Lane]*activities.Slots{}
	whole, own := laneSlots, map[Lane]sdk.Options{}
	for _, l := range o.otherLanes() {
		options := o.otherLaneOptions(l, common)
		if options.Tuner == nil { // else the user's bounds what comes by the lane's queue
			n := cmp.Or(options.MaxConcurrentActivityExecutionSize, laneSlots)
			whole, acts.Slots[l] = whole+n, activities.NewSlots(n)
			options.Tuner, options.MaxConcurrentActivityExecutionSize = tunerOf(acts.Slots[l]), 0
			// The SDK takes no bound beside a tuner, also not one that the user set for all.
			options.MaxConcurrentLocalActivityExecutionSize, options.MaxConcurrentWorkflowTaskExecutionSize, options.MaxConcurrentNexusTaskExecutionSize = 0, 0, 0
		}
		own[l] = options
	}
	// More than all lanes together may have: a step that finds its lane full has to be
	// told so, and not to wait for a slot that another lane holds.
	common.MaxConcurrentActivityExecutionSize = whole
	identity := common.Identity
	if o.Temporal != nil {
		o.Temporal(LaneRuns, &common)
	}
	common.Identity = identity // holds find the process by it
	list := []sdk.Worker{sdk.New(c, o.taskQueue(), common)}
	o.register(list[0], acts)
	for _, l := range o.otherLanes() {
		w := sdk.New(c, l.Queue(o.taskQueue()), own[l])
		acts.RegisterLane(w, l)
		list = append(list, w)
	}
	return list
}

// otherLanes are the lanes beside the runs, in an order that is always the same.
func (o *Options) otherLanes() []Lane {
	list := []Lane{LaneModels, LaneTools, LaneStores}
	for _, provider := range slices.Sorted(maps.Keys(o.RateLimits)) {
		list = append(list, activities.RatedLane(provider))
	}
	return list
}

// otherLaneOptions are the options of the SDK's worker of a lane beside the runs.
func (o *Options) otherLaneOptions(l Lane, common sdk.Options) sdk.Options {
	common.DisableWorkflowWorker = true
	// What waits here waits for a slot, and mostly nothing does: one poll is enough.
	common.MaxConcurrentActivityTaskPollers = 1
	for provider, r := range o.RateLimits {
		if l == activities.RatedLane(provider) {
			common.TaskQueueActivitiesPerSecond, common.MaxConcurrentActivityExecutionSize = r.PerSecond, r.Concurrent
			common.MaxConcurrentActivityTaskPollers = 2 // Temporal's default: all calls come by this queue
		}
	}
	identity := common.Identity
	if o.Temporal != nil {
		o.Temporal(l, &common)
	}
	common.Identity = identity
	return common
}

// tunerOf makes the SDK ask for work only while the lane has a slot for what may come. A
// lane has no workflows and no local activities.
func tunerOf(slots *activities.Slots) sdk.WorkerTuner {
	none, _ := sdk.NewFixedSizeSlotSupplier(laneSlots)       // it refuses what is not positive
	t, _ := sdk.NewCompositeTuner(sdk.CompositeTunerOptions{ // it returns no error
		ActivitySlotSupplier: supplier{slots}, LocalActivitySlotSupplier: none, WorkflowSlotSupplier: none, NexusSlotSupplier: none, SessionActivitySlotSupplier: none,
	})
	return t
}

// supplier is a lane's slots as the SDK asks for them.
type supplier struct{ slots *activities.Slots }

// ReserveSlot implements [sdk.SlotSupplier].
func (s supplier) ReserveSlot(ctx context.Context, _ sdk.SlotReservationInfo) (*sdk.SlotPermit, error) {
	if err := s.slots.Reserve(ctx); err != nil {
		return nil, err
	}
	return &sdk.SlotPermit{}, nil
}

// TryReserveSlot implements [sdk.SlotSupplier].
func (s supplier) TryReserveSlot(sdk.SlotReservationInfo) *sdk.SlotPermit {
	if !s.slots.TryReserve() {
		return nil
	}
	return &sdk.SlotPermit{}
}

// MarkSlotUsed implements [sdk.SlotSupplier].
func (s supplier) MarkSlotUsed(i sdk.SlotMarkUsedInfo) {
	i.Permit().UserData = used{}
	s.slots.ReservationUsed()
}

// used marks the permit of a step that has begun.
type used struct{}

// ReleaseSlot implements [sdk.SlotSupplier].
func (s supplier) ReleaseSlot(i sdk.SlotReleaseInfo) {
	if i.Permit().UserData == (used{}) {
		s.slots.Release()
		return
	}
	s.slots.ReservationUnused()
}

// MaxSlots implements [sdk.SlotSupplier].
func (s supplier) MaxSlots() int { return s.slots.Size() }
