//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/worker"
	"github.com/stretchr/testify/require"
)

// counter sets up the file that effects are told in.
func counter(t *testing.T) (env map[string]string, effects_ func() string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "effects")
	return map[string]string{effects: file}, func() string {
		raw, err := os.ReadFile(file)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		return string(raw)
	}
}

// dialogue is a call that is made again with each answer, as a run does.
type dialogue struct {
	t       *testing.T
	rig     rig
	tool    string
	answers []agent.ToolAnswer
	state   json.RawMessage
}

func (d *dialogue) call() (string, *agent.ToolQuestion, error) {
	d.t.Helper()
	hooks := &toolcall.Hooks{Answers: d.answers}
	call := tool.Call{Tool: "tickets__" + d.tool, Arguments: []byte(`{}`), Key: "r/t1.1"}.With(hooks)
	text, err := d.rig.Call(d.t.Context(), call)
	return text, hooks.Question, err
}

func (d *dialogue) asked() agent.ToolQuestion {
	d.t.Helper()
	_, q, err := d.call()
	require.ErrorIs(d.t, err, tool.ErrAsked)
	require.NoError(d.t, q.Check())
	d.state = q.State
	return *q
}

func (d *dialogue) answer(a agent.ToolAnswer) *dialogue {
	for i := range d.answers {
		d.answers[i].State = nil
	}
	a.State = d.state
	d.answers = append(d.answers, a)
	return d
}

func (d *dialogue) done() string {
	d.t.Helper()
	text, _, err := d.call()
	require.NoError(d.t, err)
	return text
}

func (d *dialogue) fails(words string) {
	d.t.Helper()
	_, q, err := d.call()
	require.ErrorContains(d.t, err, words)
	require.NotErrorIs(d.t, err, tool.ErrAsked)
	require.Nil(d.t, q)
}

func data(raw string) agent.ToolAnswer {
	return agent.ToolAnswer{Text: raw, Data: json.RawMessage(raw), By: "ana"}
}

func said(text string) agent.ToolAnswer { return agent.ToolAnswer{Text: text, By: "ana"} }

// A server asks in rounds: what it asks together is asked one after the other, and the
// call goes on with what it kept, in whatever process.
func TestRounds(t *testing.T) {
	env, done := counter(t)
	fresh := func() rig { return setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}) }
	d := &dialogue{t: t, rig: fresh(), tool: "pay"}
	q := d.asked()
	require.Equal(t, "Pay 800 EUR to a new account?", q.Text)
	require.Equal(t, "The MCP server tickets asks this, and is told what is answered. Answer with JSON:\n"+
		"- note: string, may be left out, one of rent, food\n- pay: boolean (whether to)", q.Context)
	require.JSONEq(t, `{"type":"object","properties":{"pay":{"type":"boolean","description":"whether to"},"note":{"type":"string","enum":["rent","food"]}},"required":["pay"]}`, string(q.Schema))

	require.NoError(t, d.rig.Close()) // it is gone: what is asked next needs no server
	for _, misfit := range []agent.ToolAnswer{data(`{"pay":"yes"}`), said("yes"), data(`{"pay":true,"note":"fun"}`)} {
		q = d.answer(misfit).asked()
		require.Equal(t, "Pay 800 EUR to a new account?", q.Text)
		require.Contains(t, q.Context, "The last answer did not fit: ")
	}
	require.Equal(t, "From which account?", d.answer(data(`{"pay":true}`)).asked().Text)

	d.rig = fresh()
	q = d.answer(said("giro")).asked()
	require.Equal(t, "Sign in at the bank.\nOpen this page, if you trust it, and answer when you are done: https://bank.example.com/in?state=77\nIts host is bank.example.com", q.Text)
	require.Equal(t, []string{"done", "decline"}, q.Choices)
	require.Empty(t, q.Schema)
	require.Empty(t, done())

	d.rig = fresh()
	zero := 0
	require.Equal(t, `second accept{"pay":true}accept{"account":"giro"} acceptnull`, d.answer(agent.ToolAnswer{Text: "done", Choice: &zero}).done())
	require.Equal(t, "paid with r/t1.1\n", done())
}

// Who refuses, and a deadline that passes, are answers; the server goes on with them.
func TestRoundsDeclined(t *testing.T) {
	env, _ := counter(t)
	for want, a := range map[string]agent.ToolAnswer{
		"decline": {Text: "no", By: "ana", Declined: true},
		"cancel":  {Declined: true, Expired: true},
	} {
		d := &dialogue{t: t, rig: setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}), tool: "pay"}
		for range 3 {
			d.asked()
			d.answer(a)
		}
		require.Equal(t, "second "+want+"null"+want+"null "+want+"null", d.done())
	}
	// What a deadline says in people's place, and does not fit, is asked for no more.
	d := &dialogue{t: t, rig: setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}), tool: "pay"}
	for range 3 {
		d.asked()
		d.answer(agent.ToolAnswer{Text: "continue", Expired: true})
	}
	require.Equal(t, "second cancelnullaccept{\"account\":\"continue\"} cancelnull", d.done())
}

// A server that asks too much, or for what it was not offered, is asked no more.
func TestRoundsAreBounded(t *testing.T) {
	env, _ := counter(t)
	for name, words := range map[string]string{
		"many": "the MCP server tickets asks 17 questions in one call, but at most 16 are allowed",
		"long": "the state that is kept with a question has 2",
		"odd":  `it asks by a form that can't be read: its field "a" is of the type "object"`,
	} {
		(&dialogue{t: t, rig: setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}), tool: name}).fails(words)
	}
	(&dialogue{t: t, rig: setup(t, "wanting", mcp.Options{}), tool: "roots"}).fails("asks for something that it was not offered")
	// A call that has asked in rounds can't go on where there are none any more.
	d := &dialogue{t: t, rig: setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}), tool: "long"}
	d.state = json.RawMessage(`{"how":"round","wants":[{"id":"a","message":"m"}],"state":"s"}`)
	d.answer(said("accept"))
	env[old] = "1"
	d.rig = setup(t, "asks", mcp.Options{Elicit: mcp.ElicitReplay, Env: env})
	d.fails("no longer speaks the protocol in which it asked")
	for _, state := range []string{``, `7`, `{"before":9}`} {
		d.answers[0].State = json.RawMessage(state)
		d.fails("what the call kept with its question can't be read")
	}
}

// An old server asks in the middle of its call, which is cancelled there and made again
// with the answers; what it was answered it is answered again.
func TestReplay(t *testing.T) {
	env, done := counter(t)
	env[old] = "1"
	fresh := func() rig { return setup(t, "asks", mcp.Options{Elicit: mcp.ElicitReplay, Env: env}) }
	d := &dialogue{t: t, rig: fresh(), tool: "ask"}
	q := d.asked()
	require.Equal(t, "Pay 800 EUR to a new account?", q.Text)
	require.NotEmpty(t, q.Schema)
	d.answer(data(`{"pay":7}`))
	require.Contains(t, d.asked().Context, "The last answer did not fit: ")
	d.rig = fresh() // another process
	require.Equal(t, "From which account?", d.answer(data(`{"pay":false}`)).asked().Text)
	require.Equal(t, `accept{"pay":false} declinenull`, d.answer(agent.ToolAnswer{Declined: true, By: "ana"}).done())
	require.Equal(t, "paid with r/t1.1\n", done(), "what was cancelled has not gone on")

	// The same question asked again is another one.
	same := &dialogue{t: t, rig: d.rig, tool: "twice"}
	require.Equal(t, []string{"accept", "decline"}, same.asked().Choices)
	require.Equal(t, "Really?", same.answer(said("Accept")).asked().Text)
	require.Equal(t, "acceptnull declinenull", same.answer(said("decline")).done())

	// Two calls at once, of one server: each has its own answers.
	twice := make(chan string, 2)
	for _, other := range []*dialogue{{t: t, rig: d.rig, tool: "ask", answers: d.answers}, {t: t, rig: d.rig, tool: "ask", answers: d.answers}} {
		go func() {
			text, _, err := other.call()
			if err != nil {
				text = err.Error()
			}
			twice <- text
		}()
	}
	require.Equal(t, <-twice, <-twice)
	require.Equal(t, strings.Repeat("paid with r/t1.1\n", 4), done())

	// Several that ask at once: each asks, whichever has the connection first.
	asks := make(chan error, 3)
	for range cap(asks) {
		go func() {
			_, _, err := (&dialogue{t: t, rig: d.rig, tool: "ask"}).call()
			asks <- err
		}()
	}
	for range cap(asks) {
		require.ErrorIs(t, <-asks, tool.ErrAsked)
	}
}

// A server may go on with a call that was cancelled. What that asks is not answered with
// what people have said to another.
func TestReplayKeepsCallsApart(t *testing.T) {
	env, done := counter(t)
	env[old] = "1"
	r := setup(t, "asks", mcp.Options{Elicit: mcp.ElicitReplay, Env: env})
	after := &dialogue{t: t, rig: r, tool: "after"}
	require.Equal(t, "Really?", after.asked().Text)
	after.answer(said("accept"))
	require.Equal(t, "From which account?", (&dialogue{t: t, rig: r, tool: "linger"}).asked().Text)
	require.Equal(t, "acceptnull", after.done())
	require.Equal(t, "paid with r/t1.1\n", done())
}

// A page that is wanted when a round is answered already takes nothing from that.
func TestPageAfterARound(t *testing.T) {
	env, done := counter(t)
	d := &dialogue{t: t, rig: setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env}), tool: "signed"}
	d.asked()
	d.answer(data(`{"pay":true}`)).asked()
	require.Contains(t, d.answer(said("giro")).asked().Text, "https://bank.example.com/in")
	require.NoError(t, os.WriteFile(env[effects]+".signed-in", nil, 0o600))
	require.Contains(t, d.answer(said("done")).asked().Text, "Sign in at the bank.") // its second round
	require.Equal(t, `second accept{"pay":true}accept{"account":"giro"} declinenull`, d.answer(said("decline")).done())
	require.Equal(t, "paid with r/t1.1\n", done())
}

// A deadline that passes is told from a person who calls himself so.
func TestDeadlineIsNobody(t *testing.T) {
	env, _ := counter(t)
	r := setup(t, "asks", mcp.Options{Elicit: mcp.ElicitRounds, Env: env})
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Sources: []tool.Source{r}, Agents: []agent.Definition{{
			Name: "payer", Model: "m", Tools: []string{"mcp:tickets"}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Hour)},
		}}},
		Model: testsuite.NewScript(testsuite.Reply{Match: "go", Calls: []testsuite.Call{{Tool: "tickets__pay"}}}, testsuite.Reply{Match: "decline", Text: "done"}),
	})
	run := s.Start("payer", "go", nil)
	run.Command(agent.RejectCommand{CommandHeader: agent.CommandHeader{By: "deadline"}, Request: run.Suspended().Requests[0].ID, Reason: "no"})
	require.Equal(t, "q-2", run.Suspended().Requests[0].ID)
	s.FastForward(90 * time.Minute)
	run.Command(agent.RejectCommand{Request: run.Suspended().Requests[0].ID, Reason: "no"})
	run.Completed()
	require.Equal(t, "second declinenullcancelnull declinenull", run.Transcript()[2].Parts[0].Result.Text)
}

// A server of old that is not said to be made again is told that nobody is there, and so
// is one that would speak the newest protocol if it was asked to.
func TestOldServersAreNotReplayed(t *testing.T) {
	for _, o := range []mcp.Options{{Elicit: mcp.ElicitRounds, Env: map[string]string{old: "1"}}, {}} {
		env, done := counter(t)
		if o.Env != nil {
			env[old] = "1"
		}
		o.Env = env
		d := &dialogue{t: t, rig: setup(t, "asks", o), tool: "ask"}
		require.Contains(t, d.done(), "nobody is there: client does not support elicitation")
		require.Contains(t, done(), "went on without")
	}
}

// A page that has to be opened before a call is one in every protocol.
func TestPageFirst(t *testing.T) {
	for _, o := range []mcp.Options{{}, {Elicit: mcp.ElicitRounds}, {Elicit: mcp.ElicitReplay}} {
		env, done := counter(t)
		env[old] = "1"
		o.Env = env
		d := &dialogue{t: t, rig: setup(t, "asks", o), tool: "page"}
		require.Contains(t, d.asked().Text, "https://bank.example.com/in?state=77")
		d.answer(said("done")).fails("still needs a person to open the page at bank.example.com, though somebody says that they have; nothing was done")

		d = &dialogue{t: t, rig: d.rig, tool: "page"}
		d.asked()
		require.NoError(t, os.WriteFile(env[effects]+".signed-in", nil, 0o600))
		require.Equal(t, "it is 12 EUR", d.answer(said("done")).done())
		require.Equal(t, "page\n", done())

		d = &dialogue{t: t, rig: d.rig, tool: "page"}
		require.NoError(t, os.Remove(env[effects]+".signed-in"))
		d.asked()
		d.answer(said("decline")).fails("needs a person to open a page first, and they did not: nothing was done")
	}
}

// A program that ends when it hears of the newest protocol is spoken to as others are.
func TestElicitOfServersThatKnowNoNewest(t *testing.T) {
	for _, kind := range []string{"strict", "modern", "chatty"} {
		require.Equal(t, "done", setup(t, kind, mcp.Options{Elicit: mcp.ElicitReplay}).ok(t, "one", ""), kind)
	}
	_, err := setup(t, "neither", mcp.Options{Elicit: mcp.ElicitRounds}).List(t.Context())
	require.ErrorContains(t, err, "(exit status 2)")
	require.ErrorContains(t, err, "no licence")
	require.ErrorContains(t, err, "; before that, with another handshake: the MCP server tickets ended while it started (exit status 1)")
	_, err = setup(t, "failing", mcp.Options{Elicit: mcp.ElicitRounds}).List(t.Context())
	require.ErrorContains(t, err, "exit status 4")
	require.NotContains(t, err.Error(), "before that", "it is said once")
	err = mcp.New("tickets", []string{"x"}, &mcp.Options{Elicit: "always"}).Err()
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.EqualError(t, err, `MCP server tickets: elicit is "always"; it is rounds or replay, or left out`)
}

// renewed is a source that keeps nothing from one call to the next, as after the end of
// its worker.
type renewed struct{ open func() *mcp.Server }

func (r renewed) Name() string { return "tickets" }

func (r renewed) List(ctx context.Context) ([]agent.ToolSpec, error) {
	s := r.open()
	defer s.Close()
	return s.List(ctx)
}

func (r renewed) Call(ctx context.Context, c *tool.Call) (string, error) {
	s := r.open()
	defer s.Close()
	return s.Call(ctx, c)
}

// A whole run that an MCP server asks in: it rests for weeks, and the server and all that
// spoke to it are others when it goes on. It has its effect once.
func TestRunThatIsAsked(t *testing.T) {
	type way struct {
		o    mcp.Options
		tool string
		web  bool
		want string
	}
	round := `second accept{"pay":true}accept{"account":"giro"} acceptnull`
	for name, w := range map[string]way{
		"rounds":             {mcp.Options{Elicit: mcp.ElicitRounds}, "pay", false, round},
		"rounds over HTTP":   {mcp.Options{Elicit: mcp.ElicitRounds}, "pay", true, round},
		"replayed":           {mcp.Options{Elicit: mcp.ElicitReplay, Env: map[string]string{old: "1"}}, "ask", false, `accept{"pay":true} accept{"account":"giro"}`},
		"replayed over HTTP": {mcp.Options{Elicit: mcp.ElicitReplay, Env: map[string]string{old: "1"}}, "ask", true, `accept{"pay":true} accept{"account":"giro"}`},
	} {
		t.Run(name, func(t *testing.T) {
			env, done := counter(t)
			for k, v := range w.o.Env {
				env[k] = v
			}
			var last *program
			open := func() *mcp.Server {
				o := w.o
				o.Env, o.AsRoot, o.Write = env, true, []string{os.TempDir()}
				if !w.web {
					env[serve] = "asks"
					return mcp.New("tickets", []string{os.Args[0]}, &o)
				}
				o.Env, o.Write = nil, nil
				return mcp.NewHTTP("tickets", "http://"+last.address, &o)
			}
			restart := func() {
				if last != nil {
					last.kill()
				}
				if w.web {
					last = launch(t, "127.0.0.1:0", serve+"=asks", effects+"="+env[effects], old+"="+env[old])
				}
			}
			restart()
			s := testsuite.New(t, &testsuite.Options{
				Worker: &worker.Options{Sources: []tool.Source{renewed{open}}, Agents: []agent.Definition{{
					Name: "payer", Model: "m", Tools: []string{"mcp:tickets"}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(90 * 24 * time.Hour)},
				}}},
				Model: testsuite.NewScript(testsuite.Reply{Match: "go", Calls: []testsuite.Call{{Tool: "tickets__" + w.tool}}}, testsuite.Reply{Match: "accept", Text: "done"}),
			})
			r := s.Start("payer", "go", nil)
			for n := 0; r.Wait().Status == agent.StatusSuspended; n++ {
				q := r.Suspended().Requests[0]
				require.Equal(t, "tickets__"+w.tool, q.Call.Tool)
				s.FastForward(3 * 7 * 24 * time.Hour)
				restart()
				r.Command(agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: q.ID, Data: json.RawMessage([]string{`{"pay":true}`, `{"account":"giro"}`, `"done"`}[n])})
			}
			r.Completed()
			messages := r.Transcript()
			require.Equal(t, w.want, messages[2].Parts[0].Result.Text)
			key := agent.IdempotencyKey(r.Status().Run, "t1.1")
			require.Equal(t, "paid with "+key+"\n", done())
			raw, err := json.Marshal(messages)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "a-consent", "what is kept is shown to nobody")
		})
	}
}
