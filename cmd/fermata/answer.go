package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) answerCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbAnswer}
	cmd := d.command("answer SESSION [TEXT]", "Answer a question, a limit or a client tool call",
		`Answer answers a request of a run: with a text, with one of its choices, or with JSON.
The model gets the files of --file in a message after the answer. A tool that asks, and a
flow, take no files.`, `  fermata answer trip-42
  fermata answer trip-42 "By train" --request q-7
  fermata answer trip-42 --request q-7 --choice 0
  fermata answer trip-42 --request q-8 --result '{"seat":"12A"}'
  fermata answer trip-42 "This one" --request q-9 --file ticket.pdf`)
	f := cmd.Flags()
	f.StringVar(&d.choice, "choice", "", "one of the request's choices: its number, from 0, or its text")
	f.StringVar(&d.result, "result", "", "the result of a client tool, as JSON")
	fileFlag(cmd, &d.paths)
	return cmd
}

// answerOrder returns the answer in the flags, or nil if there is none.
func (d *decider) answerOrder(text string) (*agent.AnswerCommand, error) {
	order, given := &agent.AnswerCommand{Text: text}, 0
	// A choice is resolved later, when the request is read; here it only counts as an answer.
	for _, is := range []bool{text != "", d.choice != "", d.result != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, agent.Errorf(agent.CodeInvalidInput, "TEXT, --choice and --result exclude each other")
	// No answer is no error: on a terminal the person is asked.
	case given == 0 && len(d.paths) == 0:
		return nil, nil
	case d.result != "":
		raw, err := jsonOf("--result", d.result)
		if err != nil {
			return nil, err
		}
		order.Data = raw
	}
	return order, nil
}

// chosen returns the number of a choice, given by number or text. A number is never read
// as a text.
func chosen(q agent.Request, answer string) (int, error) {
	n, err := strconv.Atoi(answer)
	if err != nil {
		// Choices that are numbers would be ambiguous; the number means the position.
		n = slices.Index(q.Choices, answer)
	}
	if n >= 0 && n < len(q.Choices) {
		return n, nil
	}
	if len(q.Choices) == 0 {
		return 0, agent.Errorf(agent.CodeInvalidInput, "request %s has no choices: answer it with a TEXT", q.ID).WithPath("choice")
	}
	// Choices are model output, so they are quoted.
	list := make([]string, len(q.Choices))
	for i, text := range q.Choices {
		list[i] = fmt.Sprintf("%d %q", i, text)
	}
	return 0, agent.Errorf(agent.CodeInvalidInput, "%q is not one of the choices of request %s: %s", answer, q.ID, strings.Join(list, ", ")).WithPath("choice")
}
