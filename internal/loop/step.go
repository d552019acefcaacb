package loop

import (
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
	st.sealBehind()
	return st.State, st.effects, nil
}

// step is a State in the making.
type step struct {
	State
	Moment
	effects []Effect
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
	case Listed:
		return s.expect(Listing, func() { s.listed(in) })
	case Replied:
		return s.expect(Asking, func() { s.replied(in.Reply) })
	case ModelFailed:
		return s.expect(Asking, func() { s.modelFailed(in.Err) })
	case Returned:
		return s.returned(in.Result)
	case Sealed:
		return s.sealed(in)
	case SealFailed:
		return s.sealFailed(in.Err)
	case TimeUp:
		return s.timeUp()
	case Cancel:
		return s.cancel()
	case Continued:
		return s.expect(Carrying, s.continued)
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

func (s *step) refuse(format string, args ...any) error {
	err := agent.Errorf(agent.Stale, format, args...)
	err.Session, err.Run, err.Status = s.Session, s.Run, s.Status()
	return err
}

// record appends an event to the log.
func (s *step) record(e agent.Event) {
	s.Log.Seq++
	e.Seq, e.Time, e.Turn = s.Log.Seq, s.At.UTC().Truncate(time.Millisecond), s.Turn
	if e.Outcome != nil {
		e.Outcome.Seq = e.Seq
	}
	s.Log.Tail = append(s.Log.Tail, e)
	s.Log.Bytes += e.Size()
}

// say appends a message to the log.
func (s *step) say(m agent.Message) { s.record(agent.Event{Type: agent.Said, Message: &m}) }

// note says something to the model in the runtime's name.
func (s *step) note(why agent.Note, text string) {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = why
	s.say(m)
}
