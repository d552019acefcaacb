package worker

import (
	"log/slog"

	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// Options is what a worker runs and with what. Agents, Models and Store are
// required; every other field has a default.
type Options struct {
	// TaskQueue is where the worker looks for work; empty means "fermata".
	TaskQueue string
	Agents    []agent.Definition
	Tools     []tool.Tool
	// Sources are sets of tools that are known only at run time, such as MCP
	// servers; an agent names one as "mcp:NAME".
	Sources []tool.Source
	// Pins keep the tools of sources to what was accepted: one that is new, or has another
	// description or schema than it had, is left out of runs and logged. Nil takes them as
	// they are. The package tool/lock keeps pins in a file.
	Pins tool.Pins
	// Approvals has people asked before tools are called, whoever calls them, by their names or
	// patterns ("bank__*"): as [tool.Options.Approval], also for tools of sources. Of several that
	// are about one tool, and what it says itself, the strictest counts.
	Approvals map[string]agent.ToolApproval
	// Models are found by the full name that an agent gives, or by the part
	// before its first slash: "anthropic" serves "anthropic/claude-sonnet-5".
	Models map[string]model.Model
	// Middleware is put around every model, the first outermost; innermost is
	// [activities.Breaker].
	Middleware []model.Middleware
	// RateLimits bound the calls of models, by provider: the part of their full names before
	// the first slash. All workers of a task queue must have the same. Calls that are
	// bounded wait on a task queue of their own, and a run keeps to the one that it began
	// with: where a bound is given up, its entry stays, with zero values, for as long as
	// such runs live. A call that asks fallbacks too counts for its first model.
	RateLimits map[string]RateLimit
	// DailyLimits bounds what all runs of the task queue use together in a day; the zero value
	// bounds nothing. All workers of a task queue should have the same. Where it is used up,
	// model calls wait for the next day (docs/limits.md).
	DailyLimits agent.DailyLimits
	// Migrations bring the state of older sessions to the StateVersion of an agent, along
	// the shortest chain. Each leads from one version to another, and no two do the same.
	Migrations []activities.Migration
	// Store is where transcripts are kept. All workers of a task queue must use
	// the same one.
	Store store.Store
	// Logger takes the worker's log; nil means zap's global logger. [FromSlog] makes one of a
	// slog.Logger.
	Logger *zap.Logger
	// Temporal has the last word on the options of Temporal's own workers, one for each
	// [Lane]: it is called for each, while the worker is made, with the options that
	// Fermata chose, and may change them. Nil changes nothing. Interceptors and
	// DeploymentOptions are to be added to, never replaced. The Identity is always the
	// worker's own. An activity slot supplier in a Tuner counts for what comes by the
	// lane's own task queue only.
	Temporal func(l Lane, o *sdk.Options)
	// Live hears pieces of replies and tools' progress as they come; nil means
	// nobody. A [live.Hub] hands them to readers in this process.
	Live live.Sink
	// Holds carries holds to other worker processes, and from them; nil means that
	// Temporal does. The module live/nats has another one.
	Holds live.Holds
	// Observer makes traces and metrics of what runs do; nil means none. The module
	// telemetry has the one for OpenTelemetry.
	Observer observe.Observer
	// Audit records every verb that runs are told, and what comes of it; nil means that only
	// the sessions' own logs do. What it can't record does not take effect.
	Audit observe.Auditor
	// ApprovalKeys verify the tokens of approvers that rules name, and of principals that
	// Policy names, by the id of the key. They are public, and mint none: that is for whoever
	// knows who somebody is, with a [signals.Signer]. Without any, what is bound to somebody
	// can't be said.
	ApprovalKeys signals.Keys
	// Policy says who may say what to runs; nil binds nothing. Updates are held to that of
	// the worker which takes them, also of runs that began before. A run records what it
	// began with: signals are held to that, and updates at a worker that has no policy. A
	// policy needs ApprovalKeys.
	Policy agent.Policy
	// ExportKeys are public keys of who may sign exports of sessions, by the id of the
	// key; without any, none can be imported. Old keys may stay for as long as what
	// they signed is to be taken.
	ExportKeys signals.Keys
	// Build is the version that runs show; empty means that of the main module. With a
	// Deployment it is required, and another one for each deploy.
	Build string
	// Deployment switches Temporal's Worker Versioning on: it is the name of the Worker
	// Deployment of which this worker is the version Build. A run moves on to the build
	// that is current with its next task, forwards and back. Nothing runs before a
	// build was made current: Start warns of that. Empty means no versioning.
	Deployment string
}

func (o *Options) taskQueue() string {
	if o.TaskQueue == "" {
		return signals.TaskQueue
	}
	return o.TaskQueue
}

func (o *Options) slogger() *slog.Logger { return slog.New(zapslog.NewHandler(o.logger().Core())) }

func (o *Options) logger() *zap.Logger {
	if o.Logger == nil {
		return zap.L()
	}
	return o.Logger
}
