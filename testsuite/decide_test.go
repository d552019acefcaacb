package testsuite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Outside of an Env the caller keeps how often each rule has decided.
func TestPersonDecides(t *testing.T) {
	p := &Person{MaxReplies: 2, Rules: []PersonRule{{Tool: "pay", Times: 1, Approve: true}, {Tool: "pay", Reject: "twice"}, {Match: "secret", Fail: "never"}, {Match: "later", Ignore: true}}}
	pay := agent.Request{ID: "q-1", Type: agent.RequestApproval, Call: &agent.RequestCall{Tool: "pay"}}
	d, rule, err := p.Decide(pay, nil, 0)
	require.NoError(t, err)
	require.Zero(t, rule)
	require.IsType(t, agent.ApproveCommand{}, d.Command)
	d, rule, err = p.Decide(pay, []int{1, 0, 0, 0}, 1)
	require.NoError(t, err)
	require.Equal(t, 1, rule)
	require.IsType(t, agent.RejectCommand{}, d.Command)
	_, _, err = p.Decide(pay, []int{1, 1, 0, 0}, 2)
	require.ErrorContains(t, err, "the 2 answers that MaxReplies allows")
	_, _, err = p.Decide(agent.Request{Text: "the secret?"}, nil, 0)
	require.ErrorContains(t, err, "never")
	d, rule, err = p.Decide(agent.Request{Text: "later?"}, nil, 0)
	require.NoError(t, err)
	require.Equal(t, 3, rule)
	require.Nil(t, d.Command)
	d, _, err = p.Decide(agent.Request{Text: "what?"}, nil, 0)
	require.NoError(t, err)
	require.Nil(t, d)
	p.Model = NewScript(Reply{Text: "Rome."})
	d, rule, err = p.Decide(agent.Request{Type: agent.RequestQuestion, Text: "what?"}, nil, 0)
	require.NoError(t, err)
	require.Equal(t, -1, rule)
	require.Equal(t, "Rome.", d.Command.(agent.AnswerCommand).Text)
	_, _, err = (&Person{Rules: []PersonRule{{}}}).Decide(pay, nil, 0)
	require.ErrorContains(t, err, "rule 1 has 0 decisions")
}
