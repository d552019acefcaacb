package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// Activities does what the steps declare, with what this process has.
type Activities struct {
	// Client asks runs for the open part of their logs; nil in a test environment,
	// where everything happens in one process.
	Client client.Client
	Agents map[string]Agent
	// Model finds a model by the full name that a Spec has, also one that no agent
	// of this build names: runs that are older than the build may have it.
	Model   func(name string) (Model, error)
	Tools   map[string]tool.Tool
	Sources map[string]tool.Source // by name
	// Migrations bring sessions' states to the versions of the agents.
	Migrations []Migration
	Log        *store.Log
	// Identity refuses another store than the task queue's; nil refuses none.
	Identity *Identity
	LogCache *LogCache
	InFlight *InFlight
	// ParentChecks are needed where runs have parents.
	ParentChecks *ParentChecks
	// Slots are those of the lanes; a lane that is not in it has no bound.
	Slots map[Lane]*Slots
	// StorePace knows whether the store answers at once.
	StorePace *StorePace
	// ExportKeys are what exports of sessions may be signed with; without any none is
	// taken.
	ExportKeys signals.Keys
	// DailyBudget is this process' part of the daily limits; nil bounds nothing.
	DailyBudget *DailyBudget
	Logger      *slog.Logger
	// Live hears what is not recorded: pieces of replies, progress. It may be nil.
	Live live.Sink
	// Observer is told of tool calls; it may be nil.
	Observer observe.Observer
	// Pins keep sources to what was accepted; nil takes them as they are.
	Pins tool.Pins
	// Approvals has people asked before tools are called, by names and patterns.
	Approvals map[string]agent.ToolApproval
}

// Agent is what an agent's next run will be made of.
type Agent struct {
	Spec agent.Spec
	// Sources name the tool sources whose tools are listed at a run's start.
	Sources []string
}

// Model is a model under the name that a Spec gives it.
type Model struct {
	model.Model
	// Name is the provider's own name for it, and Full the one that a Spec has.
	Name, Full string
}

// liveEvent is something of what a run is doing. It is not recorded, and may be lost.
type liveEvent struct {
	Session string
	Run     string
	Turn    int
	Call    string // of a tool's progress
	// Text and Thinking continue the model's reply; Progress is a tool's remark.
	Text, Thinking, Progress string
	// Restart means that the model is asked again from the beginning: what came
	// before of this turn is void.
	Restart bool
}

// stopped reports whether a step's context was ended by somebody's wish: by a hold,
// or by the run giving it up. A worker that shuts down wishes nothing.
func stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && (heldBy(ctx) != nil || temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled))
}

// publish tells a piece to whoever hears it.
func (d *Activities) publish(l liveEvent) {
	if d.Live == nil {
		return
	}
	e := live.Event{V: agent.Version, Time: time.Now().UTC(), Session: l.Session, Run: l.Run, Turn: l.Turn}
	tell := func(t agent.EventType, data live.Data) {
		e.Type, e.Data = t, data
		d.Live.Publish(e)
	}
	if l.Restart {
		tell(agent.EventDeltaReset, live.Data{})
	}
	if l.Thinking != "" {
		tell(agent.EventDeltaThinking, live.Data{Text: l.Thinking})
	}
	if l.Text != "" {
		tell(agent.EventDeltaText, live.Data{Text: l.Text})
	}
	if l.Progress != "" {
		tell(agent.EventCallProgress, live.Data{Call: l.Call, Text: l.Progress})
	}
}

// How long a step may be silent before its worker counts as lost and the step is tried
// again, or its outcome is unknown. Every heartbeat is a write at the server and an action
// that Temporal Cloud bills, and calls of models and tools take long: so a call's may be
// seldom. docs/reliability.md says what is noticed when.
const (
	Heartbeat     = 10 * time.Second // of a step of the runtime's own, which is mostly over before its first
	CallHeartbeat = 30 * time.Second // of a call of a model or a tool
)

// HeartbeatThrottle is how long the SDK holds heartbeats back at most: no longer than a
// step waits between two, or they would come at half the pace.
const HeartbeatThrottle = 10 * time.Second

// heartbeat tells the server that the step lives, whatever the step is waiting for, until the
// returned function is called: two times and a half within what it may be silent. By a
// heartbeat a step also learns that its run was terminated, and that it was cancelled where
// neither this process nor the server says so at once.
func heartbeat(ctx context.Context) (stop func()) { return heartbeatWith(ctx, nil) }

// heartbeatWith leaves something to the next attempt with each heartbeat; details may be nil.
func heartbeatWith(ctx context.Context, details func() any) (stop func()) {
	done := make(chan struct{})
	every := activity.GetInfo(ctx).HeartbeatTimeout * 2 / 5
	if every <= 0 { // nobody listens
		return func() {}
	}
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if details == nil {
					activity.RecordHeartbeat(ctx)
				} else {
					activity.RecordHeartbeat(ctx, details())
				}
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
