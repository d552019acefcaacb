package worker

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// bus tells the other worker processes of a task queue of a hold, and hears of
// theirs: a workflow's history, which every process reads as it grows. A note
// that is lost costs time and nothing else, see [activities.Flights].
type bus struct {
	temporal client.Client
	queue    string
	flights  *activities.Flights
	logger   *zap.Logger
	notes    chan agent.Heard
}

// maxNotes bounds the holds that wait to be told.
const maxNotes = 256

func newBus(c client.Client, queue string, f *activities.Flights, l *zap.Logger) *bus {
	b := &bus{temporal: c, queue: queue, flights: f, logger: l, notes: make(chan agent.Heard, maxNotes)}
	f.Elsewhere = b.tell
	return b
}

// tell hands a hold to whoever sends it; it is called within workflow tasks and
// does not wait.
func (b *bus) tell(h agent.Heard) {
	select {
	case b.notes <- h:
	default:
		b.logger.Warn("too many holds at once: other processes learn of this one from run to run", zap.String("session", h.Session))
	}
}

// run sends and hears until the context ends.
func (b *bus) run(ctx context.Context) {
	go b.send(ctx)
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		begun := time.Now()
		err := b.hear(ctx, begun)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > time.Minute {
			wait = time.Second // it had worked
		}
		b.logger.Debug("holds of other processes are not heard at the moment", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (b *bus) options() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: signals.LiveID(b.queue), TaskQueue: b.queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes: signals.EveryAttribute(signals.LiveType),
	}
}

// attributesKnown tells whether the workflow carries every search attribute, which a
// namespace that lacks one would have refused. Nothing is listed for that.
func (b *bus) attributesKnown(ctx context.Context) bool {
	d, err := b.temporal.DescribeWorkflowExecution(ctx, signals.LiveID(b.queue), "")
	fields := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
	return err == nil && !slices.ContainsFunc(agent.Attributes(), func(a agent.Attribute) bool { return fields[a.Name] == nil })
}

func (b *bus) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-b.notes:
			if _, err := b.temporal.SignalWithStartWorkflow(ctx, signals.LiveID(b.queue), signals.Live, h, b.options(), signals.LiveType); err != nil && ctx.Err() == nil {
				b.logger.Warn("a hold could not be told to other processes: they learn of it from run to run", zap.String("session", h.Session), zap.Error(err))
			}
		}
	}
}

// hear follows the history, from execution to execution, and heeds what was told
// since it began.
func (b *bus) hear(ctx context.Context, since time.Time) error {
	run, err := b.temporal.ExecuteWorkflow(ctx, b.options(), signals.LiveType)
	if err != nil {
		return err
	}
	for execution := run.GetRunID(); execution != ""; {
		next := ""
		events := b.temporal.GetWorkflowHistory(ctx, signals.LiveID(b.queue), execution, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return err
			}
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
			if !e.GetEventTime().AsTime().Before(since) {
				b.heed(e)
			}
		}
		execution = next
	}
	return nil
}

func (b *bus) heed(e *history.HistoryEvent) {
	told := e.GetWorkflowExecutionSignaledEventAttributes()
	if told.GetSignalName() != signals.Live {
		return
	}
	var h agent.Heard
	if err := converter.GetDefaultDataConverter().FromPayloads(told.GetInput(), &h); err != nil {
		b.logger.Warn("a hold of another process can't be read", zap.Error(err))
		return
	}
	b.flights.Heard(h)
}
