package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A tool or a step of a flow can be an activity, a workflow or a Nexus operation of the
// user's own. Then the workflow calls it, and no activity of ours. All else is as for
// other calls. The agent's Spec, or the step, has recorded what is called.

// Timeouts of calls whose tool sets none. A workflow may wait for people.
const (
	toolTime     = agent.Duration(10 * time.Minute)
	workflowTime = agent.Duration(24 * time.Hour)
	// startTime is how long an activity of the user's own may wait for a worker.
	startTime = agent.Duration(time.Hour)
)

// maxOutsideResult bounds a result of the user's own, in bytes. An activity of ours cuts other
// results before they come.
const maxOutsideResult = 128 << 10

// How many results of the user's own may be on their way. Each can be as long as the server
// accepts, 2 MB, and is in the history before the run can cut it. The server ends a run at
// 50 MB. From 4 MB on it suggests a new execution, and from nearBytes on no call begins
// (package workflows).
const (
	maxOutside     = 20
	maxOutsideLate = 8
)

// temporalCall returns what the workflow has to call for a call; nil for other tools.
func (s *step) temporalCall(c Call) *agent.TemporalCall {
	tool := s.toolOf(c)
	t := tool.Temporal
	if c.Step.Temporal != nil {
		t = c.Step.Temporal
	}
	if t == nil || t.StartTimeout > 0 {
		return t
	}
	whole := *t
	whole.StartTimeout = startTime
	return &whole
}

// OutsideCall returns what the run's workflow calls for a call in flight, and since when; nil
// for other calls. gaveUp means that the run does not wait for its result any more.
func (s *State) OutsideCall(id string) (t *agent.TemporalCall, since time.Time, gaveUp bool) {
	for _, c := range s.Calls.List {
		if c.ID == id && c.State == CallRunning {
			at := step{State: *s}
			return at.temporalCall(c), c.Since, s.Holds.any() || s.End.Stopping != nil || s.outcomeDecided() || c.Dropped
		}
	}
	return nil, time.Time{}, false
}

// mayCallTemporal reports whether one more result of the user's own has space in the history.
func (s *step) mayCallTemporal() bool {
	n, most := 0, maxOutside
	for _, c := range s.Calls.List {
		if c.State == CallRunning && s.temporalCall(c) != nil {
			n++
		}
	}
	if s.ContinueAsNewSuggested {
		most = maxOutsideLate
	}
	return n < most
}

// defaultTimeout returns the timeout of a call whose tool sets none.
func defaultTimeout(t *agent.TemporalCall) agent.Duration {
	if t == nil || t.Kind == agent.TemporalActivity {
		return toolTime
	}
	return workflowTime
}

// callName returns what people are shown as the name of a call: a flow's step says itself what
// it calls.
func callName(c Call) string {
	if c.Step.Temporal != nil {
		return c.Step.Temporal.String()
	}
	return c.Tool
}

// callNameWords returns the part of [callName] that the runtime did not write.
func callNameWords(c Call) string {
	if t := c.Step.Temporal; t != nil {
		return t.Type + t.TaskQueue + t.Endpoint + t.Service
	}
	return c.Tool
}
