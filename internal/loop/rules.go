package loop

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// A rule is one thing that the run does by itself: when says under which condition.
type rule struct {
	name string
	when func(*step) bool
	then func(*step)
}

// rules are tried in this order after every input: the first that applies is carried out,
// and then they are tried from the top again, until none applies. docs/loop.md lists
// them.
var rules = []rule{
	{"go on when what a parked run waits for has come", (*step).unparks, (*step).unpark},
	{"close the suspension when no reason is left", func(s *step) bool {
		return s.Rest.Wait != nil && !s.over() && !s.waits()
	}, (*step).goOn},

	{"begin the next call that may begin", func(s *step) bool { return s.works() && s.nextCall() >= 0 }, (*step).beginCall},
	{"end the turn when every call is done", func(s *step) bool { return s.works() && s.Calls.done() }, (*step).endCalls},
	{"give up what is in flight when the history is nearly full", func(s *step) bool {
		return s.NearHistoryLimit && s.End.Aborting == nil && s.End.Stopping == nil && s.inFlight()
	}, (*step).giveUpForRoom},

	{"seal the log before a new execution", func(s *step) bool { return s.Life == Carrying && s.Log.carries() && s.Log.canSeal() }, func(s *step) { s.sealStep(false) }},
	{"seal the log of a run that ends", func(s *step) bool { return s.Life == Ending && s.Log.open() && s.Log.canSeal() }, func(s *step) { s.sealStep(true) }},
	{"end when all is stored and no sub-agent works", func(s *step) bool {
		return s.Life == Ending && s.Log.Sealing == 0 && !s.Log.open() && !s.Children.keepEnd(s.At)
	}, (*step).ended},

	{"fold when the sub-agents have drained", func(s *step) bool {
		return s.Life == Draining && (!s.Children.working() || s.End.Stopping.over(s.At))
	}, (*step).fold},
	{"sum up, drain and fold when a stop has come", func(s *step) bool { return s.ready() && s.End.Stopping != nil }, (*step).sumUp},
	{"carry over when the history is long, or the run rests for long", (*step).carriesOver, func(s *step) { s.live(Carrying) }},

	{"sum up when a daemon becomes idle", (*step).tidiesUp, func(s *step) { s.summarise(SumFresh) }},
	{"stop at a limit", func(s *step) bool { return s.mayTurn() && s.limit() != nil }, func(s *step) { s.reached(s.limit(), s.Spec.OnLimit) }},
	{"stop at a limit that a sub-agent waits for", func(s *step) bool { return s.limitBelow() != nil }, func(s *step) { s.reached(s.limitBelow(), s.Spec.OnLimit) }},
	{"begin anew from a summary", func(s *step) bool { return s.mayTurn() && !s.Log.keepsRun() && s.Turn.Fresh != "" }, func(s *step) { s.summarise(SumFresh) }},
	{"begin the next turn", func(s *step) bool { return s.mayTurn() && !s.Log.keepsRun() }, (*step).nextTurn},

	{"grant what a sub-agent asks for", func(s *step) bool { i, _ := s.served(); return !s.over() && i >= 0 }, (*step).grantBelow},
	{"tell a sub-agent that no more agents are granted", func(s *step) bool { return !s.over() && s.denied() >= 0 }, (*step).denyBelow},
	{"recall what sub-agents do not use", func(s *step) bool { return s.recalled() >= 0 }, (*step).recallBelow},
	{"give back what is not used", (*step).givesBack, (*step).giveBack},
	{"ask above for more", (*step).asksAbove, (*step).askAbove},

	{"open a suspension when every sub-agent rests", func(s *step) bool { return s.mayRest() && s.childrenRest() }, func(s *step) {
		s.wait(agent.ByPolicy, "children", "")
	}},
	{"open a suspension when the run waits for a grant", func(s *step) bool { return s.mayRest() && s.short() && s.idle() }, func(s *step) {
		s.wait(agent.ByPolicy, "budget", "")
	}},
	{"open a suspension when a daemon is idle", func(s *step) bool { return s.mayRest() && s.idling() && s.idle() }, func(s *step) {
		s.wait(agent.BySelf, causeIdle, "")
	}},
	{"skip a call that is too long to be kept while the run rests", func(s *step) bool { return s.comesToRest() && s.overlong() >= 0 }, func(s *step) {
		s.skip(s.overlong(), tooLongToKeep)
	}},
	{"suspend when nothing is in flight", (*step).comesToRest, (*step).suspend},
	{"take back that the run is suspended when that is not stored", func(s *step) bool { return s.suspends() && s.Rest.saved() && !s.stored() }, (*step).unsaved},
	{"seal the log of a run that is suspended", func(s *step) bool { return s.suspends() && !s.stored() && s.mayStore() }, func(s *step) { s.sealStep(false) }},
	{"tell that the run is suspended, or what it waits for now", func(s *step) bool {
		return s.suspends() && s.stored() && (!s.Rest.saved() || s.changed)
	}, (*step).tellSuspended},
	{"store what waits for a daemon that rests", func(s *step) bool { return s.suspends() && s.Rest.saved() && s.Log.Behind && s.mayStore() }, func(s *step) { s.sealStep(false) }},
	{"seal a long tail while the run goes on", func(s *step) bool { return !s.over() && s.Log.long() && s.Log.canSeal() }, func(s *step) { s.sealStep(false) }},
	{"hand the state on to a new execution", func(s *step) bool { return s.Life == Carrying && !s.handedOn && s.Log.Sealing == 0 && !s.Log.carries() }, (*step).handOn},
}

// maxFired is more rules than one input can make apply: past it two rules undo each other.
const maxFired = 1000

// advance carries out the rules until none applies.
func (s *step) advance() {
	for range maxFired {
		r := s.firstRule()
		if r == nil {
			return
		}
		s.fired = append(s.fired, r.name)
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

// works reports whether the turn waits for its calls.
func (s *step) works() bool { return s.Life == Live && s.Turn.Phase == Working }

// mayTurn reports whether nothing but a limit or the store keeps the run from its next turn.
func (s *step) mayTurn() bool { return s.ready() && s.End.Stopping == nil && !s.waits() }

// mayRest reports whether a suspension could be opened.
func (s *step) mayRest() bool { return s.Rest.Wait == nil && s.End.Stopping == nil && !s.over() }

// comesToRest reports whether nothing is in flight any more in a suspension that was opened.
func (s *step) comesToRest() bool {
	return s.Rest.Wait != nil && !s.Rest.resting() && !s.over() && s.idle()
}

// suspends reports whether the run rests in an open suspension.
func (s *step) suspends() bool { return s.Rest.resting() && !s.over() }

// mayStore reports whether a seal can begin now. A run that carries over seals by itself.
func (s *step) mayStore() bool { return s.Life != Carrying && s.Log.canSeal() }

// inFlight reports whether the model or a tool is at work for the run.
func (s *step) inFlight() bool { return s.Turn.inFlight() || s.Calls.active() > 0 }

// carriesOver reports whether the run goes on in a new execution: it rests, or is between
// two turns, or what it has yet to call has no room in this history; and no call waits for
// a sub-agent.
func (s *step) carriesOver() bool {
	kept := s.NearHistoryLimit && s.End.Stopping == nil && s.Calls.active() == 0
	between := s.ready() && s.End.Stopping == nil || s.works() && (s.Rest.resting() || kept)
	due := s.Full || reached(s.Rest.carryAt(), s.At)
	return between && due && !s.foreground()
}
