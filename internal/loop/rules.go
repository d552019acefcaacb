package loop

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// A rule is one thing that the run does by itself. when reports whether it applies. cond
// says the same to readers of docs/loop.md.
type rule struct {
	name string
	cond string
	when func(*step) bool
	then func(*step)
}

// rules are tried in this order after every input. The first that applies is carried out,
// and then they are tried from the top again, until none applies. docs/loop.md lists them.
var rules = []rule{
	{"go on when what a parked run waits for has come",
		"parked, and what the run waits for has come; for an idle daemon that is anything to deal with. No hold, no stop",
		(*step).mayUnpark, (*step).unpark},
	{"close the suspension when no reason is left",
		"a suspension is open, and no reason to wait is left or a stop has come",
		func(s *step) bool {
			return s.Suspensions.Open != nil && !s.decided() && !s.hasReason()
		}, (*step).closeSuspension},

	{"begin the next call that may begin",
		"working, and nothing keeps a call that waits (see below)",
		func(s *step) bool { return s.awaitsCalls() && s.nextCall() >= 0 }, (*step).beginCall},
	{"end the turn when every call is done",
		"working, and every call has its result",
		func(s *step) bool { return s.awaitsCalls() && s.Calls.done() }, (*step).endCalls},
	{"cancel what is in flight when the history is nearly full",
		"something is in flight, and the history is over 40,000 events or 30 MB. No grace, no stop. The grace is 5 seconds",
		func(s *step) bool {
			return s.historyNearlyFull() && s.End.Aborting == nil && s.inFlight()
		}, (*step).cancelForHistoryLimit},

	{"seal the log before a new execution",
		"continuing, and the tail is not stored. After the first seal, a tail of few short events may go along",
		func(s *step) bool { return s.Phase == RunContinuing && s.Log.mustSealToContinue() && s.Log.canSeal() }, func(s *step) { s.seal(false) }},
	{"seal the log of a run that ends",
		"ending, and the tail is not stored",
		func(s *step) bool { return s.Phase == RunEnding && s.Log.hasUnsealed() && s.Log.canSeal() }, func(s *step) { s.seal(true) }},
	{"end when all is stored and no sub-agent works",
		"ending, all is stored, and every sub-agent has ended or had 10 seconds for it",
		func(s *step) bool {
			return s.Phase == RunEnding && s.Log.Sealing == 0 && !s.Log.hasUnsealed() && !s.Children.blocksEnd(s.At)
		}, (*step).ended},

	{"make the handoff when the sub-agents have drained",
		"draining, and every sub-agent has ended or the stop's deadline is over",
		func(s *step) bool {
			return s.Phase == RunDraining && (!s.Children.anyNotEnded() || s.End.Stopping.over(s.At))
		}, (*step).makeHandoff},
	{"summarize, drain and make the handoff after a stop",
		"ready, and a stop is in progress. Once a turn has begun the model is asked for a summary, then sub-agents that work drain. After the deadline only the handoff is left",
		func(s *step) bool { return s.ready() && s.End.Stopping != nil }, (*step).summarizeAndDrain},
	{"skip a call that is too long for a suspended run, or for a new execution",
		"a suspension is open, or a new execution is due, nothing is in flight, and the calls that wait are longer than a run at rest may keep",
		func(s *step) bool { return (s.comesToRestNow() || s.continuesAsNew()) && s.overlong() >= 0 }, func(s *step) {
			s.skip(s.overlong(), tooLongToKeep)
		}},
	// Above "begin the next turn": a ready run would always begin a turn first, and a long
	// history would never end.
	{"continue as new when the history is long, or the run stays suspended",
		"Temporal suggests it, or the run has been suspended for 10 minutes in this execution; and nothing is in flight (see [A new execution](#a-new-execution-meets-calls-in-flight))",
		(*step).continuesAsNew, func(s *step) { s.enterPhase(RunContinuing) }},

	{"summarize when a daemon becomes idle",
		"ready, a daemon with `compact` is idle, and no suspension is open yet",
		(*step).sumsUpWhenIdle, func(s *step) { s.summarize(SummaryForResume) }},
	{"stop at a limit",
		"ready, no reason to wait, and one of the run's own limits is used up",
		func(s *step) bool { return s.mayBeginTurn() && s.exhaustedLimit() != nil }, func(s *step) { s.atLimit(s.exhaustedLimit(), s.Spec.OnLimit) }},
	{"stop at a limit that a sub-agent waits for",
		"a sub-agent is suspended for what one of the run's own limits has used up. Nothing in flight, no hold, nobody asked yet",
		func(s *step) bool { return s.limitExhaustedForChild() != nil }, func(s *step) { s.atLimit(s.limitExhaustedForChild(), s.Spec.OnLimit) }},
	{"begin the next turn from a summary",
		"as the next rule, and a summary was asked for (`from_summary`, `carry: compact`, a park's time)",
		func(s *step) bool { return s.mayBeginTurn() && !s.Log.blocksTurns() && s.Turn.SummaryReason != "" }, func(s *step) { s.summarize(SummaryForResume) }},
	// Above the grants: what is left is used here first, or blocked sub-agents would pass it
	// to and fro (budgetview.go).
	{"begin the next turn",
		"ready, no reason to wait, no stop. With over 1 MB that the store lags behind, the run waits for the store",
		func(s *step) bool { return s.mayBeginTurn() && !s.Log.blocksTurns() }, (*step).nextTurn},

	{"grant what a sub-agent asks for",
		"a sub-agent asks, and enough is left: for a suspended one, some of all that it lacks",
		func(s *step) bool { i, _ := s.nextGrant(); return !s.decided() && i >= 0 }, (*step).grantToChild},
	{"tell a sub-agent that no more agents are granted",
		"a sub-agent asks for agents, and no limit here or above allows one",
		func(s *step) bool { return !s.decided() && s.nextDenial() >= 0 }, (*step).denyChild},
	{"recall what sub-agents do not use",
		"a sub-agent has what is missed here, or what the parent recalls, and was not asked yet",
		func(s *step) bool { return s.nextRecall() >= 0 }, (*step).recallFromChildren},
	{"give back what is not used",
		"the parent recalls, and no model call is in flight",
		(*step).mustGiveBack, (*step).giveBack},
	{"ask above for more",
		"the run's grant is what binds, and the parent was not asked yet, or less urgently",
		(*step).mustAskParent, (*step).askParentForBudget},

	{"open a suspension when every sub-agent is suspended",
		"the turn waits for sub-agents alone, and each of these is suspended. None for a grant",
		func(s *step) bool { return s.maySuspend() && s.onlyAwaitsSuspendedChildren() }, func(s *step) {
			s.openSuspension(agent.InitiatorPolicy, "children", "")
		}},
	{"open a suspension when the run waits for a grant",
		"nothing is in flight, and the run lacks what only a grant or a return can bring",
		func(s *step) bool { return s.maySuspend() && s.lacksBudget() && s.nothingInFlight() }, func(s *step) {
			s.openSuspension(agent.InitiatorPolicy, "budget", "")
		}},
	{"open a suspension when a daemon is idle",
		"nothing is in flight, and a daemon has nothing to deal with",
		func(s *step) bool { return s.maySuspend() && s.idling() && s.nothingInFlight() }, func(s *step) {
			s.openSuspension(agent.InitiatorSelf, causeIdle, "")
		}},
	{"suspend when nothing is in flight",
		"a suspension is open, and nothing is in flight. A sub-agent that the turn waits for and that works counts, unless the run is held",
		(*step).comesToRestNow, (*step).suspend},
	{"take back that the run is suspended when that is not stored",
		"an ancestor's hold alone needed no store, and now there is another reason",
		func(s *step) bool { return s.isAtRest() && s.Suspensions.stored() && !s.stored() }, (*step).withdrawSuspended},
	{"seal the log of a run that is suspended",
		"at rest, and `run.suspended` is not stored. Not while continuing, nor for an ancestor's hold alone",
		func(s *step) bool { return s.isAtRest() && !s.stored() && s.maySeal() }, func(s *step) { s.seal(false) }},
	{"report that the run is suspended, or what it waits for now",
		"at rest and stored, and not told yet or no longer what listings show",
		func(s *step) bool {
			return s.isAtRest() && s.stored() && (!s.Suspensions.stored() || s.changed)
		}, (*step).publishSuspension},
	{"store what waits for a suspended daemon",
		"suspended, and the store lacks an event that waits",
		func(s *step) bool { return s.isAtRest() && s.Suspensions.stored() && s.Log.HeadBehind && s.maySeal() }, func(s *step) { s.seal(false) }},
	{"seal a long tail while the run goes on",
		"the tail is over 256 KB",
		func(s *step) bool { return !s.decided() && s.Log.needsSeal() && s.Log.canSeal() }, func(s *step) { s.seal(false) }},
	{"hand the state on to a new execution",
		"continuing, and nothing is left that must be sealed",
		func(s *step) bool {
			return s.Phase == RunContinuing && !s.continuedAsNew && s.Log.Sealing == 0 && !s.Log.mustSealToContinue()
		}, (*step).continueAsNew},
}

// maxFired is more rules than one input can make apply. Beyond it two rules undo each other.
const maxFired = 1000

// advance carries out the rules until none applies.
func (s *step) advance() {
	for range maxFired {
		r := s.firstRule()
		if r == nil {
			return
		}
		s.fired = append(s.fired, r.name)
		// From the top again: no rule has to know which rule follows it (decision 0016).
		r.then(s)
	}
	panic(fmt.Sprintf("the machine does not come to rest: %q", s.fired[maxFired-5:]))
}

func (s *step) firstRule() *rule {
	for i := range rules {
		if rules[i].when(s) {
			return &rules[i]
		}
	}
	return nil
}

// awaitsCalls reports whether the turn waits for its calls.
func (s *step) awaitsCalls() bool { return s.Phase == RunActive && s.Turn.Phase == TurnWorking }

// mayBeginTurn reports whether nothing but a limit or the store keeps the run from its next
// turn.
func (s *step) mayBeginTurn() bool { return s.ready() && s.End.Stopping == nil && !s.hasReason() }

// maySuspend reports whether a suspension may be opened. A stop ends every suspension.
func (s *step) maySuspend() bool {
	return s.Suspensions.Open == nil && s.End.Stopping == nil && !s.decided()
}

// comesToRestNow reports whether the last call of a run with an open suspension has come
// back.
func (s *step) comesToRestNow() bool {
	return s.Suspensions.Open != nil && !s.Suspensions.atRest() && !s.decided() && s.nothingInFlight()
}

// isAtRest reports whether the run is at rest in an open suspension.
func (s *step) isAtRest() bool { return s.Suspensions.atRest() && !s.decided() }

// maySeal reports whether a seal may begin outside of continue-as-new, which has a rule of
// its own.
func (s *step) maySeal() bool { return s.Phase != RunContinuing && s.Log.canSeal() }

// inFlight reports whether a model call or a tool call is in flight.
func (s *step) inFlight() bool { return s.Turn.inFlight() || s.Calls.runningCount() > 0 }

// historyNearlyFull reports whether a call that begins now would be cancelled at once, since
// the history is nearly full. A stop ends the run in this execution, so it may still begin
// one.
func (s *step) historyNearlyFull() bool { return s.NearHistoryLimit && s.End.Stopping == nil }

// continuesAsNew reports whether the run continues as new now. A run that is being stopped
// ends in this execution.
func (s *step) continuesAsNew() bool {
	due := s.ContinueAsNewSuggested || reached(s.Suspensions.continueAsNewAt(), s.At)
	// After continue-as-new the server no longer delivers the result of a child that a call
	// waits for.
	return due && s.End.Stopping == nil && s.mayContinueAsNew() && !s.hasForegroundChild()
}

// mayContinueAsNew reports whether no call is in flight, whose result a new execution would
// miss. The run is between two turns, or at rest. Or its history is nearly full, and its
// pending calls must wait for the next execution. Children are another question
// (hasForegroundChild).
func (s *step) mayContinueAsNew() bool {
	switch {
	case s.ready():
		return true
	case s.awaitsCalls():
		return s.Suspensions.atRest() || s.NearHistoryLimit && s.Calls.runningCount() == 0
	}
	return false
}
