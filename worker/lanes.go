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

// Lane is the work of one of Temporal's workers in this process. Each lane has its own
// task queue and activity slots, so that none waits for another (docs/decisions/0018).
type Lane = activities.Lane

// The lanes. A provider in [Options.RateLimits] has one more: [LaneModels] + "." + its
// name.
const (
	// LaneRuns executes workflows. It also starts activities that come together with a workflow
	// task (Temporal's eager activities): these use the slots of the lane of their kind.
	LaneRuns   Lane = ""
	LaneModels      = activities.ModelLane
	LaneTools       = activities.ToolLane
	LaneStores      = activities.StoreLane
)

// laneSlots is the default number of activities of a lane in a process: Temporal's own
// default for all activities of a worker.
const laneSlots = 1000

// lanes makes the SDK's workers and registers what each does. The worker of the runs
// comes first.
func (o *Options) lanes(c client.Client, acts *activities.Activities, common sdk.Options) []sdk.Worker {
	acts.Slots = map[Lane]*activities.Slots{}
	whole, own := laneSlots, map[Lane]sdk.Options{}
	for _, l := range o.otherLanes() {
		options := o.otherLaneOptions(l, common)
		if options.Tuner == nil { // otherwise the user's tuner limits what comes by the lane's queue
			n := cmp.Or(options.MaxConcurrentActivityExecutionSize, laneSlots)
			whole, acts.Slots[l] = whole+n, activities.NewSlots(n)
			options.Tuner, options.MaxConcurrentActivityExecutionSize = tunerOf(acts.Slots[l]), 0
			// The SDK refuses these limits beside a tuner, even if the user set them for
			// all lanes.
			options.MaxConcurrentLocalActivityExecutionSize, options.MaxConcurrentWorkflowTaskExecutionSize, options.MaxConcurrentNexusTaskExecutionSize = 0, 0, 0
		}
		own[l] = options
	}
	// More slots than all lanes together: an activity that finds its lane full must be
	// refused at once, and not wait for a slot that another lane holds.
	common.MaxConcurrentActivityExecutionSize = whole
	o.askUser(LaneRuns, &common)
	list := []sdk.Worker{sdk.New(c, o.taskQueue(), common)}
	o.register(list[0], acts)
	if o.Register != nil {
		o.Register(list[0])
	}
	for _, l := range o.otherLanes() {
		w := sdk.New(c, l.Queue(o.taskQueue()), own[l])
		acts.RegisterLane(w, l)
		list = append(list, w)
	}
	return list
}

// otherLanes returns the lanes beside the runs, in a fixed order.
func (o *Options) otherLanes() []Lane {
	list := []Lane{LaneModels, LaneTools, LaneStores}
	for _, provider := range slices.Sorted(maps.Keys(o.RateLimits)) {
		list = append(list, activities.RatedLane(provider))
	}
	return list
}

// otherLaneOptions returns the options of a lane's worker.
func (o *Options) otherLaneOptions(l Lane, common sdk.Options) sdk.Options {
	common.DisableWorkflowWorker = true
	// Activities come here only when they found no slot, so one poller is enough.
	common.MaxConcurrentActivityTaskPollers = 1
	for provider, r := range o.RateLimits {
		if l == activities.RatedLane(provider) {
			common.TaskQueueActivitiesPerSecond, common.MaxConcurrentActivityExecutionSize = r.PerSecond, r.Concurrent
			common.MaxConcurrentActivityTaskPollers = 2 // Temporal's default: all calls come by this queue
		}
	}
	o.askUser(l, &common)
	return common
}

// askUser passes what was chosen for a lane to the user's function, which has the last word. A number of ours beside a
// tuner or a poller behavior of the user's is dropped: the SDK refuses both together.
func (o *Options) askUser(l Lane, options *sdk.Options) {
	ours := *options
	if o.Temporal != nil {
		o.Temporal(l, options)
	}
	options.Identity = ours.Identity // holds find the process by its identity
	if options.Tuner != nil && options.MaxConcurrentActivityExecutionSize == ours.MaxConcurrentActivityExecutionSize {
		options.MaxConcurrentActivityExecutionSize = 0
	}
	if options.ActivityTaskPollerBehavior != nil && options.MaxConcurrentActivityTaskPollers == ours.MaxConcurrentActivityTaskPollers {
		options.MaxConcurrentActivityTaskPollers = 0
	}
}

// tunerOf returns a tuner that polls only while the lane has a free slot. A lane has no
// workflows and no local activities.
func tunerOf(slots *activities.Slots) sdk.WorkerTuner {
	none, _ := sdk.NewFixedSizeSlotSupplier(laneSlots)       // it refuses sizes that are not positive
	t, _ := sdk.NewCompositeTuner(sdk.CompositeTunerOptions{ // it returns no error
		ActivitySlotSupplier: supplier{slots}, LocalActivitySlotSupplier: none, WorkflowSlotSupplier: none, NexusSlotSupplier: none, SessionActivitySlotSupplier: none,
	})
	return t
}

// supplier offers a lane's slots to the SDK.
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

// used marks the permit of an activity that has started.
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
