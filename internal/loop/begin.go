package loop

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// nextCall is the place of the first call that may begin now; -1 if none may.
func (s *step) nextCall() int {
	active := s.Calls.runningCount()
	return slices.IndexFunc(s.Calls.List, func(c Call) bool {
		if c.State != CallPending || !s.mayBegin(c) {
			return false
		}
		switch tool, _ := s.Spec.Tool(c.Tool); {
		case tool.Executor == agent.ExecutorSubAgent:
			return !s.Holds.any() && s.mayDelegate() && s.mayStart(c)
		case slices.Contains(lifecycleNames, c.Tool):
			return true
		}
		return active < s.Spec.ParallelTools
	})
}

// beginCall begins the first call that may begin.
func (s *step) beginCall() {
	i := s.nextCall()
	c := s.Calls.List[i]
	switch tool, _ := s.Spec.Tool(c.Tool); {
	case tool.Executor == agent.ExecutorSubAgent:
		s.delegate(i)
	case slices.Contains(lifecycleNames, c.Tool):
		s.callLifecycleTool(i)
	default:
		s.Calls.begin(i, s.At)
		s.record(agent.Event{Type: agent.EventCallStarted, Call: &agent.CallUpdate{Call: c.ID, Tool: c.Tool}})
		s.callTool(i, false)
	}
}

// mayBegin reports whether a call may begin now.
func (s *step) mayBegin(c Call) bool {
	switch {
	case s.historyNearlyFull(): // it would be given up at once; the next execution makes it
	case s.End.Aborting != nil: // at the end of a grace every call that has not come back counts as lost
	case s.Holds.blockCalls(s.Suspensions.atRest()): // a pause lets the turn in progress end
	case s.Suspensions.atRest() && s.hasReason(): // a run at rest begins nothing while it has a reason to wait
	case c.Approved && len(s.Requests.Open) > 0: // it waits for the rest of what is asked
	case s.Requests.asks(agent.RequestApproval) && !s.readsOnly(c): // it could bring the approval about
	default:
		return true
	}
	return false
}

// readsOnly reports whether a call is made by a tool of the worker that only reads. A
// source's tools are others' programs, whatever they say that they do.
func (s *step) readsOnly(c Call) bool {
	tool, _ := s.Spec.Tool(c.Tool)
	return tool.Executor == "" && tool.ReadOnly && !strings.Contains(tool.Name, agent.SourceSeparator)
}
