package worker

import (
	"log/slog"

	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// Options configure a worker. Store is required, and Agents or Flows, with the Models that
// they name; every other field has a default.
type Options struct {
	// TaskQueue is the task queue of the runs; empty means "fermata".
	TaskQueue string
	Agents    []agent.Definition
	// Flows are agents whose next steps a Go function decides.
	Flows []flow.Flow
	Tools []tool.Tool
	// Sources are sets of tools that are known only at run time, such as MCP servers. An
	// agent names one as "mcp:NAME".
	Sources []tool.Source
	// Workspaces makes the workspaces that sub-agents have for themselves, and watches files for
	// daemons. It is required if an agent needs either. The package tool/workspace has one, which also makes the Tools that work there.
	Workspaces tool.Workspaces
	// Pins accept tools of sources only as they were accepted before. A new tool, or one
	// with a changed description or schema, is left out of runs and logged. Nil accepts
	// all. The package tool/lock keeps pins in a file. Pins do not filter Skills.
	Pins tool.Pins
	// Skills are skills that agents may name. The package skill reads them from directories, and
	// mcp.Server.Skills lists those of an MCP server. No two may have one name. The worker takes
	// all of them: whoever lists a server's skills compares them with what was accepted, for
	// example with FilterSkills of package tool/lock.
	Skills []*skill.Skill
	// SkillMatcher chooses the skills of a task for agents with skill_match.strategy host. If it
	// fails, or takes longer than 5 seconds, they are matched by metadata.
	SkillMatcher activities.SkillMatcher
	// Approvals make tools need an approval, whoever calls them, by names or patterns
	// ("bank__*"). They work like [tool.Options.Approval], also for tools of sources. If
	// several match a tool, or the tool has its own, the strictest counts.
	Approvals map[string]agent.ToolApproval
	// Models are found by the full name that an agent gives, or by the part before its
	// first slash: "anthropic" serves "anthropic/claude-sonnet-5".
	Models map[string]model.Model
	// Middleware is put around every model; the first is outermost. [activities.Breaker]
	// is within all of them.
	Middleware []model.Middleware
	// RateLimits limit the calls of models by provider: the part of their full names
	// before the first slash. All workers of a task queue must have the same. Limited
	// calls wait on a task queue of their own, and a run keeps the one that it began
	// with. So to remove a limit, leave its entry with zero values until no such run is
	// left. A call with fallbacks counts for its first model.
	RateLimits map[string]RateLimit
	// DailyLimits limit what all runs of the task queue use in a day; the zero value has
	// no limit. All workers of a task queue should have the same. When a limit is used
	// up, model calls wait for the next day (docs/limits.md).
	DailyLimits agent.DailyLimits
	// Migrations convert the state of older sessions to an agent's StateVersion, along
	// the shortest chain. No two may convert between the same versions.
	Migrations []activities.Migration
	// Store keeps the transcripts. All workers of a task queue must use the same one.
	Store store.Store
	// Logger is the worker's logger; nil means zap's global logger. [FromSlog] makes one
	// of a slog.Logger.
	// Lines about a run have its session, as session.
	Logger *zap.Logger
	// Temporal may change the options of Temporal's own workers. Each [Lane] has one. The
	// function is called for each while the worker is made, with the options that Fermata
	// chose. Nil changes nothing. Add to Interceptors and DeploymentOptions, but never
	// replace them. The Identity is always the worker's own. An activity slot supplier in
	// a Tuner limits only what comes by the lane's own task queue, and replaces a
	// [RateLimit.Concurrent].
	Temporal func(l Lane, o *sdk.Options)
	// Converter encodes the arguments, and decodes the results, of activities, workflows and
	// Nexus operations of your own that tools and flows call. Nil means that of the client.
	// It is for workers that have a codec of their own. All workers of a task queue must
	// have the same one: with another, runs in progress could not continue.
	Converter converter.DataConverter
	// Register registers workflows, activities and Nexus services of your own, on the
	// worker of the lane [LaneRuns]. It is called once while the worker is made, and panics
	// as Temporal does if a name is there twice. Nil registers nothing. Names that begin
	// with "fermata." are the runtime's.
	Register func(r sdk.Registry)
	// Live receives pieces of replies, and tools' progress; nil sends them nowhere. A
	// [live.Hub] passes them to readers in this process.
	Live live.Sink
	// Holds carries holds between worker processes; nil lets Temporal do it. The module
	// live/nats has another one.
	Holds live.Holds
	// Observers receive the events of runs, each at its own pace: runs do not wait for them.
	// The module telemetry has one that makes OpenTelemetry's traces and metrics. See
	// [Worker.Drain].
	Observers []observe.Observer
	// Audit records every verb, and what comes of it; nil leaves that to the sessions'
	// own logs. A verb that it cannot record does not take effect.
	Audit observe.Auditor
	// ApprovalKeys verify the tokens of approvers and of the Policy's principals, by key
	// id. They are public and make no tokens: a [signals.Signer] does, in a program that
	// knows who somebody is. Without keys, nobody can decide what needs a token.
	ApprovalKeys signals.Keys
	// Policy says who may say which verbs; nil restricts nothing. An update follows the
	// policy of the worker that takes it, also for runs that began before. A run records
	// the policy that it began with. Signals follow that one, and so do updates at a
	// worker without a policy. A policy needs ApprovalKeys.
	Policy agent.Policy
	// ExportKeys are the public keys of those who may sign exports, by key id. Without
	// keys no export can be imported. Keep an old key as long as its exports are to be
	// accepted.
	ExportKeys signals.Keys
	// Build is the version that runs show; empty means the version of the main module.
	// With a Deployment it is required, and must differ for each deploy.
	Build string
	// Deployment switches on Temporal's Worker Versioning. It names the Worker Deployment
	// of which this worker is the version Build. With its next task a run moves to the
	// current build, forwards and back. Until a build is made current, nothing runs;
	// Start warns of that. Empty means no versioning.
	Deployment string
}

func (o *Options) taskQueue() string {
	if o.TaskQueue == "" {
		return signals.TaskQueue
	}
	return o.TaskQueue
}

func (o *Options) slogger() *slog.Logger {
	return slog.New(sessionHandler{Handler: zapslog.NewHandler(o.logger().Core())})
}

func (o *Options) logger() *zap.Logger {
	if o.Logger == nil {
		return zap.L()
	}
	return o.Logger
}
