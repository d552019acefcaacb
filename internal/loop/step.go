package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Step is the machine. It returns the state after an input and what is to be
// done, in order. An error is a refusal: the state is returned as it was, and
// nothing is to be done. s is not changed.
func Step(s State, m Moment, in Input) (State, []Effect, error) {
	st := &step{State: s.clone(), Moment: m}
	if err := st.receive(in); err != nil {
		return s, nil, err
	}
	st.unpark()
	st.closeWait()
	st.goOn()
	st.rest()
	st.wake()
	st.sealBehind()
	st.acknowledge()
	return st.State, st.effects, nil
}

// step is a State in the making.
type step struct {
	State
	Moment
	effects []Effect

	// The verb of this step, its id and what becomes of it.
	verb   agent.Verb
	id     string
	effect agent.Effect
	// resumed is why a suspension that is closed in this step was.
	resumed agent.Resumed
	// changed tells that listings show something else of what the run waits for.
	changed bool
}

func (s *step) do(effects ...Effect) { s.effects = append(s.effects, effects...) }

// receive gives an input to the one that handles it. An input that its phase
// does not wait for is late: the run went on, or ended, without it.
func (s *step) receive(in Input) error {
	switch in := in.(type) {
	case Begin:
		return s.expect(New, func() { s.begin(in) })
	case Opened:
		return s.expect(Opening, func() { s.opened(in) })
	case Located:
		return s.expect(Locating, func() { s.located(in) })
	case Imported:
		return s.expect(Importing, func() { s.imported(in) })
	case Listed:
		return s.expect(Listing, func() { s.listed(in) })
	case Replied:
		return s.heardModel(in.Ask, func() { s.replied(in) })
	case ModelFailed:
		return s.heardModel(in.Ask, func() { s.modelFailed(in.Err) })
	case Returned:
		return s.returned(in)
	case Slow:
		return s.slow(in.Call)
	case Sealed:
		return s.sealed(in)
	case SealFailed:
		return s.sealFailed(in.Err)
	case Tick:
		return s.tick()
	case Cancel:
		return s.cancelled(agent.ReasonRequested)
	case Cut:
		return s.cut(in)
	case Heavy:
		return s.expect(Carrying, s.heavy)
	case Continued:
		return s.expect(Carrying, s.continued)
	case Said:
		return s.said(in)
	case Refused:
		s.refusedVerb(in)
		return nil
	case Folded:
		return s.expect(Folding, func() { s.folded(in.Handoff) })
	case ChildStarted:
		return s.childStarted(in)
	case ChildEnded:
		return s.childEnded(in.Session, in.Outcome)
	case Reported:
		return s.reported(in.Report)
	case Ordered:
		return s.ordered(in.Order)
	case Leased:
		return s.leased(in)
	}
	return agent.Errorf(agent.Internal, "the machine knows no input %T", in)
}

func (s *step) expect(p Phase, handle func()) error {
	if s.Phase != p {
		return s.refuse("it is not waited for in phase %q", s.Phase)
	}
	handle()
	return nil
}

// heardModel takes what came of the model call of an event. One that was given up
// comes too late.
func (s *step) heardModel(ask int64, handle func()) error {
	if s.Phase != Asking && s.Phase != Summing || ask != s.Ask {
		return s.refuse("the model call of event %d is not waited for in phase %q", ask, s.Phase)
	}
	handle()
	return nil
}

func (s *step) refuse(format string, args ...any) error {
	return s.refuseAs(agent.Stale, "", format, args...)
}

// refuseAs makes a refusal, which says how the run stands.
func (s *step) refuseAs(code agent.Code, path, format string, args ...any) *agent.Error {
	err := agent.Errorf(code, format, args...).At(path)
	err.Session, err.Run, err.Status = s.Session, s.Run, s.Status()
	if s.Wait != nil {
		err.Suspension = s.Wait.ID
	}
	return err
}

func (s *step) now() time.Time { return s.At.UTC().Truncate(time.Millisecond) }

// goOn begins what may begin now: nothing else begins a turn or a call.
func (s *step) goOn() {
	if s.Phase == Working {
		s.startCalls()
		if s.Phase == Resting && s.idling() { // its finish was the last call
			s.unpark()
			s.closeWait()
		}
	}
	if s.Brim && s.Giving == nil && s.Stopping == nil {
		s.giveUpForRoom()
	}
	resting := s.Phase == Resting || s.Phase == Working && s.Wait != nil && s.Wait.Resting
	switch {
	case s.Phase == Carrying:
		s.carried()
	case s.Phase == Ending:
		s.leave()
	case s.Phase == Draining && (!s.liveChildren() || !s.At.Before(s.Stopping.Until)):
		s.fold()
	case !resting:
	case s.Phase == Resting && s.Stopping != nil:
		s.sumUp()
	case (s.Full || s.parkedLong()) && !s.foreground() && s.Heavy != s.Turn+1:
		s.Phase = Carrying
		s.carried()
	case s.tidiesUp():
		s.summarise(SumFresh)
	case s.Phase == Resting && !s.waits():
		s.nextTurn()
	}
}

// record appends an event to the log.
func (s *step) record(e agent.Event) {
	s.Log.Seq++
	e.Seq, e.Time, e.Turn = s.Log.Seq, s.now(), s.Turn
	if e.Outcome != nil {
		e.Outcome.Seq = e.Seq
	}
	s.Stint = s.Stint.Next(s.Run, e)
	s.Log.Tail = behind(s.Log.Tail, e)
	s.Log.Bytes += e.Size()
}

// behind puts an event at the end of a tail. Copying what is there would make the
// thousandth of what is said within one task cost a thousand times the first: where
// the array has room that no state has taken, which has no number, the event goes there.
func behind(tail []agent.Event, e agent.Event) []agent.Event {
	if n := len(tail); n < cap(tail) && tail[:n+1][n].Seq != 0 {
		tail = slices.Clip(tail) // another state went on from here
	}
	return append(tail, e)
}

// tell records an event of a run that has begun its part of the log; what came
// before that is told there.
func (s *step) tell(e agent.Event) {
	if !s.Unwritten() {
		s.record(e)
	}
}

// say appends a message to the log.
func (s *step) say(m agent.Message) { s.record(agent.Event{Type: agent.Said, Message: &m}) }

// note says something to the model in the runtime's name.
func (s *step) note(why agent.Note, text string) {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = why
	s.say(m)
}
