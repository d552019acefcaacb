package loop

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// nextCall returns the index of the first call that may begin now; -1 if none may.
func (s *step) nextCall() int {
	active := s.Calls.runningCount()
	return slices.IndexFunc(s.Calls.List, func(c Call) bool {
		if c.State != CallPending || !s.mayBegin(c) {
			return false
		}
		switch {
		case s.toolOf(c).Executor == agent.ExecutorSubAgent:
			// Not even under a pause, which lets other calls of the turn begin: the child would
			// be held at once, and the call would wait for it.
			return !s.Holds.any() && s.mayDelegate() && s.mayStart(c)
		case slices.Contains(lifecycleNames, c.Tool):
			return true // the run answers these itself: without an activity, parallel_tools does not count them
		case s.temporalCall(c) != nil && !s.mayCallTemporal(), s.generates(c) && !s.mayGenerate():
			return false
		}
		return active < s.Spec.ParallelTools
	})
}

// beginCall begins the first call that may begin.
func (s *step) beginCall() {
	i := s.nextCall()
	c := s.Calls.List[i]
	switch {
	case s.toolOf(c).Executor == agent.ExecutorSubAgent:
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

// mayBegin reports whether a call may begin now, as far as the run and its requests decide that.
func (s *step) mayBegin(c Call) bool {
	switch {
	case s.historyForbidsCalls(): // No: the call would be cancelled at once. The next execution makes it.
	case s.End.Grace != nil: // No: when the grace ends, every call that has not returned counts as lost.
	case s.Holds.blockCalls(s.Suspensions.atRest()): // No: held. But a pause lets the turn in progress end.
	case s.Suspensions.atRest() && s.hasReason(): // No: a run at rest begins nothing while it has a reason to wait.
	case s.isFlow(): // No under any hold, and while the run waits for its tools to continue as new.
		return !s.Holds.any() && !s.drainsForNewExecution() && !(s.Flow.News && (s.exhaustedLimit() != nil || s.grantExhausted()))
	case c.Approved && len(s.Requests.Open) > 0: // No: it waits until the turn's other requests are decided.
	case s.Requests.asks(agent.RequestApproval) && !s.readsOnly(c): // No: while people are asked, a tool with effects could approve the other call itself, as a shell could.
	default:
		return true
	}
	return false
}

// readsOnly reports whether a call's tool is the worker's own and only reads. Tools of a source
// are other people's programs: their own claim to be read-only does not count.
func (s *step) readsOnly(c Call) bool {
	tool := s.toolOf(c)
	return tool.Executor == "" && tool.ReadOnly && !strings.Contains(tool.Name, agent.SourceSeparator)
}
