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
	{"drop a hook that nobody needs any more",
		"a hook around a suspension or a resume works, and what it was asked about is decided otherwise: a stop, an end, an interrupt, a parent's hold, or the suspension is over. A resume that waits for it is refused",
		(*step).hookIsMoot, (*step).dropHook},
	// Above all that takes results: those that came within the grace lead to nothing new.
	{"end a cancelled run when nothing is in flight",
		"a cancel waits for calls in flight, and each of them has returned, or the grace is over",
		func(s *step) bool { return s.cancelling() && !s.inFlight() }, (*step).endCancelled},
	{"wake a parked run when what it waits for has come",
		"parked, neither held nor stopped, and what the run waits for has come. For an idle daemon that is any message or event",
		(*step).mayUnpark, (*step).unpark},
	{"close the suspension when no reason is left",
		"a suspension is open. No reason to wait is left, or a stop has come",
		func(s *step) bool {
			return s.Suspensions.Open != nil && !s.outcomeDecided() && !s.hasReason()
		}, (*step).closeSuspension},
	{"read the agent's newest instructions after a suspension",
		"active, an agent with `refresh_on_resume`, and a suspension has ended since they were read. No suspension is open, and no stop has come",
		(*step).mustRefresh, (*step).refreshInstructions},

	// Before calls begin: a step's result may use up a limit, and then the run ends first.
	{"record the results of a flow's steps",
		"a flow, and a step has its result",
		func(s *step) bool {
			return s.isFlow() && s.Phase == RunActive && s.Calls.count(CallDone) > 0
		}, (*step).recordSteps},
	{"take the verdict of a check",
		"working, and the call of a check has its result",
		(*step).hasVerdict, (*step).takeVerdict},
	{"make the next check of the turn's calls",
		"working, the turn's calls wait for `hooks.before_calls`, and neither a hold nor a reason to wait is there",
		(*step).mayCheckCalls, (*step).checkCalls},
	{"begin the next call that may begin",
		"working, and nothing prevents a pending call (see the next table)",
		func(s *step) bool { return s.awaitsCalls() && s.nextCall() >= 0 }, (*step).beginCall},
	{"end the turn when every call is done",
		"working, no flow, and every call has its result",
		func(s *step) bool { return !s.isFlow() && s.awaitsCalls() && s.Calls.done() }, (*step).endCalls},
	{"cancel what is in flight when the history is nearly full",
		"something is in flight, and the history is over 40,000 events or 30 MB. Neither a grace nor a stop is in progress. Begins a grace of 5 seconds",
		func(s *step) bool {
			return s.historyForbidsCalls() && s.End.Grace == nil && s.inFlight()
		}, (*step).cancelForHistoryLimit},

	{"fail when the log of a stateless run has no more room",
		"nothing is in flight, a stateless agent, and its log is over 1 MB, or its history nearly full",
		func(s *step) bool { return s.outgrown() != nil }, func(s *step) { s.fail(s.outgrown()) }},

	{"seal the log before a new execution",
		"continuing, and the tail is not stored. After the first seal, a tail of few short events may go along",
		func(s *step) bool { return s.Phase == RunContinuing && s.Log.mustSealToContinue() && s.Log.canSeal() }, func(s *step) { s.seal(false) }},
	{"merge, keep or drop the workspace of a run that ends",
		"ending, a run with a workspace of its own. Every sub-agent has ended or had 10 seconds for it",
		(*step).mayEndWorkspace, (*step).endWorkspace},
	{"seal the log of a run that ends",
		"ending, and the tail is not stored. A workspace of the run's own has ended",
		func(s *step) bool {
			return s.Phase == RunEnding && !s.Workspace.open() && s.Log.hasUnsealed() && s.Log.canSeal()
		}, func(s *step) { s.seal(true) }},
	{"end when all is stored and every sub-agent has ended",
		"ending, all is stored, and every sub-agent has ended or had 10 seconds for it",
		func(s *step) bool {
			return s.Phase == RunEnding && !s.Workspace.open() && s.Log.SealingSeq == 0 && !s.Log.hasUnsealed() && !s.Children.blocksEnd(s.At)
		}, (*step).ended},

	{"make the handoff when the sub-agents have drained",
		"draining, and every sub-agent has ended or the stop's deadline is over",
		func(s *step) bool {
			return s.Phase == RunDraining && (!s.Children.anyNotEnded() || s.End.Stopping.over(s.At))
		}, (*step).makeHandoff},
	{"summarize, drain and make the handoff after a stop",
		"ready, and a stop is in progress. If the run is no flow and has taken a turn, the model is asked for a summary. Then the run waits for sub-agents that have not ended. After the deadline it only makes the handoff",
		func(s *step) bool { return s.ready() && s.End.Stopping != nil }, (*step).summarizeAndDrain},
	{"skip a call that is too long for a suspended run, or for a new execution",
		"the run can rest. The pending calls have more bytes than a suspended run may store. A suspension is open, or a new execution is due",
		func(s *step) bool { return (s.comesToRestNow() || s.newExecutionDue()) && s.overlong() >= 0 }, func(s *step) {
			s.skip(s.overlong(), tooLongToKeep)
		}},
	// Above "begin the next turn": a ready run would always begin a turn first, and a long
	// history would never end.
	{"continue as new when the history is long, or the run stays suspended",
		"Temporal suggests it, or the run has been `suspended` for 10 minutes (once in a suspension); and nothing is in flight (see [A new execution](#a-new-execution-meets-calls-in-flight))",
		(*step).newExecutionDue, (*step).beginNewExecution},

	{"take the signals that wait before the first turn",
		"active, the run has had no turn and no rest, and signals wait. A hold or a stop among them counts before the turn, and a message is in its first request",
		func(s *step) bool { return s.Phase == RunActive && s.hearsFirst() && !s.takesSignals }, func(s *step) {
			s.takesSignals = true
			s.do(TakeSignals{})
		}},
	{"summarize when a daemon becomes idle",
		"ready, a daemon with `compact` is idle, and no suspension is open yet",
		(*step).sumsUpWhenIdle, func(s *step) { s.summarize(SummaryOfAll) }},
	// Above the limits: the answer is there, and only a check that calls a model needs one.
	{"fail or ask at a limit before a check that calls a model",
		"an answer waits for its checks, the next one is a judge or an agent, and one of the run's own limits other than turns is used up",
		func(s *step) bool { return s.limitOfCheck() != nil }, func(s *step) { s.atLimit(s.limitOfCheck(), s.Spec.OnLimit) }},
	{"make the next check of an answer",
		"ready, an answer waits for its checks, no reason to wait, no stop. A message that waits drops the answer instead",
		(*step).mayVerify, (*step).verifyNext},
	{"make the next check of the task",
		"as \"begin the next turn\", the run has had no turn, and `hooks.before_run` has not accepted its task yet",
		(*step).mayCheckTask, (*step).checkTask},
	// Above the limits: a hook may extend one.
	{"call the next hook of a turn",
		"as \"begin the next turn\", and the last turn waits for `hooks.after_turn`",
		(*step).mayCallHook, func(s *step) { s.makeCheck(agent.PointAfterTurn, s.Hooks.Next) }},
	{"move the adaptive limit",
		"ready, no reason to wait, an agent with `limits.adaptive`. The limit is used up and the last turn did something that extends it, or two turns in a row brought nothing and it shrinks",
		func(s *step) bool { return s.mayBeginTurn() && s.adaptiveMove() != nil }, (*step).moveLimit},
	{"fail or ask at a limit",
		"ready, no reason to wait, and one of the run's own limits is used up, or `loop_detection.idle` turns in a row brought the run no further",
		func(s *step) bool { return s.mayBeginTurn() && s.limitBeforeTurn() != nil }, (*step).stopBeforeTurn},
	{"fail or ask at a limit that a sub-agent waits for",
		"a sub-agent is suspended for what one of the run's own limits has used up. Nothing in flight, no hold, nobody asked yet",
		func(s *step) bool { return s.limitExhaustedForChild() != nil }, func(s *step) { s.atLimit(s.limitExhaustedForChild(), s.Spec.OnLimit) }},
	{"begin the next turn from a summary",
		"as the next rule, and a summary was asked for (`from_summary`, `carry: compact`, a park whose time is over)",
		func(s *step) bool { return s.mayBeginTurn() && !s.Log.blocksTurns() && s.Turn.SummaryReason != "" }, func(s *step) { s.summarize(SummaryOfAll) }},
	// Above the grants: the run itself uses what is left first. Otherwise blocked sub-agents
	// could give it to each other without end (budgetview.go).
	{"begin the next turn",
		"ready, no reason to wait, no stop. If more than 1 MB of the log is not stored, and a seal is in progress or has failed, the run waits for the store",
		func(s *step) bool { return s.mayBeginTurn() && !s.Log.blocksTurns() }, (*step).nextTurn},

	{"grant what a sub-agent asks for",
		"a sub-agent asks, and enough is left. A suspended one gets a part of every resource that it lacks, or nothing",
		func(s *step) bool { i, _ := s.nextGrant(); return !s.outcomeDecided() && i >= 0 }, (*step).grantToChild},
	{"tell a sub-agent that no more agents are granted",
		"a sub-agent asks for agents, and no limit of this run or an ancestor allows one",
		func(s *step) bool { return !s.outcomeDecided() && s.nextDenial() >= 0 }, (*step).denyChild},
	{"recall what sub-agents do not use",
		"a sub-agent has unused budget that this run needs or that the parent recalls, and was not asked for it yet",
		func(s *step) bool { return s.nextRecall() >= 0 }, (*step).recallFromChildren},
	{"give back what is not used",
		"the parent recalls, and no model call is in flight",
		(*step).mustGiveBack, (*step).giveBack},
	{"ask the parent for more",
		"the parent's grant is used up before any limit of the run's own, and the parent was not asked yet, or the need is more urgent now",
		(*step).mustAskParent, (*step).askParentForBudget},

	{"open a suspension when every sub-agent is suspended",
		"the turn waits for sub-agents alone, each of these is suspended, and none of them waits for a grant",
		func(s *step) bool { return !s.isFlow() && s.maySuspend() && s.onlyAwaitsSuspendedChildren() }, func(s *step) {
			s.openSuspension(agent.InitiatorPolicy, "children", "")
		}},
	{"open a suspension when every step of a flow waits",
		"a flow, and each open step waits for people, an event, a time, or a suspended sub-agent",
		func(s *step) bool {
			return s.isFlow() && s.Phase == RunActive && s.maySuspend() && s.stepsOnlyWait()
		}, func(s *step) {
			s.openSuspension(agent.InitiatorSelf, "steps", s.waitingText())
		}},
	{"open a suspension when the run waits for a grant",
		"the run can rest. It, or a sub-agent that it waits for, needs budget that only its parent can grant or a sub-agent can give back",
		func(s *step) bool { return s.maySuspend() && len(s.budgetReasons()) > 0 && s.canRest() }, func(s *step) {
			s.openSuspension(agent.InitiatorPolicy, "budget", "")
		}},
	{"open a suspension when a daemon is idle",
		"the run can rest, and no message or event waits for the daemon",
		func(s *step) bool { return s.maySuspend() && s.idling() && s.canRest() }, func(s *step) {
			s.openSuspension(agent.InitiatorSelf, causeIdle, "")
		}},
	{"call the next hook of a suspension or a resume",
		"no such hook works. A person's pause or a park is about to suspend the run; or the run is at rest, that is stored, and not all hooks were told; or a resume waits for its hooks; or the run was resumed, and not all hooks were told",
		func(s *step) bool { _, _, ok := s.nextHook(); return ok }, (*step).callNextHook},
	{"suspend when nothing is in flight",
		"a suspension is open, and the run can rest. No hook has to allow it",
		(*step).comesToRestNow, (*step).suspend},
	{"withdraw the status suspended until the suspension is stored",
		"the run reported `suspended` without the store, since an ancestor's hold was the only reason, and now there is another one",
		func(s *step) bool { return s.isAtRest() && s.Suspensions.published() && !s.stored() }, (*step).withdrawSuspended},
	{"seal the log of a run that is suspended",
		"at rest, and `run.suspended` is not stored. It does not apply while continuing, or if an ancestor's hold is the only reason",
		func(s *step) bool { return s.isAtRest() && !s.stored() && s.maySeal() }, func(s *step) { s.seal(false) }},
	{"show that the run is suspended, or what it waits for now",
		"at rest and stored, and listings do not show it yet. No hook is asked, and all were told",
		func(s *step) bool {
			return s.isAtRest() && s.stored() && (!s.Suspensions.published() || s.changed) && !s.SuspensionHooks.asked() && !s.mustTellSuspension()
		}, (*step).publishSuspension},
	{"show what a running flow asks and waits for",
		"a flow that is not suspended has opened or closed a request or a wait",
		func(s *step) bool {
			return s.isFlow() && s.Phase == RunActive && s.changed && s.Suspensions.Open == nil
		}, func(s *step) { s.changed = false; s.do(Publish{}) }},
	{"store what waits for a suspended daemon",
		"suspended, and the store lacks an event that waits",
		func(s *step) bool {
			return s.isAtRest() && s.Suspensions.published() && s.Log.HeadBehind && s.maySeal()
		}, func(s *step) { s.seal(false) }},
	{"look at the files that an idle daemon watches",
		"suspended and stored, a daemon with `watch` is idle, `watch_every` is over since the last look, and neither a hold nor a look is there",
		(*step).mustLook, (*step).look},
	{"seal a long tail during the work",
		"the tail is over 256 KB",
		func(s *step) bool { return !s.outcomeDecided() && s.Log.needsSeal() && s.Log.canSeal() }, func(s *step) { s.seal(false) }},
	{"carry the state over to a new execution",
		"continuing, and nothing is left that must be sealed",
		func(s *step) bool {
			return s.Phase == RunContinuing && !s.continuedAsNew && s.Log.SealingSeq == 0 && !s.Log.mustSealToContinue() && !s.SuspensionHooks.asked()
		}, (*step).continueAsNew},
}

// maxFired is higher than the number of rules that one input fires. A step that reaches it has
// two rules that undo each other.
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
func (s *State) awaitsCalls() bool { return s.Phase == RunActive && s.Turn.Phase == TurnWorking }

// mayBeginTurn reports whether the next turn may begin. It does not look at limits and the
// store.
func (s *step) mayBeginTurn() bool {
	return (s.ready() && s.Checks.Proposal == nil || s.hasFlowNews()) && s.End.Stopping == nil && !s.hasReason() && !s.drainsForNewExecution() && !s.SuspensionHooks.busy() && !s.Refreshing.pending() && !s.hearsFirst()
}

// hearsFirst reports whether signals wait that count before the run's first turn. A run that has rested took
// what came before it began; an idle daemon takes its next messages one after the other.
func (s *step) hearsFirst() bool {
	return s.SignalsWaiting && s.ownTurns() == 0 && s.Suspensions.SuspendedFor == 0 && s.Revision >= hearsFirstSince
}

// maySuspend reports whether a suspension may be opened. A stop ends every suspension.
func (s *step) maySuspend() bool {
	return s.Suspensions.Open == nil && s.End.Stopping == nil && !s.outcomeDecided()
}

// comesToRestNow reports whether the last call of a run with an open suspension has come
// back.
func (s *step) comesToRestNow() bool {
	return s.Suspensions.Open != nil && !s.Suspensions.atRest() && !s.outcomeDecided() && s.canRest() && !s.mustAsk()
}

// isAtRest reports whether the run is at rest in an open suspension.
func (s *step) isAtRest() bool { return s.Suspensions.atRest() && !s.outcomeDecided() }

// maySeal reports whether a seal may begin outside of continue-as-new, which has a rule of
// its own.
func (s *step) maySeal() bool { return s.Phase != RunContinuing && s.Log.canSeal() }

// inFlight reports whether a model call or a tool call is in flight.
func (s *step) inFlight() bool { return s.Turn.inFlight() || s.Calls.runningCount() > 0 }

// historyForbidsCalls reports whether a call that begins now would be cancelled at once, since
// the history is nearly full. A stop ends the run in this execution, so it may still begin
// one.
func (s *step) historyForbidsCalls() bool { return s.NearHistoryLimit && s.End.Stopping == nil }

// newExecutionDue reports whether the run continues as new now. A run that is being stopped
// ends in this execution.
func (s *step) newExecutionDue() bool {
	due := s.ContinueAsNewSuggested || reached(s.Suspensions.continueAsNewAt(), s.At)
	// After continue-as-new the server no longer delivers the result of a child that a call
	// waits for.
	return due && s.End.Stopping == nil && s.mayContinueAsNew() && !s.bindsExecution()
}

// mayContinueAsNew reports whether no call is in flight: a new execution would miss its result.
// The run is between two turns, or at rest. Or its history is nearly full, and its pending
// calls must wait for the next execution. needsChildEvents checks the children.
func (s *step) mayContinueAsNew() bool {
	switch {
	case s.SuspensionHooks.asked(), s.Refreshing.Fetching: // the new execution would miss what comes
		return false
	case s.awaitsDroppedHook() && !s.NearHistoryLimit: // what comes would make the server refuse the task
		return false
	case s.ready():
		return true
	case s.awaitsCalls():
		return s.Suspensions.atRest() || (s.NearHistoryLimit || s.isFlow()) && s.Calls.runningCount() == 0
	}
	return false
}
