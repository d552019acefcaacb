package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// asksBoth are flows whose step asks: by Ask, and in the middle of a step's code.
func asksBoth[Out any](question string, o *flow.AskOptions) map[string]flow.Flow {
	return map[string]flow.Flow{
		"Ask": flow.New("within", func(c flow.Context, _ string) (string, error) {
			v, err := flow.Ask[Out](c, question, o)
			return fmt.Sprint(v), err
		}, nil),
		"AskIn": within(func(k *tool.Call) (string, error) {
			v, err := flow.AskIn[Out](k, question, o)
			return fmt.Sprint(v), err
		}, nil),
	}
}

// A question with choices takes one of them and nothing else, and returns it as the author wrote it.
func TestOnlyChoicesAreTaken(t *testing.T) {
	orders := &flow.AskOptions{Choices: []string{"o-1", "o-2"}}
	one := 1
	for how, f := range asksBoth[string]("Which order?", orders) {
		for name, said := range map[string]agent.AnswerCommand{
			"a text": {Text: "o-2"}, "a number": {Choice: &one}, "almost": {Text: " O-2 "},
		} {
			t.Run(how+"/"+name, func(t *testing.T) {
				run := stage(t, f, testsuite.Options{}).Start("within", "go", nil)
				run.Suspended()
				no := run.CommandRefused(agent.AnswerCommand{Request: "q-1", Text: "o-9"})
				require.Equal(t, agent.CodeInvalidInput, no.Code)
				require.Contains(t, no.Message, "o-1, o-2")
				require.Equal(t, "q-1", run.Suspended().Requests[0].ID, "it waits for a choice")
				said.Request = "q-1"
				run.Command(said)
				require.Equal(t, "o-2", run.Completed().Text)
			})
		}
		t.Run(how+"/JSON", func(t *testing.T) {
			run := stage(t, f, testsuite.Options{}).Start("within", "go", nil)
			run.Suspended()
			no := run.CommandRefused(agent.AnswerCommand{Request: "q-1", Data: json.RawMessage(`"o-9"`)})
			require.Contains(t, no.Message, "o-1, o-2")
			run.Answer("o-1")
			require.Equal(t, "o-1", run.Completed().Text)
		})
	}
	// The author's own default is taken as it is.
	for how, f := range asksBoth[string]("Which order?", &flow.AskOptions{Choices: orders.Choices, Deadline: time.Hour, Default: "none"}) {
		t.Run(how+"/a default", func(t *testing.T) {
			s := stage(t, f, testsuite.Options{})
			run := s.Start("within", "go", nil)
			run.Suspended()
			s.FastForward(2 * time.Hour)
			require.Equal(t, "none", run.Completed().Text)
		})
	}
	// Choices of other types are JSON.
	for how, f := range asksBoth[int]("How many?", &flow.AskOptions{Choices: []string{"10", "20"}}) {
		t.Run(how+"/a type", func(t *testing.T) {
			run := stage(t, f, testsuite.Options{}).Start("within", "go", nil)
			run.Suspended()
			run.Command(agent.AnswerCommand{Request: "q-1", Choice: &one})
			require.Equal(t, "20", run.Completed().Text)
		})
	}
}

// A rehearsal takes no other answer either.
func TestARehearsalTakesOnlyChoices(t *testing.T) {
	f := asksBoth[string]("Which order?", &flow.AskOptions{Choices: []string{"o-1", "o-2"}})["Ask"]
	answers := map[string]string{"ask": "o-77", "ask_again": "o-2"}
	r := testsuite.Rehearse(t, f, "go", func(s testsuite.RehearsedStep) (any, error) { return answers[s.Path], nil })
	require.NoError(t, r.Err)
	require.Equal(t, "o-2", r.Text)
}

// A question whose choices could not be answers is refused when it is asked.
func TestQuestionsNobodyCouldAnswer(t *testing.T) {
	enum := &flow.AskOptions{Choices: []string{"o-1", "o-2"}, Schema: json.RawMessage(`{"type":"string","enum":["o-1","o-2"]}`)}
	for says, flows := range map[string]map[string]flow.Flow{
		"name Choices alone, or ask for json.RawMessage": asksBoth[string]("Which?", enum),
		`has the choice "o-1", which does not fit`:       asksBoth[json.RawMessage]("Which?", enum),
		`has the choice "many", which does not fit`:      asksBoth[int]("Which?", &flow.AskOptions{Choices: []string{"1", "many"}}),
		"leave Choices out for yes or no":                asksBoth[bool]("Which?", &flow.AskOptions{Choices: []string{"o-1"}}),
	} {
		for how, f := range flows {
			run := stage(t, f, testsuite.Options{}).Start("within", "go", nil)
			require.Contains(t, run.Ended().Error.Message, says, how)
		}
	}
}
