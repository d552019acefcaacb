package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// within is a flow of one step with this code.
func within(do func(*tool.Call) (string, error), o *flow.StepOptions) flow.Flow {
	return flow.New("within", func(c flow.Context, _ string) (string, error) {
		return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) { return do(k) }, o)
	}, nil)
}

// started returns the times that a step has started, and how often it has ended, by the log.
func started(run *testsuite.Run, step string) (answers []int, ended int, calls map[string]bool) {
	calls = map[string]bool{}
	for _, e := range run.Events() {
		if e.Call == nil || e.Call.Step != step {
			continue
		}
		calls[e.Call.Call] = true
		switch e.Type {
		case agent.EventCallStarted:
			answers = append(answers, e.Call.Answers)
		case agent.EventCallDone:
			ended++
		}
	}
	return answers, ended, calls
}

// Code of a step asks in the middle of its work. With the answer the same step starts again: it is the same
// call, with the same key and the same attempt, and has one result (OA-04, OA-05, OA-35).
func TestAStepStartsAgainWithTheAnswer(t *testing.T) {
	seen := map[string]int{}
	s := stage(t, within(func(k *tool.Call) (string, error) {
		seen[fmt.Sprint(k.Key, " ", k.Attempt, " ", k.ID)]++
		which, err := flow.AskIn[string](k, "Which order?", &flow.AskOptions{Choices: []string{"A-1", "B-2"}, Context: "invoice 7"})
		if err != nil {
			return "", err
		}
		return "order " + which, nil
	}, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	asked := run.Suspended().Requests[0]
	require.Equal(t, "match", asked.Step)
	require.Equal(t, []string{"A-1", "B-2"}, asked.Choices)
	require.Equal(t, "invoice 7", asked.Context)
	s.FastForward(60 * 24 * time.Hour)
	run.Answer("B-2")
	out := run.Completed()
	require.Equal(t, "order B-2", out.Text)
	require.Equal(t, []agent.ToolCount{{Tool: "match", Calls: 1, OK: 1}}, out.Tools, "it is one call")
	require.Len(t, seen, 1)
	for one, n := range seen {
		require.Equal(t, 2, n, one)
		require.Contains(t, one, "/match 1 ")
	}
	answers, ended, calls := started(run, "match")
	require.Equal(t, []int{0, 1}, answers)
	require.Equal(t, 1, ended)
	require.Len(t, calls, 1)
}

// What the code can get instead of an answer, and what it can do then.
func TestAStepIsNotAnswered(t *testing.T) {
	day := &flow.AskOptions{Deadline: 24 * time.Hour}
	for name, c := range map[string]struct {
		o    *flow.AskOptions
		act  func(*testsuite.Env, *testsuite.Run)
		want string
	}{
		"a rejection": {nil, func(_ *testsuite.Env, r *testsuite.Run) {
			r.Command(agent.RejectCommand{Request: "q-1", Reason: "ask ben", CommandHeader: agent.CommandHeader{By: "ana"}})
		}, "declined: the question is not answered: ana has rejected it: ask ben"},
		"a deadline": {day, func(s *testsuite.Env, _ *testsuite.Run) { s.FastForward(25 * time.Hour) }, "declined: the question is not answered: nobody answered in time: How many?"},
		"a default":  {&flow.AskOptions{Deadline: time.Hour, Default: "3"}, func(s *testsuite.Env, _ *testsuite.Run) { s.FastForward(2 * time.Hour) }, "3"},
		"in time":    {day, func(s *testsuite.Env, r *testsuite.Run) { s.FastForward(23 * time.Hour); r.Answer("4") }, "4"},
		"a better one": {nil, func(_ *testsuite.Env, r *testsuite.Run) {
			require.Equal(t, agent.CodeInvalidInput, r.CommandRefused(agent.AnswerCommand{Request: "q-1", Text: "a few"}).Code)
			require.Equal(t, "q-1", r.Suspended().Requests[0].ID, "it waits for a better one")
			r.Answer("5")
		}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, within(func(k *tool.Call) (string, error) {
				n, err := flow.AskIn[int](k, "How many?", c.o)
				if errors.Is(err, flow.ErrDeclined) {
					return "declined: " + err.Error(), nil
				}
				return fmt.Sprint(n), err
			}, nil), testsuite.Options{})
			run := s.Start("within", "go", nil)
			run.Suspended()
			c.act(s, run)
			require.Equal(t, c.want, run.Completed().Text)
		})
	}
}

// Code that asks for ever is stopped, with a code: here its question is another one each time.
func TestAStepAsksForEver(t *testing.T) {
	begun := 0
	s := stage(t, flow.New("within", func(c flow.Context, _ string) (string, error) {
		_, err := flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
			begun++
			return flow.AskIn[string](k, fmt.Sprint("Which one? ", begun), nil)
		}, nil)
		var failed *flow.StepError
		if !errors.As(err, &failed) || !errors.Is(err, agent.CodeTooLarge) {
			return "", fmt.Errorf("it does not say why: %w", err)
		}
		return failed.Text, nil
	}, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	for range tool.MaxAsks {
		run.Suspended()
		run.Answer("this")
	}
	require.Contains(t, run.Completed().Text, "one call asks at most 16 questions")
	require.Equal(t, tool.MaxAsks+1, begun)
}

// The same question, asked again, is another one. A name tells questions with equal words apart.
func TestQuestionsOfAStepHaveNames(t *testing.T) {
	begun := 0
	s := stage(t, within(func(k *tool.Call) (string, error) {
		begun++
		var said []string
		for range 2 {
			text, err := flow.AskIn[string](k, "And?", nil)
			if err != nil {
				return "", err
			}
			said = append(said, text)
		}
		text, err := flow.AskIn[string](k, "And?", &flow.AskOptions{Name: "which"})
		return strings.Join(append(said, text), " "), err
	}, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	for _, text := range []string{"a", "b", "c"} {
		run.Suspended()
		run.Answer(text)
	}
	require.Equal(t, "a b c", run.Completed().Text)
	require.Equal(t, 4, begun)
}

// A yes counts for what the person has read. If the code finds something else when it runs again, the
// person is asked anew, with and without a name.
func TestAnAnswerCountsForWhatWasRead(t *testing.T) {
	type asked struct {
		text string
		o    flow.AskOptions
	}
	for name, c := range map[string]struct{ read, now asked }{
		"a context":       {asked{"Pay it?", flow.AskOptions{Context: "ACME, 100 EUR"}}, asked{"Pay it?", flow.AskOptions{Context: "Evil, 90000 EUR"}}},
		"a named text":    {asked{"Pay 100 to ACME?", flow.AskOptions{Name: "pay"}}, asked{"Pay 90000 to Evil?", flow.AskOptions{Name: "pay"}}},
		"a named context": {asked{"Pay it?", flow.AskOptions{Name: "pay", Context: "ACME"}}, asked{"Pay it?", flow.AskOptions{Name: "pay", Context: "Evil"}}},
		"named choices":   {asked{"To whom?", flow.AskOptions{Name: "pay", Choices: []string{"ACME", "yes"}}}, asked{"To whom?", flow.AskOptions{Name: "pay", Choices: []string{"Evil", "yes"}}}},
		"another split":   {asked{"Pay", flow.AskOptions{Name: "pay", Context: " ACME"}}, asked{"Pay ", flow.AskOptions{Name: "pay", Context: "ACME"}}},
	} {
		t.Run(name, func(t *testing.T) {
			on := c.read
			s := stage(t, within(func(k *tool.Call) (string, error) {
				looked := on
				said, err := flow.AskIn[string](k, looked.text, &looked.o)
				return said + " to " + looked.text + looked.o.Context + fmt.Sprint(looked.o.Choices), err
			}, nil), testsuite.Options{})
			run := s.Start("within", "go", nil)
			require.Equal(t, c.read.o.Context, run.Suspended().Requests[0].Context)
			on = c.now
			run.Answer("yes")
			again := run.Suspended().Requests[0]
			require.Equal(t, "q-2", again.ID)
			require.Equal(t, []string{c.now.text, c.now.o.Context}, []string{again.Text, again.Context})
			on = c.read // the old question again: its answer still counts
			run.Answer("yes")
			require.Contains(t, run.Completed().Text, "yes to "+c.read.text+c.read.o.Context)
		})
	}
}

// What ends a wait is no answer of a person, though both have the same name.
func TestWhatCameIsNoAnswer(t *testing.T) {
	begun := 0
	s := stage(t, within(func(k *tool.Call) (string, error) {
		if begun++; begun == 1 {
			_, err := flow.WaitIn(k, agent.Conditions{Event: &agent.EventCondition{Topic: "x"}}, &flow.WaitOptions{Name: "pay"})
			return "", err
		}
		return flow.AskIn[string](k, "Pay?", &flow.AskOptions{Name: "pay"})
	}, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	run.Suspended()
	run.Emit("x", "yes")
	require.Equal(t, "Pay?", run.Suspended().Requests[0].Text)
	run.Answer("no")
	require.Equal(t, "no", run.Completed().Text)
}

// A step whose code waits can be held. The pause keeps its answer, and an interrupt lets it wait.
func TestAHeldStepKeepsItsAnswer(t *testing.T) {
	for name, hold := range map[string]func(*testsuite.Run) agent.Ack{"pause": (*testsuite.Run).Pause, "interrupt": (*testsuite.Run).Interrupt} {
		t.Run(name, func(t *testing.T) {
			begun := 0
			s := stage(t, within(func(k *tool.Call) (string, error) {
				begun++
				which, err := flow.AskIn[string](k, "Which order?", nil)
				if err != nil {
					return "", err
				}
				paid, err := flow.WaitIn(k, agent.Conditions{Event: &agent.EventCondition{Topic: "paid"}}, nil)
				return which + " " + string(paid.Payload), err
			}, nil), testsuite.Options{})
			run := s.Start("within", "go", nil)
			run.Suspended()
			hold(run)
			run.Command(agent.AnswerCommand{Request: "q-1", Text: "blue"})
			require.Equal(t, 1, begun, "nothing begins under a hold")
			run.Resume()
			require.Equal(t, []agent.StepWait{{Step: "match", Conditions: run.Suspended().Waits[0].Conditions}}, run.Suspended().Waits)
			run.Pause()
			run.Emit("paid", 5)
			require.Equal(t, 2, begun, "nor with an event")
			run.Resume()
			require.Equal(t, "blue 5", run.Completed().Text)
			require.Equal(t, 3, begun)
		})
	}
}

// A wait of a step's code has a time.
func TestAStepWaitsForATime(t *testing.T) {
	s := stage(t, within(func(k *tool.Call) (string, error) {
		e, err := flow.WaitIn(k, agent.Conditions{After: agent.Duration(48 * time.Hour)}, nil)
		return fmt.Sprint("timed out: ", e.TimedOut), err
	}, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	run.Suspended()
	s.FastForward(49 * time.Hour)
	require.Equal(t, "timed out: true", run.Completed().Text)
}

// A stop ends a step that asks. It has failed, since it was made as far as its question.
func TestAStepThatAsksIsStopped(t *testing.T) {
	s := stage(t, within(func(k *tool.Call) (string, error) { return flow.AskIn[string](k, "Which order?", nil) }, nil), testsuite.Options{})
	run := s.Start("within", "go", nil)
	run.Suspended()
	run.Stop("enough")
	require.Equal(t, agent.StatusStopped, run.Ended().Status)
	result := run.Transcript()[2].Parts[0].Result
	require.Equal(t, agent.CallFailed, result.Status)
	require.Contains(t, result.Text, "It had been made as far as its question.")
}

// A wait for an event is only for steps of a flow, and conditions that could never be met fail the step.
func TestWaitsOfCodeThatAreRefused(t *testing.T) {
	_, err := flow.WaitIn(&tool.Call{}, agent.Conditions{}, nil)
	require.ErrorIs(t, err, agent.CodeInvalidInput)

	s := stage(t, within(func(k *tool.Call) (string, error) {
		_, err := flow.WaitIn(k, agent.Conditions{Event: &agent.EventCondition{}}, nil)
		return "", err
	}, nil), testsuite.Options{})
	out := s.Start("within", "go", nil).Ended()
	require.Equal(t, agent.CodeStepFailed, out.Error.Code)
	require.Equal(t, "match", out.Error.Path)
	require.Contains(t, out.Error.Message, "topic")
}

// A rehearsal gives a step's code its answers.
func TestRehearseAStepThatAsks(t *testing.T) {
	f := within(func(k *tool.Call) (string, error) {
		n, err := flow.AskIn[int](k, "How many?", nil)
		if err != nil {
			return "", err
		}
		paid, err := flow.WaitIn(k, agent.Conditions{Event: &agent.EventCondition{Topic: "paid"}}, nil)
		return fmt.Sprint(n, " ", string(paid.Payload)), err
	}, nil)
	r := testsuite.Rehearse(t, f, "go", func(s testsuite.RehearsedStep) (any, error) {
		return s.Do(t.Context(), 7, flow.Event{Topic: "paid", Payload: []byte("5")})
	})
	require.NoError(t, r.Err)
	require.Equal(t, "7 5", r.Text)

	r = testsuite.Rehearse(t, f, "go", func(s testsuite.RehearsedStep) (any, error) { return s.Do(t.Context()) })
	require.Equal(t, []string{"match"}, r.Open)
}
