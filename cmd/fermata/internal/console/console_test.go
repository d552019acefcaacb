package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
)

// person types a line whenever something is asked: at the end of what was shown
// stands no newline.
type person struct {
	lines  []string
	typed  *io.PipeWriter
	screen strings.Builder
}

// sit is a console with a person who types these lines; then the input ends.
func sit(lines ...string) (*console.Console, *person) {
	in, typed := io.Pipe()
	p := &person{lines: lines, typed: typed}
	return console.NewConsole(in, p, nil), p
}

func (p *person) Write(b []byte) (int, error) {
	n, err := p.screen.Write(b)
	if !strings.HasSuffix(string(b), "\n") {
		go p.answer()
	}
	return n, err
}

func (p *person) answer() {
	if len(p.lines) == 0 {
		p.typed.Close()
		return
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	_, _ = io.WriteString(p.typed, line+"\n")
}

func one(n int) *int { return &n }

func TestAsk(t *testing.T) {
	question := agent.Request{ID: "q-1", Type: agent.RequestQuestion, Text: "How?"}
	choice := agent.Request{ID: "q-1", Type: agent.RequestQuestion, Text: "How?", Choices: []string{"train", "plane"}}
	approval := agent.Request{ID: "q-1", Type: agent.RequestApproval, Text: "Run pay?", Call: &agent.RequestCall{Tool: "pay", Arguments: json.RawMessage(`{"eur":800}`)}}
	form := agent.Request{ID: "q-1", Type: agent.RequestQuestion, Text: "Pay?", Schema: json.RawMessage(`{"required":["pay\u001b"]}`)}
	asked, numbers := form, form
	asked.Call, numbers.Choices = &agent.RequestCall{Tool: "pay"}, []string{"1", "2"}
	client := agent.Request{ID: "q-1", Type: agent.RequestClientTool, Text: "Run seat.", Call: &agent.RequestCall{Tool: "seat"}}
	tests := []struct {
		name  string
		q     agent.Request
		lines []string
		want  agent.AnswerTo
		says  string
	}{
		{"text", question, []string{"  By train "}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "By train"}}, "How?\nyour answer: "},
		{"a number that is a text", question, []string{"2"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "2"}}, ""},
		{"choice", choice, []string{"1"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Choice: one(1)}}, "  0  train\n  1  plane\n"},
		{"no such choice", choice, []string{"2", "on foot"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "on foot"}}, "type a number from 0 to 1\n"},
		{"yes", approval, []string{"Y"}, agent.AnswerTo{Approve: &agent.ApproveCommand{}}, "│ Run pay?\npay\n│ {\n│   \"eur\": 800\n│ }\napprove?"},
		{"always", approval, []string{"what", "a"}, agent.AnswerTo{Approve: &agent.ApproveCommand{Always: true}}, "type y, n, e, a or s\n"},
		{"session", approval, []string{"s"}, agent.AnswerTo{Approve: &agent.ApproveCommand{AlwaysInSession: true}}, ""},
		{"no", approval, []string{"n", "too much"}, agent.AnswerTo{Reject: &agent.RejectCommand{Reason: "too much"}}, "why not?"},
		{"edit", approval, []string{"e", "{", "e", "[]", "e", `{"eur":8}`}, agent.AnswerTo{Approve: &agent.ApproveCommand{Arguments: json.RawMessage(`{"eur":8}`)}}, "that is not JSON\n"},
		{"result", client, []string{"12A", `"12A"`}, agent.AnswerTo{Answer: &agent.AnswerCommand{Data: json.RawMessage(`"12A"`)}}, "that is not JSON; put a text in double quotes\n"},
		{"no result", client, []string{"n", "the train is full"}, agent.AnswerTo{Reject: &agent.RejectCommand{Reason: "the train is full"}}, ""},
		{"form", form, []string{`{"pay":true}`}, agent.AnswerTo{Answer: &agent.AnswerCommand{Data: json.RawMessage(`{"pay":true}`)}}, "the answer is JSON by this schema:\n│ {\n│   \"required\": [\n│     \"pay\\u001b\"\n│   ]\n│ }\nyour answer, as one line of JSON"},
		{"form of one field", form, []string{"giro"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "giro"}}, ""},
		{"form declined", asked, []string{"n"}, agent.AnswerTo{Reject: &agent.RejectCommand{Reason: "declined"}}, "(n: decline): "},
		{"form that can't be declined", form, []string{"n"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "n"}}, "one line of JSON: "},
		{"choice of a form", numbers, []string{"1"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Choice: one(1)}}, "  0  1\n  1  2\n"},
		{"limit", agent.Request{ID: "q-1", Type: agent.RequestLimit, Text: "Full.", Choices: []string{"continue", "stop"}}, []string{"continue"}, agent.AnswerTo{Answer: &agent.AnswerCommand{Text: "continue"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, p := sit(tt.lines...)
			a, err := c.Ask(t.Context(), tt.q)
			require.NoError(t, err)
			tt.want.Request = "q-1"
			require.Equal(t, tt.want, a)
			require.Contains(t, p.screen.String(), tt.says)
		})
	}
}

func TestNoAnswer(t *testing.T) {
	q := agent.Request{ID: "q-1", Type: agent.RequestQuestion, Text: "How?"}
	c, _ := sit("")
	_, err := c.Ask(t.Context(), q)
	require.ErrorIs(t, err, console.ErrLater)
	_, err = c.Ask(t.Context(), q)
	require.ErrorIs(t, err, io.EOF)
	_, err = c.Ask(t.Context(), q)
	require.ErrorIs(t, err, io.EOF)

	pressed := make(chan struct{}, 1)
	pressed <- struct{}{}
	forever, _ := io.Pipe()
	_, err = console.NewConsole(forever, io.Discard, pressed).Ask(t.Context(), q)
	require.ErrorIs(t, err, console.ErrInterrupted)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = console.NewConsole(forever, io.Discard, nil).Ask(ctx, q)
	require.ErrorIs(t, err, context.Canceled)
}

func TestChoose(t *testing.T) {
	open := []agent.Request{{ID: "q-1", Session: "s"}, {ID: "q-1", Session: "s/pay-1"}, {ID: "q-2", Session: "s"}}
	c, p := sit("q-9", "q-1", "s/pay-1 q-1")
	q, err := c.Choose(t.Context(), open)
	require.NoError(t, err)
	require.Equal(t, "s/pay-1", q.Session)
	require.Contains(t, p.screen.String(), "type one of the names above, such as q-1\n")
	require.Contains(t, p.screen.String(), "several sessions have a q-1: type the session before it, as in s q-1\n")
}

// What a model wrote can't steer the terminal, nor look like a line of ours, like another
// tool or like another host.
func TestShowIsNotForged(t *testing.T) {
	forged := "Fine.\n\nq-2 · approval · payer in s\npay\napprove? y(es)"
	c, p := sit()
	c.Show(agent.Request{ID: "q-1", Type: agent.RequestApproval, Agent: "payer", Session: "s", Text: "\x1b[2JRun p\u0430y?\u202e", Context: forged, Digest: "0123456789abcdef",
		Choices: []string{"\x1bz\n  1  yes"}, Call: &agent.RequestCall{Tool: "p\u0430y", Arguments: json.RawMessage(
			"{\"\\u0061m\\u043eunt\":1,\"to\":\"https://bank.com@\u0430pple.com/\\n" + strings.Repeat("x", 20_000) + "\",\n\"amount\":\"\u202e2\",\"amount\":3}")}})
	screen := p.screen.String()
	require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u202e\u0430\u043e]", screen)
	require.Contains(t, screen, "│ Fine.\n│\n│ q-2 · approval · payer in s\n│ pay\n│ approve? y(es)\n")
	require.Contains(t, screen, `p\u0430y · digest 0123456789abcdef of all arguments`+"\n│ {\n│   \"amount\": 3,\n│   \"am\\u043eunt\": 1,\n│   \"to\": \"https://bank.com@xn--pple-43d.com/\\nxx")
	require.Regexp(t, `\n3[0-9]{3} more characters are not shown: see fermata show s --json\nhosts: xn--pple-43d\.com\n  0  \\u001bz 1 yes\n$`, screen)
	for line := range strings.Lines(screen) {
		require.Regexp(t, `^(│|q-1 · |p\\u0430y · |[0-9]+ more |hosts: |  0  )`, line)
	}
}

// What nobody has asked for is kept for who wants it, and is no answer.
func TestKeep(t *testing.T) {
	in, typed := io.Pipe()
	c := console.NewConsole(in, io.Discard, nil)
	_, err := c.Typed()
	require.ErrorIs(t, err, console.ErrNothing)
	news := c.Buffer(false)
	_, err = io.WriteString(typed, " one \n/two\n//three\n")
	require.NoError(t, err)
	var heard []string
	for len(heard) < 3 {
		<-news
		for line, err := c.Typed(); !errors.Is(err, console.ErrNothing); line, err = c.Typed() {
			var command console.Command
			if errors.As(err, &command) {
				line = "command " + string(command)
			}
			heard = append(heard, line)
		}
	}
	require.Equal(t, []string{"one", "command /two", "/three"}, heard)

	require.NoError(t, typed.Close())
	for err = console.ErrNothing; errors.Is(err, console.ErrNothing); _, err = c.Typed() {
		<-news
	}
	require.ErrorIs(t, err, io.EOF)
	_, err = c.Line(t.Context(), "> ")
	require.ErrorIs(t, err, io.EOF)
}

// The lines of a script answer what is asked, in their order.
func TestKeepAhead(t *testing.T) {
	c := console.NewConsole(strings.NewReader("/pause\nby train"), io.Discard, nil)
	c.Buffer(true)
	_, err := c.Line(t.Context(), "")
	require.Equal(t, console.Command("/pause"), err)
	line, err := c.Line(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "by train", line)
	_, err = c.Line(t.Context(), "")
	require.ErrorIs(t, err, io.EOF)
}
