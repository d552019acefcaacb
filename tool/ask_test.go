package tool_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

// Questions with names get the answers to these, those without the others in their order. A name that is
// used twice is two questions.
func TestAnswersAreFoundByName(t *testing.T) {
	h := &toolcall.Hooks{Answers: []agent.ToolAnswer{{Name: "who", Text: "ana"}, {Text: "first"}, {Name: "who", Text: "ben"}, {Text: "second"}}}
	call := tool.Call{}.With(h)
	for _, q := range []struct{ name, want string }{{"", "first"}, {"who", "ana"}, {"", "second"}, {"who", "ben"}} {
		a, err := call.Ask(agent.ToolQuestion{Text: "?", Name: q.name})
		require.NoError(t, err)
		require.Equal(t, q.want, a.Text)
	}
	_, err := call.Ask(agent.ToolQuestion{Text: "And?", Name: "else"})
	require.ErrorIs(t, err, tool.ErrAsked)
	require.Equal(t, "else", h.Question.Name)

	again := tool.Call{}.With(&toolcall.Hooks{Answers: h.Answers})
	require.Len(t, again.Answers(), 4)
	_, err = again.Ask(agent.ToolQuestion{Text: "?", Name: "who"})
	require.ErrorIs(t, err, tool.ErrAsked, "all answers count as used")
}

// An answer counts only for the question that the person has read, with a name or without one. What it is
// not for is asked anew, at most 16 times.
func TestAnAnswerCountsForItsQuestion(t *testing.T) {
	read := agent.ToolQuestion{Text: "Pay?", Context: "ACME", Choices: []string{"yes", "no"}}
	other := read
	other.Name = "pay"
	for _, read := range []agent.ToolQuestion{read, other} {
		h := &toolcall.Hooks{}
		_, err := tool.Call{}.With(h).Ask(read)
		require.ErrorIs(t, err, tool.ErrAsked)
		yes := agent.ToolAnswer{Name: read.Name, Digest: h.Question.Digest, Text: "yes"}
		changes := map[string]func(*agent.ToolQuestion){
			"text":    func(q *agent.ToolQuestion) { q.Text = "Pay now?" },
			"context": func(q *agent.ToolQuestion) { q.Context = "Evil" },
			"choices": func(q *agent.ToolQuestion) { q.Choices = []string{"no", "yes"} },
			"split":   func(q *agent.ToolQuestion) { q.Choices = []string{"yes", "n", "o"} },
			"name":    func(q *agent.ToolQuestion) { q.Name = "else" },
		}
		for what, change := range changes {
			h, q := &toolcall.Hooks{Answers: []agent.ToolAnswer{yes}}, read
			change(&q)
			q.Digest = yes.Digest // the author can't name it
			call := tool.Call{}.With(h)
			_, err = call.Ask(q)
			require.ErrorIs(t, err, tool.ErrAsked, what)
			require.Equal(t, q.Text, h.Question.Text, what)
		}
		call := tool.Call{}.With(&toolcall.Hooks{Answers: []agent.ToolAnswer{yes}})
		a, err := call.Ask(read)
		require.NoError(t, err)
		require.Equal(t, "yes", a.Text)
		_, err = call.Ask(read)
		require.ErrorIs(t, err, tool.ErrAsked, "an answer counts once")

		h = &toolcall.Hooks{Answers: make([]agent.ToolAnswer, tool.MaxAsks)}
		for i := range h.Answers {
			h.Answers[i] = yes
		}
		read.Context = "Evil"
		_, err = tool.Call{}.With(h).Ask(read)
		require.ErrorIs(t, err, agent.CodeTooLarge)
	}
}

// A tool that goes on after it has asked does not replace its question.
func TestTheFirstQuestionCounts(t *testing.T) {
	h := &toolcall.Hooks{}
	call := tool.Call{}.With(h)
	for _, text := range []string{"first", "second"} {
		_, err := call.Ask(agent.ToolQuestion{Text: text})
		require.ErrorIs(t, err, tool.ErrAsked)
	}
	require.Equal(t, "first", h.Question.Text)
}

// A question is checked when it is asked.
func TestQuestionsThatAreRefused(t *testing.T) {
	until := &agent.Conditions{After: 1}
	for name, c := range map[string]struct {
		q     agent.ToolQuestion
		waits bool
		code  agent.Code
	}{
		"a wait outside of a flow": {agent.ToolQuestion{Text: "wait", Until: until}, false, agent.CodeInvalidInput},
		"a wait with choices":      {agent.ToolQuestion{Text: "wait", Until: until, Choices: []string{"a"}}, true, agent.CodeInvalidInput},
		"a long name":              {agent.ToolQuestion{Text: "?", Name: strings.Repeat("x", 65)}, true, agent.CodeInvalidInput},
		"a default for never":      {agent.ToolQuestion{Text: "?", Timeouts: &agent.AnswerTimeouts{Default: "a"}}, true, agent.CodeInvalidInput},
		"a long default":           {agent.ToolQuestion{Text: "?", Timeouts: &agent.AnswerTimeouts{Deadline: 1, Default: strings.Repeat("x", 5000)}}, true, agent.CodeTooLarge},
		"a wait":                   {agent.ToolQuestion{Text: "wait", Until: until}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tool.Call{}.With(&toolcall.Hooks{Waits: c.waits}).Ask(c.q)
			if c.code == "" {
				require.ErrorIs(t, err, tool.ErrAsked)
				return
			}
			require.ErrorIs(t, err, c.code)
		})
	}
}
