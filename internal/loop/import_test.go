package loop

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// move lets a suspended run continue elsewhere: what it waits for is what it was, but
// for the run.
func move(t require.TestingT, s State, now time.Time) State {
	at := exported(t, s)
	raw, err := json.Marshal(at)
	require.NoError(t, err)
	again, err := json.Marshal(exported(t, at))
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again), "it comes back as it went")

	var next State
	for _, in := range []Input{
		Begin{Session: s.Session, Run: s.Run + "+", Start: agent.Start{Agent: "a", Import: "d"}},
		Opened{}, Imported{Export: "e", State: at, Spec: &agent.Spec{}},
	} {
		before := next
		var effects []Effect
		next, effects, err = Step(next, Moment{At: now}, in)
		require.NoError(t, err)
		checkInvariants(t, before, next, effects)
		for _, e := range effects {
			switch e.(type) {
			case CallModel, CallTool, StartChild:
				require.Fail(t, "an import begins nothing", "%T", e)
			}
		}
	}
	was, is := s.Suspension(), next.Suspension()
	for i := range was.Requests {
		was.Requests[i].Run = next.Run
	}
	wants, err := json.Marshal(was)
	require.NoError(t, err)
	has, err := json.Marshal(is)
	require.NoError(t, err)
	require.JSONEq(t, string(wants), string(has))
	require.Equal(t, s.Counters, next.Counters)
	require.Equal(t, s.Turn.N, next.Turn.N)
	return next
}

// Answers that come with an import are checked before the run takes it up: what is refused leaves no
// trace, so the export can be imported again (PA-17).
func TestAnswersOfAnImport(t *testing.T) {
	p := played(t, "begin go", `opened {"tools":["ask_user"],"answer_timeouts":{"deadline":"1h"}}`, `calls ask_user {"question":"Where to?","choices":["Rome","Oslo"]}`, "sealed")
	at := exported(t, p.state)
	none := 7
	for name, c := range map[string]struct {
		answer agent.AnswerTo
		code   agent.Code
	}{
		"taken":       {agent.AnswerTo{Request: "q-1", Answer: &agent.AnswerCommand{Text: "Rome"}}, ""},
		"no choice":   {agent.AnswerTo{Request: "q-1", Answer: &agent.AnswerCommand{Choice: &none}}, agent.CodeInvalidInput},
		"of no use":   {agent.AnswerTo{Request: "q-1", Approve: &agent.ApproveCommand{}}, agent.CodeInvalidInput},
		"never asked": {agent.AnswerTo{Request: "q-9", Answer: &agent.AnswerCommand{Text: "Rome"}}, agent.CodeNotFound},
		"asked below": {agent.AnswerTo{Request: "b-1/q-1", Answer: &agent.AnswerCommand{Text: "Rome"}}, agent.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			answers := []agent.AnswerTo{c.answer}
			require.Equal(t, c.code, agent.CodeOf(at.CheckAnswers(Moment{At: p.now}, "", answers)))
			var next State
			var err error
			for _, in := range []Input{
				Begin{Session: "s", Run: "r2", Start: agent.Start{Agent: "a", Import: "d", Answers: answers}}, Opened{}, Imported{Export: "e", State: at, Spec: &agent.Spec{}},
			} {
				next, _, err = Step(next, Moment{At: p.now.Add(2 * time.Hour)}, in) // its deadline is over, and nothing has said so
				require.NoError(t, err)
			}
			if c.code == "" {
				require.Equal(t, agent.StatusSuspending, next.Status(), "the answer itself comes next")
				return
			}
			require.NotNil(t, next.End.Outcome)
			require.Equal(t, c.code, next.End.Outcome.Error.Code)
			require.Empty(t, next.Log.Tail)
		})
	}
}

func TestPortable(t *testing.T) {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy, "it has not begun")
	p.line("begin go")
	p.line(`opened {"agents":[{"agent":"b"}],"tools":["ask_user"]}`)
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy, "it asks the model")
	p.line(`calls ask_user {"question":"Where to?"}`)
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy, "it is not stored yet")
	p.line("sealed")
	require.NoError(t, p.state.CheckPortable())

	p.lines("long-history", "pause {}")
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy, "it goes on in a new execution")
	p.lines("sealed")
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy)
	p.lines("continued")
	require.NoError(t, p.state.CheckPortable())

	p = played(t, "begin go", `opened {"agents":[{"agent":"b"}],"tools":["ask_user"]}`, `calls ask_user {"question":"Where to?"}`, "sealed")
	below := p.state
	below.Parent.Start = &wire.ChildStart{Parent: wire.Parent{Session: "above"}}
	require.ErrorIs(t, below.CheckPortable(), agent.CodeInvalidInput)
	above := p.state
	above.Children.List = []Child{{Session: "s/b-1"}}
	require.ErrorContains(t, above.CheckPortable(), "s/b-1")
	above.Children.List[0].Outcome = &agent.Outcome{}
	require.NoError(t, above.CheckPortable(), "what has ended below does not matter")
}

// What a run waits for decides whose its suspension is (HL-95, HL-96).
func TestOwner(t *testing.T) {
	times := &Park{Conditions: agent.Conditions{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	own, inherited := agent.Hold{From: agent.HoldOwn}, agent.Hold{From: agent.HoldInherited}
	for name, c := range map[string]struct {
		s    State
		want agent.Owner
	}{
		"a question":                     {State{Requests: Requests{Open: []Request{{}}}}, agent.OwnerOperator},
		"parked on a time":               {State{Park: times}, agent.OwnerRuntime},
		"parked until somebody resumes":  {State{Park: &Park{}}, agent.OwnerOperator},
		"runs below":                     {State{}, agent.OwnerRuntime},
		"held":                           {State{Holds: Holds{List: []agent.Hold{own}}}, agent.OwnerOperator},
		"held and parked":                {State{Holds: Holds{List: []agent.Hold{own}}, Park: times}, agent.OwnerOperator},
		"held from above":                {State{Holds: Holds{List: []agent.Hold{inherited}}}, agent.OwnerParent},
		"held twice":                     {State{Holds: Holds{List: []agent.Hold{own, inherited}}}, agent.OwnerParent},
		"held by its parent's own order": {State{Holds: Holds{List: []agent.Hold{{From: agent.HoldOwn, Initiator: agent.InitiatorParent}}}}, agent.OwnerParent},
	} {
		t.Run(name, func(t *testing.T) {
			if c.s.Suspensions.Open == nil {
				c.s.Suspensions.Open = &OpenSuspension{}
			}
			require.Equal(t, c.want, c.s.Suspension().Owner)
		})
	}
}

// An export that counts fewer turns than none, or more than it has, is no run's.
func TestAnImportCountsItsTurns(t *testing.T) {
	for _, fork := range []int{-1, math.MinInt64, math.MaxInt64, 5} {
		s := suspendedRuns(t)["asks"]
		require.Empty(t, s.inconsistency())
		s.Budget.ForkTurn = fork
		require.NotEmpty(t, s.inconsistency(), fork)
	}
}
