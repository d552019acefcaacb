package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// continued begins a new execution. Timers and activities of the last one are gone.
func (s *step) continued() {
	s.NextTimer = time.Time{}
	s.Parent.dropCheck()
	s.Children.newExecution(s.At)
	s.Log.leaveTail()
	s.Watch.over()
	s.SuspensionHooks.newExecution()
	s.Suspensions.markContinuedAsNew()
	if s.isFlow() { // no late result comes to this execution
		s.Budget.setCharged(agent.Usage{})
	}
	if s.Phase == RunContinuing { // an imported run keeps its phase
		s.enterPhase(RunActive)
	}
	s.lookForEnds()
}
