package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Step is the machine. It returns the state after an input and what is to be done, in
// order. An error is a refusal: the state is returned as it was, and nothing is to be
// done. s is not changed.
func Step(s State, m Moment, in Input) (State, []Effect, error) {
	st, err := take(s, m, in)
	if err != nil {
		return s, nil, err
	}
	return st.State, st.effects, nil
}

// take gives an input to its part and then carries out the rules.
func take(s State, m Moment, in Input) (*step, error) {
	st := &step{State: s.clone(), Moment: m}
	st.Budget.tick(m.At)
	if err := st.receive(in); err != nil {
		return nil, err
	}
	st.advance()
	st.Budget.clock(st.clockPasses(), m.At)
	st.wake()
	st.acknowledge()
	return st, nil
}

// step is a State in the making.
type step struct {
	State
	Moment
	effects []Effect
	fired   []string // the names of the rules that applied

	// The verb of this step, its id, its sum if it has an id, and what becomes of it.
	verb   agent.Verb
	id     string
	sum    string
	effect agent.Effect
	// resumed is why a suspension that is closed in this step was.
	resumed agent.Resumed
	// changed means that listings show something else of what the run waits for.
	changed bool
	// handedOn means that this step has asked for a new execution.
	handedOn bool
}

func (s *step) do(effects ...Effect) { s.effects = append(s.effects, effects...) }

// enterLife moves the run to another phase of its life.
func (s *step) enterLife(to Life) { enter(lifeMoves, &s.Life, to) }

// receive gives an input to the one that handles it. An input that its phase does not
// wait for is late: the run went on, or ended, without it.
func (s *step) receive(in Input) error {
	if _, begins := in.(Begin); s.Life == New && !begins {
		return s.refuse("the run has not begun")
	}
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
		return s.heardModel(in.Ask, in.Reply, func() { s.replied(in) })
	case ModelFailed:
		return s.heardModel(in.Ask, agent.Reply{Spent: in.Err.Spent}, func() { s.modelFailed(in.Err) })
	case Delayed:
		return s.heardModel(in.Ask, agent.Reply{}, func() { s.delayed(in) })
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
	case Granted:
		return s.takeGrant(in.Order)
	case Leased:
		return s.leased(in)
	}
	return agent.Errorf(agent.Internal, "the machine knows no input %T", in)
}

func (s *step) expect(l Life, handle func()) error {
	if s.Life != l {
		return s.refuse("it is not waited for in phase %q", s.at())
	}
	handle()
	return nil
}

// heardModel takes what came of the model call of an event. One that was given up
// comes too late for anything but what it has used.
func (s *step) heardModel(ask int64, r agent.Reply, handle func()) error {
	if !s.Turn.inFlight() || ask != s.Turn.Ask {
		return s.late(ask, r)
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
	if s.Rest.Wait != nil {
		err.Suspension = s.Rest.Wait.ID
	}
	return err
}

func (s *step) now() time.Time { return s.At.UTC().Truncate(time.Millisecond) }
