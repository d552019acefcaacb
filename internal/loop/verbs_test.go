package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What became of the last verbs is known by their ids; one without an id is not kept, and
// of refusals only the last.
func TestVerbsAreBounded(t *testing.T) {
	v := Verbs{}
	v.remember(ProcessedVerb{Seq: 1})
	require.Empty(t, v.Processed)
	for n := range maxProcessed + 5 {
		v.remember(ProcessedVerb{ID: fmt.Sprint("v-", n), Seq: int64(n)})
		v.refused(agent.RefusedVerb{Verb: fmt.Sprint(n)})
	}
	require.Len(t, v.Processed, maxProcessed)
	_, old := v.find("v-4")
	last, ok := v.find(fmt.Sprint("v-", maxProcessed+4))
	require.Equal(t, []any{false, true, int64(maxProcessed + 4)}, []any{old, ok, last.Seq})
	_, ok = v.find("")
	require.False(t, ok)
	require.Len(t, v.Refused, maxRefused)
	require.Equal(t, fmt.Sprint(maxProcessed+4), v.Refused[maxRefused-1].Verb)
}

// A refusal keeps its code and path when it was wrapped on the way.
func TestWrappedRefusals(t *testing.T) {
	e := asError(fmt.Errorf("reading it: %w", agent.Errorf(agent.CodeNotFound, "no such run").WithPath("run")))
	require.Equal(t, agent.CodeNotFound, e.Code)
	require.Equal(t, "run", e.Path)
}

// What a run's policy binds is refused where nobody has vouched for it, as of a signal, and
// whatever it says to prove who says it. What was vouched for counts, as it was recorded.
func TestBoundVerbsTakeNoSignal(t *testing.T) {
	policy := agent.Policy{
		{Verbs: []agent.Verb{agent.VerbStop, agent.VerbReject}, Principals: []string{"ana"}},
		{Verbs: []agent.Verb{agent.VerbPause}, Labels: map[string]string{"team": "travel"}, Principals: []string{"ana"}},
	}
	d := played(t, `begin go`, `opened {}`)
	d.state.Spec.Policy = policy
	proved := []Proof{{Principal: "ana", Nonce: "n-1", Expires: d.now.Add(time.Hour)}}
	for _, c := range []agent.Command{agent.StopCommand{}, agent.AnswersCommand{Answers: []agent.AnswerTo{{Request: "q-1", Reject: &agent.RejectCommand{Request: "q-1", Reason: "no"}}}}} {
		_, _, err := Step(d.state, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: c, Proofs: proved})
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, "it takes a token of ana")
	}
	_, _, err := Step(d.state, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: agent.PauseCommand{}})
	require.NoError(t, err, "the run has no such label")
	travel := d.state
	travel.Origin.Labels = map[string]string{"team": "travel"}
	_, _, err = Step(travel, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: agent.PauseCommand{}})
	require.ErrorIs(t, err, agent.CodeDenied)
	_, _, err = Step(d.state, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: agent.StopCommand{}, PolicyChecked: true})
	require.NoError(t, err)
}

// A token for a verb that decides no request is good once, until it expires; then nobody
// takes it. Whoever proves to be somebody is recorded as that.
func TestATokenIsSpentOnce(t *testing.T) {
	d := played(t, `begin go`, `opened {}`)
	say := func(s State, c agent.Command, nonce string, until time.Duration) (State, error) {
		next, _, err := Step(s, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: c, PolicyChecked: true, Proofs: []Proof{{Principal: "ana", Nonce: nonce, Expires: d.now.Add(until)}}})
		return next, err
	}
	held, err := say(d.state, agent.PauseCommand{CommandHeader: agent.CommandHeader{By: "somebody"}}, "n-1", time.Hour)
	require.NoError(t, err)
	require.Equal(t, "ana", held.Holds.own().By)
	_, err = say(held, agent.ResumeCommand{}, "n-1", time.Hour)
	require.ErrorIs(t, err, agent.CodeUsed)
	_, err = say(held, agent.ResumeCommand{}, "n-2", time.Hour)
	require.NoError(t, err)

	full := d.state
	for i := range maxUsedTokens {
		full, err = say(full, agent.PauseCommand{}, fmt.Sprintf("%011d", i), time.Duration(i+1)*time.Minute)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, written(full.Verbs.UsedTokens), usedTokenShare)
	_, err = say(full, agent.PauseCommand{}, "n-1", time.Hour)
	require.ErrorIs(t, err, agent.CodeQueueFull)
	for _, c := range []agent.Command{agent.StopCommand{}, agent.CancelCommand{}} {
		_, err = say(full, c, "n-1", time.Hour)
		require.NoError(t, err, "it ends the run")
	}
	d.now = d.now.Add(time.Minute) // the first has expired
	full, err = say(full, agent.PauseCommand{}, "n-1", time.Hour)
	require.NoError(t, err)
	require.Len(t, full.Verbs.UsedTokens, maxUsedTokens)
}

// The answer to a hold says kind, initiator, who, why and since when. A later hold hears of the one
// that stands, and a run that rests for another reason names both. What is kept for repeated ids has
// none of it (HL-09, HL-10).
func TestHoldsAreAnsweredWithTheHold(t *testing.T) {
	said := func(s State, c agent.Command, id string) (State, *agent.AckHold) {
		next, effects, err := Step(s, Moment{At: s.Origin.Started.Add(time.Minute), Revision: Revision}, CommandReceived{Command: c, ID: id})
		require.NoError(t, err)
		for _, e := range effects {
			if a, ok := e.(Acknowledge); ok {
				return next, a.Ack.Hold
			}
		}
		require.Fail(t, "no answer")
		return State{}, nil
	}
	pause := func(by, reason string) agent.Command {
		return agent.PauseCommand{CommandHeader: agent.CommandHeader{By: by}, Reason: reason}
	}
	long := strings.Repeat("é", 500)
	s := played(t, "begin go", `opened {}`).state
	at := s.Origin.Started.Add(time.Minute)
	held, hold := said(s, pause("ana", long), "p-1")
	first := agent.AckHold{Kind: agent.SuspensionHeld, Initiator: agent.InitiatorOperator, Verb: agent.VerbPause, By: "ana", Reason: strings.Repeat("é", 119) + "…", Since: at}
	require.Equal(t, first, *hold)
	_, hold = said(held, pause("bo", "later"), "p-2")
	require.Equal(t, first, *hold, "the first one stands")
	_, hold = said(held, pause("ana", long), "p-1")
	require.Nil(t, hold, "what is kept is small")
	_, hold = said(held, agent.InterruptCommand{CommandHeader: agent.CommandHeader{By: "bo"}, Reason: "now"}, "p-3")
	require.Equal(t, agent.AckHold{Kind: agent.SuspensionHeld, Initiator: agent.InitiatorOperator, Verb: agent.VerbInterrupt, By: "bo", Reason: "now", Since: at}, *hold)
	older := held
	older.Holds.List = slices.Clone(held.Holds.List)
	older.Holds.List[0].Initiator = "" // as in an export from before the field
	_, hold = said(older, pause("bo", "later"), "p-2")
	require.Equal(t, first, *hold)
	resumed, hold := said(held, agent.ResumeCommand{}, "r-1")
	require.Nil(t, hold)
	require.Nil(t, resumed.Holds.own())

	child := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {}`, `ordered {"verb":"pause","holds":[{"id":"h-4","session":"s","verb":"pause","by":"bo"}],"known_holds":[{"session":"s","n":4}]}`).state
	require.Equal(t, agent.InitiatorParent, child.Suspension().Initiator)
	child, hold = said(child, pause("ana", "lunch"), "p-1")
	require.Equal(t, []any{agent.InitiatorOperator, "ana"}, []any{hold.Initiator, hold.By}, "the parent holds the run, too")
	p := &player{t: t, state: child}
	p.lines(`ordered {"verb":"resume","known_holds":[{"session":"s","n":4}]}`)
	require.Equal(t, agent.OwnerOperator, p.state.Suspension().Owner, "only the person's hold is left")

	p = played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`, `opened {}`, `ordered {"verb":"pause","own":true,"by":"agent:s"}`)
	require.Equal(t, agent.OwnerParent, p.state.Suspension().Owner)
	_, hold = said(p.state, pause("ana", "lunch"), "p-1")
	require.Equal(t, []any{agent.InitiatorParent, "agent:s"}, []any{hold.Initiator, hold.By}, "the parent's model was first")
	_, hold = said(p.state, agent.InterruptCommand{CommandHeader: agent.CommandHeader{By: "ana"}}, "i-1")
	require.Equal(t, []any{agent.InitiatorOperator, "ana"}, []any{hold.Initiator, hold.By}, "a stronger one replaces it")

	asked := played(t, "begin go", `opened {"tools":["ask_user"]}`, `calls ask_user {"question":"Where?"}`).state
	_, hold = said(asked, pause("ana", "lunch"), "p-1")
	require.Equal(t, agent.AckHold{Kind: agent.SuspensionInputRequired, Initiator: agent.InitiatorOperator, Verb: agent.VerbPause, By: "ana", Reason: "lunch", Since: at}, *hold)
}

// The log says who removed a hold, also before the run is suspended under it.
func TestTheLogSaysWhoRemovedAHold(t *testing.T) {
	p := played(t, "begin go", "opened {}", `pause {"by":"ana"}`, `resume {"by":"bo"}`)
	last := p.state.Log.Tail[len(p.state.Log.Tail)-1]
	require.Equal(t, agent.EventHoldRemoved, last.Type)
	require.Equal(t, []string{"ana", "bo"}, []string{last.Hold.By, last.Hold.RemovedBy})
	require.Equal(t, agent.StatusRunning, p.state.Status())
}

// A refused signal says who sent it, also if it is refused after others were asked, and not at any length.
func TestARefusedSignalSaysWhoSentIt(t *testing.T) {
	p := played(t, "begin go", "opened {}")
	p.step(CommandRefused{Verb: "pause", By: "ana", Err: agent.Errorf(agent.CodeStale, "no")})
	p.step(CommandRefused{Verb: "pause", By: strings.Repeat("\x00", 256), Err: agent.Errorf(agent.CodeStale, "no")})
	require.Equal(t, "ana", p.state.Verbs.Refused[0].By)
	require.LessOrEqual(t, jsonLen(p.state.Verbs.Refused[1].By), maxName)
	last := p.state.Log.Tail[len(p.state.Log.Tail)-2]
	require.Equal(t, []any{agent.EventVerbRefused, "ana"}, []any{last.Type, last.Refusal.By})
	with, _ := lineJSONLen(last)
	last.Refusal.By = ""
	without, _ := lineJSONLen(last)
	require.Equal(t, len("ana"), with-without)

	p = played(t, "begin go", `opened {"answer_timeouts":{"deadline":"1h","default":"Oslo"},"tools":["ask_user"]}`, `calls ask_user {"question":"Where to?"}`, "sealed", "after 1h", "timer", `answer {"request":"q-1","text":"Rome","by":"ana"}`)
	require.Equal(t, "ana", p.state.Verbs.Refused[0].By, "a late answer")

	p = played(t, "begin go", `opened {"toolset":[{"name":"add"}],"hooks":{"before_resume":{"checks":[{"name":"gate","tool":"may_go"}]}}}`, "interrupt {}", "calls add {}", "sealed", `resume {"by":"ana"}`)
	p.step(ToolReturned{Result: agent.ToolResult{Call: p.state.SuspensionHooks.Current.Call, Tool: "may_go", Status: agent.CallFailed, Text: "no network"}})
	require.Equal(t, "ana", p.state.Verbs.Refused[0].By, "a resume that a hook refuses")
}
