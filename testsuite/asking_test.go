package testsuite_test

import (
	"context"
	"encoding/json"
	"fmt"
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
		"the choice":  {agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: "q-1", Choice: new(int)}, "paid, as ana says"},
		"a refusal":   {agent.RejectCommand{Request: "q-1", Reason: "never"}, "not paid"},
		"nothing yet": {nil, "not paid"},
	} {
		t.Run(said, func(t *testing.T) {
			calls.Store(0)
			clear(keys)
			s := testsuite.New(t, &testsuite.Options{
				Worker: &worker.Options{Tools: []tool.Tool{pay}, Agents: []agent.Definition{{
					Name: "payer", Model: "m", Tools: []string{"pay"}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(48 * time.Hour)},
				}}},
				Model: testsuite.NewScript(testsuite.Reply{Match: "go", Calls: []testsuite.Call{{Tool: "pay"}}}, testsuite.Reply{Match: "paid", Text: "done"}),
			})
			run := s.Start("payer", "go", nil)
			asked := run.Suspended().Requests[0]
			require.Equal(t, "Pay 800 EUR to a new account?", asked.Text)
			require.Equal(t, "t1.1", asked.Call.ID)
			if c.order != nil {
				run.Command(c.order)
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

// A tool may keep something with its question and go on from there, instead of
// beginning anew. People and the model see nothing of it.
func TestAToolKeepsSomethingWithItsQuestion(t *testing.T) {
	var drafts atomic.Int32
	write := tool.New("write", "writes", func(_ context.Context, call *tool.Call, _ struct{}) (string, error) {
		state := json.RawMessage(`{"draft":"` + fmt.Sprint("dear-", drafts.Add(1)) + `"}`)
		if answers := call.Answers(); len(answers) > 0 {
			last := answers[len(answers)-1]
			if last.Text == "send" {
				return fmt.Sprintf("sent %s after %d answers, the first with %q", last.State, len(answers), answers[0].State), nil
			}
			state = last.State
		}
		_, err := call.Ask(agent.ToolQuestion{Text: "Is it good?", State: state})
		return "", err
	}, nil)
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Tools: []tool.Tool{write}, Agents: []agent.Definition{{Name: "clerk", Model: "m", Tools: []string{"write"}}}},
		Model:  testsuite.NewScript(testsuite.Reply{Match: "go", Calls: []testsuite.Call{{Tool: "write"}}}, testsuite.Reply{Match: "sent", Text: "done"}),
	})
	run := s.Start("clerk", "go", nil)
	for _, text := range []string{"longer", "send"} {
		shown, err := json.Marshal(run.Suspended())
		require.NoError(t, err)
		require.NotContains(t, string(shown), "dear")
		s.FastForward(30 * 24 * time.Hour)
		run.Answer(text)
	}
	run.Completed()
	require.Equal(t, `sent {"draft":"dear-1"} after 2 answers, the first with ""`, run.Transcript()[2].Parts[0].Result.Text)
}
