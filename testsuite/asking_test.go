package testsuite_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A tool asks in the middle of its call: the run rests for as long as it takes, the
// call is made again with the answer and its key, and the model sees one call.
func TestAToolAsksAPerson(t *testing.T) {
	var calls atomic.Int32
	keys := map[string]bool{}
	pay := tool.New("pay", "pays", func(_ context.Context, call *tool.Call, _ struct{}) (string, error) {
		calls.Add(1)
		keys[call.Key] = true
		answer, err := call.Ask(agent.ToolQuestion{Text: "Pay 800 EUR to a new account?", Choices: []string{"pay", "leave it"}})
		if err != nil {
			return "", err // the first time: tool.ErrAsked
		}
		if answer.Declined || answer.Choice == nil || *answer.Choice != 0 {
			return "not paid", nil
		}
		return "paid, as " + answer.By + " says", nil
	}, nil)
	for said, c := range map[string]struct {
		order agent.Command
		want  string
	}{
		"the choice":  {agent.AnswerOrder{Order: agent.Order{By: "ana"}, Request: "q-1", Choice: new(int)}, "paid, as ana says"},
		"a refusal":   {agent.RejectOrder{Request: "q-1", Reason: "never"}, "not paid"},
		"nothing yet": {nil, "not paid"},
	} {
		t.Run(said, func(t *testing.T) {
			calls.Store(0)
			clear(keys)
			s := testsuite.New(t, &testsuite.Options{
				Worker: &worker.Options{Tools: []tool.Tool{pay}, Agents: []agent.Definition{{
					Name: "payer", Model: "m", Tools: []string{"pay"}, Asking: agent.Patience{Deadline: agent.Duration(48 * time.Hour)},
				}}},
				Model: testsuite.NewScript(testsuite.Reply{Match: "go", Calls: []testsuite.Call{{Tool: "pay"}}}, testsuite.Reply{Match: "paid", Text: "done"}),
			})
			run := s.Start("payer", "go", nil)
			asked := run.Rest().Requests[0]
			require.Equal(t, "Pay 800 EUR to a new account?", asked.Text)
			require.Equal(t, "t1.1", asked.Call.ID)
			if c.order != nil {
				run.Say(c.order)
			} else {
				s.FastForward(49 * time.Hour)
			}
			run.Completed()
			require.EqualValues(t, 2, calls.Load())
			require.Len(t, keys, 1)
			messages := run.Transcript()
			require.Equal(t, c.want, messages[2].Parts[0].Result.Text)
		})
	}
}
