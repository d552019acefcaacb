package loop

import (
	"fmt"
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
