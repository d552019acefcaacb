package loop

import (
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Step is the machine. It returns the state after an input, and the effects to perform, in
// order. An error is a refusal: Step then returns s and no effects. Step does not change s.
func Step(s State, m Moment, in Input) (State, []Effect, error) {
	st, err := take(s, m, in)
	if err != nil {
		return s, nil, err
	}
	defer usedSteps.Put(st)
	return st.State, st.effects, nil
}

// usedSteps has steps whose memory is used again: a step is as large as the state, and a replay makes
// thousands.
var usedSteps = sync.Pool{New: func() any { return new(step) }}

// take handles one input: a part changes the state, and then the rules are carried out.
func take(s State, m Moment, in Input) (*step, error) {
	st := newStep(s, m)
	// First: the time until now belongs to the state before the input. setClock below may stop
	// the clock, and the time would be lost.
	st.Budget.advanceClock(m.At)
	if err := st.receive(in); err != nil {
		return nil, err
	}
	st.advance()
	// After the rules: the clock, the timer and the verb's answer need the state that the
	// rules leave.
	st.Budget.setClock(st.workingTimePasses(), m.At)
	st.setTimer()
	st.acknowledge()
	st.answerInterrupt()
	return st, nil
}

// step is one step of the machine: the state that it changes, and its effects.
type step struct {
	State
	Moment
	effects []Effect
	fired   []string // the names of the rules that applied

	// The verb of this step, its id, the digest of verb and payload, and its effect.
	// verb is empty if the input is no verb. verbDigest is empty if the verb has no id.
	verb       agent.Verb
	verbID     string
	verbDigest string
	verbEffect agent.Effect
	// bySignal means that the verb came as a signal, whose sender gets no answer.
	bySignal bool
	// answersFor is the id of the verb if it came with an earlier step, whose sender waits.
	answersFor string
	// answersNow means that the sender of an interrupt waits no longer for the run's own calls.
	answersNow bool
	// resumed is why the suspension is closed, if this step closes it.
	resumed agent.Resumed
	// endedBy is who stopped or cancelled the run, if this step ends it and they said; else empty.
	endedBy string
	// gotInstructions means that this step brings the agent's newest instructions, with a resume.
	gotInstructions bool
	// changedFiles says which files that a daemon watches have changed; empty if none have.
	changedFiles string
	// changedBytes counts the names in it, which others wrote.
	changedBytes int
	// changed means that listings must be updated, since the run waits for something else.
	changed bool
	// continuedAsNew means that this step has asked for a new execution.
	continuedAsNew bool
	// takesSignals means that this step has asked for the signals that wait.
	takesSignals bool
}

// newStep begins a step that leaves s as it is.
func newStep(s State, m Moment) *step {
	st := usedSteps.Get().(*step)
	*st = step{State: s, Moment: m, fired: st.fired[:0]}
	st.unshare()
	return st
}

func (s *step) do(effects ...Effect) { s.effects = append(s.effects, effects...) }

// enterPhase moves the run to another phase.
func (s *step) enterPhase(to RunPhase) { enter(runTransitions, &s.Phase, to) }

// receive hands an input to its part. An input that the phase does not wait for came too
// late, and is refused.
func (s *step) receive(in Input) error {
	if _, begins := in.(Begin); s.Phase == RunNew && !begins {
		return s.refuse("the run has not started")
	}
	switch in := in.(type) {
	case Begin:
		return s.expect(RunNew, func() { s.begin(in) })
	case Opened:
		return s.expect(RunOpening, func() { s.opened(in) })
	case Located:
		return s.expect(RunLocating, func() { s.located(in) })
	case Imported:
		return s.expect(RunImporting, func() { s.imported(in) })
	case Listed:
		return s.expect(RunListing, func() { s.listed(in) })
	case Looked:
		return s.looked(in)
	case ModelReplied, ModelFailed, ModelDelayed:
		return s.takeModel(in)
	case ToolReturned:
		return s.toolReturned(in)
	case FlowAnswered, FlowSlow, FlowFailed:
		return s.takeFlow(in)
	case LocalToolSlow:
		return s.localToolSlow(in.Call)
	case Sealed:
		return s.sealed(in)
	case SealFailed:
		return s.sealFailed(in.Err)
	case TimerFired:
		return s.timerFired()
	case SignalsTaken:
		return nil // the rules carry on
	case Cancel:
		return s.cancelled(agent.ReasonRequested, "", s.cancellerByTemporal())
	case Terminated:
		return s.terminated(in)
	case Continued:
		return s.expect(RunContinuing, s.continued)
	case CommandReceived:
		return s.commandReceived(in)
	case CommandRefused:
		return s.refusedVerb(in)
	case HandoffMade:
		return s.expect(RunHandingOff, func() { s.handoffMade(in.Handoff) })
	case ChildStarted:
		return s.childStarted(in)
	case ChildEnded:
		return s.childEnded(in)
	case ChildReported:
		return s.reported(in.Report)
	case ParentOrdered:
		return s.parentOrdered(in.Order)
	case ParentGranted:
		return s.takeGrant(in.Order)
	case ParentChecked:
		return s.parentChecked(in)
	}
	return s.takeRest(in)
}

// takeRest takes the inputs of single features.
func (s *step) takeRest(in Input) error {
	switch in := in.(type) {
	case Refreshed:
		return s.refreshed(in)
	case InFlightAwaited:
		s.answersNow = !in.Ended
		return nil
	case SealSlow:
		s.answersNow = true
		return nil
	}
	return s.takeWorkspace(in)
}

// expect handles an input that is taken in one phase alone.
func (s *step) expect(p RunPhase, handle func()) error {
	if s.Phase != p {
		return s.refuse("it is too late or too early: phase %q does not wait for it", s.phaseName())
	}
	handle()
	return nil
}

// takeModel hands the result of a model call to its part.
func (s *step) takeModel(in Input) error {
	switch in := in.(type) {
	case ModelReplied:
		return s.takeModelAnswer(in.AskSeq, in.Reply, func() { s.modelReplied(in) })
	case ModelFailed:
		return s.takeModelAnswer(in.AskSeq, wire.Reply{Charges: in.Err.Charges}, func() { s.modelFailed(in.Err) })
	case ModelDelayed:
		return s.takeModelAnswer(in.AskSeq, wire.Reply{}, func() { s.delayed(in) })
	}
	return agent.Errorf(agent.CodeInternal, "the machine knows no input %T", in)
}

// takeModelAnswer handles the result of a model call, which ask identifies. The late result
// of a cancelled call only counts its usage.
func (s *step) takeModelAnswer(ask int64, r wire.Reply, handle func()) error {
	if !s.Turn.inFlight() || ask != s.Turn.AskSeq {
		return s.chargeLateReply(ask, r)
	}
	handle()
	return nil
}

// refuse returns a refusal with the code stale.
func (s *step) refuse(format string, args ...any) error {
	return s.refuseAs(agent.CodeStale, "", format, args...)
}

// refuseAs returns a refusal, which says how the run stands.
func (s *step) refuseAs(code agent.Code, path, format string, args ...any) *agent.Error {
	err := agent.Errorf(code, format, args...).WithPath(path)
	err.Session, err.Run, err.Status = s.Session, s.Run, s.Status()
	if s.Suspensions.Open != nil {
		err.Suspension = s.Suspensions.Open.ID
	}
	return err
}

// now returns the input's time as events have it: in UTC, to the millisecond.
func (s *step) now() time.Time { return s.At.UTC().Truncate(time.Millisecond) }
