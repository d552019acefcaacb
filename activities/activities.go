package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// Activities implements the activities with what this process has. Model, Log, LogCache,
// InFlight and Logger are required. One serves a whole process.
type Activities struct {
	// Client queries runs for their tails, and Temporal for the ends of runs. Nil is for
	// a test environment, where everything happens in one process.
	Client client.Client
	Agents map[string]Agent
	// Model returns a model by the full name that a Spec has. Runs that are older than
	// this build may name a model that none of its agents has.
	Model func(name string) (Model, error)
	Tools map[string]tool.Tool
	// Flows are the functions of flows, by the agent's name, and Plays those in progress.
	Flows map[string]play.Function
	// FlowInputs return why a text can't be the input of a flow's run; nil if it can.
	FlowInputs map[string]func(input string) error
	Plays      *Plays
	// OneBuild means that all tasks of a run go to one build, as with Worker Versioning.
	OneBuild bool
	Sources  map[string]tool.Source // by name
	// Workspaces makes sub-agents' own workspaces, and watches files for daemons; nil if no agent needs
	// either.
	Workspaces tool.Workspaces
	// Migrations bring a session's state to the version that an agent needs.
	Migrations []Migration
	Log        *store.Log
	// Identity refuses a store other than the task queue's; nil accepts any.
	Identity *Identity
	LogCache *LogCache
	InFlight *InFlight
	// ParentChecks are required if runs have background children.
	ParentChecks *ParentChecks
	// Slots are the lanes' slots. A lane without an entry has no limit.
	Slots map[Lane]*Slots
	// StorePace remembers whether the store answers quickly.
	StorePace *StorePace
	// ExportKeys verify signed exports. Without keys every import is refused.
	ExportKeys signals.Keys
	// DailyBudget is this process's part of the daily limits; nil means no limit.
	DailyBudget *DailyBudget
	Logger      *slog.Logger
	// Live receives what is not recorded: pieces of replies, and progress. It may be nil.
	Live live.Sink
	// Observers receive tool calls; nil means none.
	Observers *observers.Set
	// Pins refuse tools that differ from the accepted ones; nil accepts all.
	Pins tool.Pins
	// Converter decodes results of the user's own workflows; nil means that of Client.
	Converter converter.DataConverter
	// Approvals make tools ask for an approval, by names and patterns.
	Approvals map[string]agent.ToolApproval
	// Skills are the worker's skills, by name. SkillMatcher chooses among an agent's under the
	// strategy host; it may be nil.
	Skills       map[string]*skill.Skill
	SkillMatcher SkillMatcher
	// Pictures are the copies of images that models do not take as they are; nil keeps none.
	Pictures *Pictures
}

// Agent is an agent's definition for its next runs.
type Agent struct {
	Spec agent.Spec
	// Sources are the names of the tool sources that a run lists when it begins.
	Sources []string
}

// Model is a model under the name that a Spec gives it.
type Model struct {
	model.Model
	// Name is the provider's name of the model, and Full the name that a Spec has.
	Name, Full string
}

// liveEvent is a piece of what a run is doing. It is not recorded, and may be lost.
type liveEvent struct {
	Session string
	Run     string
	Turn    int
	Call    string // set for a tool's progress
	// Text and Thinking continue the model's reply; Progress is a tool's remark.
	Text, Thinking, Progress string
	At                       int // where Text begins in the reply, in bytes from 1
	// Restart means that the model is asked again from the beginning. Readers drop what
	// they have of this turn.
	Restart bool
}

// stopped reports whether a hold, or the run's own cancellation, ended the context. A
// worker that shuts down, or a timeout, does not count: then the activity is repeated.
func stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && (heldBy(ctx) != nil || temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled))
}

// publish sends the parts of l to the live sink.
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
		tell(agent.EventDeltaText, live.Data{Text: l.Text, At: l.At})
	}
	if l.Progress != "" {
		tell(agent.EventCallProgress, live.Data{Call: l.Call, Text: l.Progress})
	}
}

// How long an activity may send no heartbeat. Then its worker counts as lost, and the
// activity is repeated or its outcome is unknown. Each heartbeat is a write at the server
// and an action that Temporal Cloud bills. Calls of models and tools take long, so they
// send few. docs/reliability.md says what is noticed when.
const (
	Heartbeat     = 10 * time.Second // of the runtime's own activities, most of which end before the first heartbeat
	CallHeartbeat = 30 * time.Second // of a model or tool call
)

// HeartbeatThrottle is how long the SDK holds heartbeats back at most. If it were longer
// than the 12 s between the heartbeats of a call, it would hold back every second one.
const HeartbeatThrottle = 10 * time.Second

// heartbeat sends heartbeats until stop is called: two and a half within the timeout. By
// a heartbeat an activity also learns that its run was terminated, or that it was
// cancelled, if neither this process nor the server says so at once.
func heartbeat(ctx context.Context) (stop func()) { return heartbeatWith(ctx, nil) }

// heartbeatWith leaves details to the next attempt with each heartbeat; details may be
// nil.
func heartbeatWith(ctx context.Context, details func() any) (stop func()) {
	done := make(chan struct{})
	every := activity.GetInfo(ctx).HeartbeatTimeout * 2 / 5
	if every <= 0 { // no timeout, so the server expects no heartbeat
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
