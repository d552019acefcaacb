package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// ErrLater means that the person wants to leave a request open for now.
var ErrLater = errors.New("left open for now")

// Ask shows a whole request, and asks until there is a valid answer. Errors are
// [ErrLater] for an empty line, and those of [Console.Line].
func (c *Console) Ask(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	c.Show(q)
	for {
		a, err := c.once(ctx, q)
		var wrong unfit
		if !errors.As(err, &wrong) {
			return a, err
		}
		c.Print("%s", wrong)
	}
}

// unfit says why an answer is invalid.
type unfit string

func (u unfit) Error() string { return string(u) }

func (c *Console) once(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	switch q.Type {
	case agent.RequestApproval:
		return c.approval(ctx, q)
	case agent.RequestClientTool:
		return c.result(ctx, q)
	}
	if len(q.Schema) > 0 && len(q.Choices) == 0 {
		return c.form(ctx, q)
	}
	text, err := c.requiredLine(ctx, questionPrompt(q))
	if err != nil {
		return agent.AnswerTo{}, err
	}
	return reply(q, text)
}

// form asks for data, as tools request it. A form with a single field also accepts a
// text.
func (c *Console) form(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	prompt, declines := "your answer, as one line of JSON: ", q.Call != nil // only a tool's question can be declined
	if declines {
		prompt = "your answer, as one line of JSON (n: decline): "
	}
	line, err := c.requiredLine(ctx, prompt)
	switch {
	case err != nil:
		return agent.AnswerTo{}, err
	case line == "n" && declines:
		return agent.AnswerTo{Request: q.ID, Reject: &agent.RejectCommand{Reason: "declined"}}, nil
	case json.Valid([]byte(line)):
		return agent.AnswerTo{Request: q.ID, Answer: &agent.AnswerCommand{Data: json.RawMessage(line)}}, nil
	}
	return agent.AnswerTo{Request: q.ID, Answer: &agent.AnswerCommand{Text: line}}, nil
}

func questionPrompt(q agent.Request) string {
	if len(q.Choices) > 0 {
		return "your answer (a number, or a text): "
	}
	return "your answer: "
}

// reply makes an answer from a typed text: a number means one of the choices.
func reply(q agent.Request, text string) (agent.AnswerTo, error) {
	order := &agent.AnswerCommand{Text: text}
	if n, err := strconv.Atoi(text); err == nil && len(q.Choices) > 0 {
		if n < 0 || n >= len(q.Choices) {
			return agent.AnswerTo{}, unfit(fmt.Sprintf("type a number from 0 to %d", len(q.Choices)-1))
		}
		order = &agent.AnswerCommand{Choice: &n}
	}
	return agent.AnswerTo{Request: q.ID, Answer: order}, nil
}

// requiredLine asks for a line that is not empty.
func (c *Console) requiredLine(ctx context.Context, prompt string) (string, error) {
	line, err := c.Line(ctx, prompt)
	// An empty line is the way to leave a request open.
	if err == nil && line == "" {
		err = ErrLater
	}
	return line, err
}

func (c *Console) approval(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	line, err := c.requiredLine(ctx, "approve? y(es), n(o), e(dit the arguments), a(lways, in this run), s(ession: always, also in its later runs): ")
	if err != nil {
		return agent.AnswerTo{}, err
	}
	a := agent.AnswerTo{Request: q.ID}
	switch strings.ToLower(line) {
	case "y", "yes":
		a.Approve = &agent.ApproveCommand{}
	case "a", "always":
		a.Approve = &agent.ApproveCommand{Always: true}
	case "s", "session":
		a.Approve = &agent.ApproveCommand{AlwaysInSession: true}
	case "n", "no":
		return c.refusal(ctx, q)
	case "e", "edit":
		raw, err := c.json(ctx, "the arguments, as one line of JSON: ")
		if err == nil && raw[0] != '{' {
			err = unfit("the arguments must be an object: {…}")
		}
		a.Approve = &agent.ApproveCommand{Arguments: raw}
		return a, err
	default:
		return a, unfit("type y, n, e, a or s")
	}
	return a, nil
}

func (c *Console) refusal(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	reason, err := c.requiredLine(ctx, "why not? (the model reads it): ")
	return agent.AnswerTo{Request: q.ID, Reject: &agent.RejectCommand{Reason: reason}}, err
}

// result asks for the result of a client tool's call.
func (c *Console) result(ctx context.Context, q agent.Request) (agent.AnswerTo, error) {
	line, err := c.requiredLine(ctx, "the result, as one line of JSON (n: there is no result): ")
	switch {
	case err != nil:
		return agent.AnswerTo{}, err
	case line == "n":
		return c.refusal(ctx, q)
	case !json.Valid([]byte(line)):
		return agent.AnswerTo{}, unfit("that is not JSON; put a text in double quotes")
	}
	return agent.AnswerTo{Request: q.ID, Answer: &agent.AnswerCommand{Data: json.RawMessage(line)}}, nil
}

func (c *Console) json(ctx context.Context, prompt string) (json.RawMessage, error) {
	line, err := c.requiredLine(ctx, prompt)
	if err == nil && !json.Valid([]byte(line)) {
		err = unfit("that is not JSON")
	}
	return json.RawMessage(line), err
}

// Yes asks for confirmation; only y and yes confirm.
func (c *Console) Yes(ctx context.Context, prompt string) (bool, error) {
	line, err := c.Line(ctx, prompt+" y(es), n(o): ")
	// The error is returned too, so a caller must check it before the answer.
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// Choose asks which of several requests to answer.
func (c *Console) Choose(ctx context.Context, open []agent.Request) (agent.Request, error) {
	for {
		line, err := c.requiredLine(ctx, "which one? ")
		if err != nil {
			return agent.Request{}, err
		}
		var found []agent.Request
		// Ids are unique only within a session.
		for _, q := range open {
			if line == q.ID || line == q.Session+" "+q.ID {
				found = append(found, q)
			}
		}
		switch len(found) {
		case 1:
			return found[0], nil
		case 0:
			c.Print("type one of the names above, such as %s", open[0].ID)
		default:
			c.Print("several sessions have a %s: type the session before it, as in %s %s", line, open[0].Session, line)
		}
	}
}

// maxShown bounds how much of a call's arguments is shown, in characters.
const maxShown = 16 << 10

// Show writes a request with all that a person needs to decide it. Text of a model or a
// tool is behind a margin.
func (c *Console) Show(q agent.Request) {
	c.Print("%s · %s%s · %s in %s%s", untrusted.Name(q.ID), q.Type, render.At(q), untrusted.Name(q.Agent), untrusted.Name(q.Session), render.Deadline(q))
	for _, text := range []string{q.Text, q.Context} {
		if text != "" {
			c.Print("%s", untrusted.Margin(text))
		}
	}
	if q.Call != nil {
		c.call(q)
	}
	if len(q.Schema) > 0 {
		c.Print("the answer is JSON by this schema:")
		c.Print("%s", untrusted.MarginOf(untrusted.JSON(q.Schema)))
	}
	for i, choice := range q.Choices {
		c.Print("  %d  %s", i, choice)
	}
}

// call writes a call: its arguments as the digest sees them, how much of them is not
// shown, and the hosts that they name, which a long URL could hide.
func (c *Console) call(q agent.Request) {
	// Cut by characters, so no escape or letter is cut in half.
	shown, digest := []rune(untrusted.JSON(q.Call.Arguments)), ""
	if q.Digest != "" {
		digest = " · digest " + q.Digest + " of all arguments"
	}
	c.Print("%s%s", untrusted.Name(q.Call.Tool), digest)
	if len(q.Call.Arguments) == 0 {
		return
	}
	c.Print("%s", untrusted.MarginOf(string(shown[:min(len(shown), maxShown)])))
	if more := len(shown) - maxShown; more > 0 {
		c.Print("%d more characters are not shown: see fermata show %s --json", more, untrusted.Name(q.Session))
	}
	// Of all arguments, not only of the shown part.
	if hosts := untrusted.HostsOf(string(q.Call.Arguments)); len(hosts) > 0 {
		slices.Sort(hosts)
		c.Print("hosts: %s", strings.Join(slices.Compact(hosts), ", "))
	}
}
