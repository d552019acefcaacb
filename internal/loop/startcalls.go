package loop

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// nextCall returns the index of the first call that may begin now; -1 if none may.
func (s *step) nextCall() int {
	running := s.Calls.runningCount()
	return slices.IndexFunc(s.Calls.List, func(c Call) bool {
		return c.State == CallPending && !slices.ContainsFunc(obstacles, func(o obstacle) bool { return o.prevents(s, c, running) })
	})
}

// obstacle is one thing that prevents a pending call from beginning. what and until say to readers of
// docs/loop.md what it is and what ends it. running is how many calls run.
type obstacle struct {
	what, until string
	prevents    func(s *step, c Call, running int) bool
}

// obstacles are all that can prevent a pending call from beginning. docs/loop.md lists them.
var obstacles = []obstacle{
	// The call would be cancelled at once. The next execution makes it.
	{"a nearly full history", "a new execution",
		func(s *step, _ Call, _ int) bool { return s.historyForbidsCalls() }},
	{"a hook around a suspension or a resume", "it has answered",
		func(s *step, _ Call, _ int) bool { return s.SuspensionHooks.busy() }},
	// When the grace ends, every call that has not returned counts as lost.
	{"a grace", "it is over",
		func(s *step, _ Call, _ int) bool { return s.End.Grace != nil }},
	{"an interrupt; or a pause, but only once the run is at rest: until then the turn's calls still begin", "a resume removes the hold",
		func(s *step, _ Call, _ int) bool { return s.Holds.blockCalls(s.Suspensions.atRest()) }},
	{"another reason to wait, but only once the run is at rest", "no reason is left",
		func(s *step, _ Call, _ int) bool { return s.Suspensions.atRest() && s.hasReason() }},
	{"`hooks.before_calls`", "the turn's calls are checked",
		func(s *step, c Call, _ int) bool { return s.callWaits(c) }},

	{"an open approval, for every call of an agent except those of the worker's own read-only tools ([story](../internal/loop/testdata/approval_alone.txtar))", "the last approval is decided",
		// A tool with effects could approve the other call itself, as a shell could.
		func(s *step, c Call, _ int) bool {
			return !s.isFlow() && s.Requests.asks(agent.RequestApproval) && !s.readsOnly(c)
		}},
	{"another open request of the turn, for an agent's approved call", "the last request is closed",
		func(s *step, c Call, _ int) bool { return !s.isFlow() && c.Approved && len(s.Requests.Open) > 0 }},

	// Not even under a pause: a sub-agent would be held at once, and the call would wait for it.
	{"any hold, for a sub-agent or a flow's step", "a resume removes the hold",
		func(s *step, c Call, _ int) bool { return (s.isFlow() || s.delegates(c)) && s.Holds.any() }},
	{"a half full history, for a flow's step", "a new execution",
		func(s *step, _ Call, _ int) bool { return s.drainsForNewExecution() }},
	{"a used up limit or grant, for a flow's step, if the function has not been asked with all results", "a person or the parent grants more",
		func(s *step, _ Call, _ int) bool {
			return s.isFlow() && s.Flow.News && (s.exhaustedLimit() != nil || s.grantExhausted())
		}},
	{"no agents left, for a sub-agent", "the parent grants some, or denies them",
		func(s *step, c Call, _ int) bool { return s.delegates(c) && !s.mayDelegate() }},
	{"2 MB of starts in one workflow task, for a sub-agent", "the next task",
		func(s *step, c Call, _ int) bool { return s.delegates(c) && !s.mayStart(c) }},
	{"20 calls in flight of the user's own workflows, activities and Nexus operations, for another one; 8 once Temporal suggests a new execution", "one of them returns",
		func(s *step, c Call, _ int) bool { return s.temporalCall(c) != nil && !s.mayCallTemporal() }},
	{"the limits' rest, if the model calls in flight may use it up, for a flow's model call or a judge", "one of them returns",
		func(s *step, c Call, _ int) bool { return s.generates(c) && !s.mayGenerate() }},
	// The run answers its own tools itself, without an activity.
	{"`parallel_tools`, for a tool", "another tool call returns",
		func(s *step, c Call, running int) bool {
			return !s.delegates(c) && !slices.Contains(lifecycleNames, c.Tool) && running >= s.Spec.ParallelTools
		}},
}

// delegates reports whether a call starts a sub-agent.
func (s *step) delegates(c Call) bool { return s.toolOf(c).Executor == agent.ExecutorSubAgent }

// beginCall begins the first call that may begin.
func (s *step) beginCall() {
	i := s.nextCall()
	c := s.Calls.List[i]
	switch {
	case s.delegates(c):
		s.delegate(i)
	case slices.Contains(lifecycleNames, c.Tool):
		s.callLifecycleTool(i)
	default:
		_, most := s.estimatedCharge(c)
		s.Calls.begin(i, s.At, most)
		s.recordCallStarted(i)
		s.callTool(i, false)
	}
}

// readsOnly reports whether a call's tool is the worker's own and only reads. Tools of a source
// are other people's programs: their own claim to be read-only does not count.
func (s *step) readsOnly(c Call) bool {
	tool := s.toolOf(c)
	return tool.Executor == "" && tool.ReadOnly && !strings.Contains(tool.Name, agent.SourceSeparator)
}
