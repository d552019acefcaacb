package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// leadAtWork is a run whose model writes, and whose sub-agent works in the background.
func leadAtWork(t *testing.T) *player {
	t.Helper()
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
	require.Equal(t, TurnAsking, p.state.Turn.Phase)
	return p
}

// interruptedLead is a leadAtWork that was interrupted by update. It returns the answers to verbs as they come.
func interruptedLead(t *testing.T) (p *player, acks *[]Acknowledge) {
	t.Helper()
	p = leadAtWork(t)
	acks = p.acks()
	p.step(interrupt("i1"))
	require.Empty(t, *acks, "its model still writes")
	return p, acks
}

// acks returns the answers to verbs as they come from now on.
func (p *player) acks() *[]Acknowledge {
	var acks []Acknowledge
	p.watch = func(_ State, _ Moment, _ Input, done *step) {
		for _, e := range done.effects {
			if a, ok := e.(Acknowledge); ok {
				acks = append(acks, a)
			}
		}
	}
	return &acks
}

// senders returns the ids of the verbs that were answered late; empty for one that was answered at once.
func senders(acks []Acknowledge) (ids []string) {
	for _, a := range acks {
		ids = append(ids, a.For)
	}
	return ids
}

func interrupt(id string) CommandReceived {
	return CommandReceived{Command: agent.InterruptCommand{Reason: "lunch"}, ID: id, PolicyChecked: true}
}

// held is the reply of a model call that an interrupt has cancelled.
func (p *player) held() ModelReplied {
	return ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}}
}

// An interrupt of a run whose sub-agents work is answered when the run is suspended.
func TestAnInterruptOfATreeIsAnsweredWhenTheRunIsSuspended(t *testing.T) {
	p, acks := interruptedLead(t)
	p.step(InFlightAwaited{Ended: true})
	p.step(p.held())
	require.Empty(t, *acks, "the store does not have its log")
	p.step(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
	require.Len(t, *acks, 1)
	first := (*acks)[0]
	require.Equal(t, "i1", first.For)
	require.Equal(t, agent.StatusSuspended, first.Ack.Status)
	require.Equal(t, agent.EffectAccepted, first.Ack.Effect)
	require.Equal(t, "lunch", first.Ack.Hold.Reason)
	p.step(interrupt("i1"))
	require.Len(t, *acks, 2)
	first.For, first.Ack.Hold = "", nil
	require.Equal(t, first, (*acks)[1], "a repeated id gets the same answer")
}

// The answer waits for nothing that may take long.
func TestAnInterruptOfATreeIsAnsweredSoon(t *testing.T) {
	for name, slow := range map[string][]func(*player) Input{
		"a call ignores its context": {func(*player) Input { return InFlightAwaited{} }},
		"the store is slow":          {func(p *player) Input { return p.held() }, func(*player) Input { return SealSlow{} }},
	} {
		t.Run(name, func(t *testing.T) {
			p, acks := interruptedLead(t)
			for _, in := range slow {
				p.step(in(p))
			}
			require.Len(t, *acks, 1)
			require.Equal(t, agent.StatusSuspending, (*acks)[0].Ack.Status)
			require.NotNil(t, (*acks)[0].Ack.Hold)
			require.Nil(t, p.state.Holds.Unanswered)
		})
	}
}

// Whatever else comes while the interrupt has no answer, it gets one, and one only.
func TestAnInterruptOfATreeThatIsOvertakenIsAnswered(t *testing.T) {
	for name, in := range map[string]Input{
		"a resume": CommandReceived{Command: agent.ResumeCommand{}, ID: "r1", PolicyChecked: true},
		"a stop":   CommandReceived{Command: agent.StopCommand{}, ID: "s1", PolicyChecked: true},
		"a cancel": CommandReceived{Command: agent.CancelCommand{}, ID: "c1", PolicyChecked: true},
		"another":  interrupt("i2"),
	} {
		t.Run(name, func(t *testing.T) {
			p, acks := interruptedLead(t)
			p.step(in)
			p.step(p.held())
			if p.state.Log.SealingSeq > 0 {
				p.step(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
			}
			require.ElementsMatch(t, []string{"", "i1"}, senders(*acks))
		})
	}
}

// Each of two interrupts is answered, with a resume between them, while the call of the first still works.
func TestTwoInterruptsOfATreeAreAnswered(t *testing.T) {
	p, acks := interruptedLead(t)
	p.step(CommandReceived{Command: agent.ResumeCommand{}, ID: "r1", PolicyChecked: true})
	require.Len(t, *acks, 2, "the resume, and the interrupt that it overtakes")
	p.step(interrupt("i2"))
	require.Len(t, *acks, 2)
	p.step(p.held())
	p.step(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
	require.Equal(t, []string{"", "i1", "i2"}, senders(*acks))
	require.Equal(t, agent.StatusSuspended, (*acks)[2].Ack.Status)
}

// An id whose interrupt has no answer yet is known, however many verbs come meanwhile: all that say the
// interrupt under it get its one answer, and another verb is refused.
func TestTheIDOfAnUnansweredInterrupt(t *testing.T) {
	p, acks := interruptedLead(t)
	for n := 0; slices.ContainsFunc(p.state.Verbs.Processed, func(v ProcessedVerb) bool { return v.ID == "i1" }); n++ {
		p.step(CommandReceived{Command: agent.InterruptCommand{}, ID: fmt.Sprintf("%s%06d", strings.Repeat("<", 58), n)})
		require.NoError(t, p.wrong)
	}
	*acks = nil
	p.step(interrupt("i1"))
	require.NoError(t, p.wrong)
	require.Empty(t, *acks)
	p.step(CommandReceived{Command: agent.ResumeCommand{}, ID: "i1", PolicyChecked: true})
	require.ErrorIs(t, p.wrong, agent.CodeInvalidInput)
	p.step(p.held())
	p.step(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
	require.Equal(t, []string{"i1"}, senders(*acks))
}

// The answer that is amended is counted as it is.
func TestTheSizeOfAnAmendedAnswer(t *testing.T) {
	p, _ := interruptedLead(t)
	p.step(CommandReceived{Command: agent.ResumeCommand{}, ID: "r1", PolicyChecked: true})
	size := 0
	for _, v := range p.state.Verbs.Processed {
		size += v.jsonLen()
	}
	require.Equal(t, size, p.state.Verbs.Size)
}

// A run that only waits for its sub-agents has no call of its own to wait for.
func TestAnInterruptOfARunThatWaitsForItsSubAgents(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"one"}`, `child-started s/b-1`)
	acks := p.acks()
	p.step(interrupt("i1"))
	require.Empty(t, *acks, "a local seal stores the suspension in the same task")
	p.step(Sealed{Head: "h", Seq: p.state.Log.SealingSeq})
	require.Len(t, *acks, 1)
	require.Equal(t, agent.StatusSuspended, (*acks)[0].Ack.Status)
}

// The end of a call outside comes with a task of its own, behind those of the tree.
func TestAnInterruptOfATreeWaitsForNoCallOutside(t *testing.T) {
	p := played(t, `begin go`, `opened {"toolset":[{"name":"pay","temporal":{"kind":"nexus","type":"pay","endpoint":"e","service":"s"}}],"agents":[{"agent":"b"}],"lifecycle":true}`,
		`calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`, `calls pay {}`)
	_, effects, err := Step(p.state, Moment{At: p.now, Revision: Revision}, interrupt("i1"))
	require.NoError(t, err)
	require.Contains(t, effects, Effect(AwaitInFlight{}))
	require.Equal(t, agent.StatusSuspending, effects[len(effects)-1].(Acknowledge).Ack.Status)
}

// A signal has no answer to wait for, and a run of an older build answered at once.
func TestAnInterruptOfATreeThatIsAnsweredAtOnce(t *testing.T) {
	p := leadAtWork(t)
	for name, change := range map[string]func(*Moment, *CommandReceived){
		"a signal":       func(_ *Moment, in *CommandReceived) { in.PolicyChecked = false },
		"no id":          func(_ *Moment, in *CommandReceived) { in.ID = "" },
		"an older build": func(m *Moment, _ *CommandReceived) { m.Revision = OldestRevision },
	} {
		t.Run(name, func(t *testing.T) {
			m, in := Moment{At: p.now, Revision: Revision}, interrupt("i1")
			change(&m, &in)
			next, effects, err := Step(p.state, m, in)
			require.NoError(t, err)
			require.Nil(t, next.Holds.Unanswered)
			require.Contains(t, effects, Effect(AwaitInFlight{}))
			require.Equal(t, agent.StatusSuspending, effects[len(effects)-1].(Acknowledge).Ack.Status)
		})
	}
}
