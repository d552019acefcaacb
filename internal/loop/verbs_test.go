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
	v.processed(Processed{Seq: 1})
	require.Empty(t, v.Processed)
	for n := range maxProcessed + 5 {
		v.processed(Processed{ID: fmt.Sprint("v-", n), Seq: int64(n)})
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
	e := asError(fmt.Errorf("reading it: %w", agent.Errorf(agent.NotFound, "no such run").At("run")))
	require.Equal(t, agent.NotFound, e.Code)
	require.Equal(t, "run", e.Path)
}

// What a run's policy binds is refused where nobody has vouched for it, as of a signal, and
// whatever it says to prove who says it. What was vouched for counts, as it was recorded.
func TestBoundVerbsTakeNoSignal(t *testing.T) {
	policy := agent.Policy{
		{Verbs: []agent.Verb{agent.Stop, agent.Reject}, Principals: []string{"ana"}},
		{Verbs: []agent.Verb{agent.Pause}, Labels: map[string]string{"team": "travel"}, Principals: []string{"ana"}},
	}
	d := played(t, `begin go`, `opened {}`)
	d.state.Spec.Policy = policy
	proved := []Proof{{Principal: "ana", Nonce: "n-1", Expires: d.now.Add(time.Hour)}}
	for _, c := range []agent.Command{agent.StopOrder{}, agent.AnswersOrder{Answers: []agent.AnswerTo{{Request: "q-1", Reject: &agent.RejectOrder{Request: "q-1", Reason: "no"}}}}} {
		_, _, err := Step(d.state, Moment{At: d.now, Revision: Revision}, Said{Command: c, Proved: proved})
		require.ErrorIs(t, err, agent.Denied)
		require.ErrorContains(t, err, "it takes a token of ana")
	}
	_, _, err := Step(d.state, Moment{At: d.now, Revision: Revision}, Said{Command: agent.PauseOrder{}})
	require.NoError(t, err, "the run has no such label")
	travel := d.state
	travel.Origin.Labels = map[string]string{"team": "travel"}
	_, _, err = Step(travel, Moment{At: d.now, Revision: Revision}, Said{Command: agent.PauseOrder{}})
	require.ErrorIs(t, err, agent.Denied)
	_, _, err = Step(d.state, Moment{At: d.now, Revision: Revision}, Said{Command: agent.StopOrder{}, Vouched: true})
	require.NoError(t, err)
}

// A token for a verb that decides no request is good once, until it expires; then nobody
// takes it. Whoever proves to be somebody is recorded as that.
func TestATokenIsSpentOnce(t *testing.T) {
	d := played(t, `begin go`, `opened {}`)
	say := func(s State, c agent.Command, nonce string, until time.Duration) (State, error) {
		next, _, err := Step(s, Moment{At: d.now, Revision: Revision}, Said{Command: c, Vouched: true, Proved: []Proof{{Principal: "ana", Nonce: nonce, Expires: d.now.Add(until)}}})
		return next, err
	}
	held, err := say(d.state, agent.PauseOrder{Order: agent.Order{By: "somebody"}}, "n-1", time.Hour)
	require.NoError(t, err)
	require.Equal(t, "ana", held.Holds.own().By)
	_, err = say(held, agent.ResumeOrder{}, "n-1", time.Hour)
	require.ErrorIs(t, err, agent.Spent)
	_, err = say(held, agent.ResumeOrder{}, "n-2", time.Hour)
	require.NoError(t, err)

	full := d.state
	for i := range maxSpent {
		full, err = say(full, agent.PauseOrder{}, fmt.Sprintf("%011d", i), time.Duration(i+1)*time.Minute)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, written(full.Verbs.Spent), spentShare)
	_, err = say(full, agent.PauseOrder{}, "n-1", time.Hour)
	require.ErrorIs(t, err, agent.QueueFull)
	for _, c := range []agent.Command{agent.StopOrder{}, agent.CancelOrder{}} {
		_, err = say(full, c, "n-1", time.Hour)
		require.NoError(t, err, "it ends the run")
	}
	d.now = d.now.Add(time.Minute) // the first has expired
	full, err = say(full, agent.PauseOrder{}, "n-1", time.Hour)
	require.NoError(t, err)
	require.Len(t, full.Verbs.Spent, maxSpent)
}
