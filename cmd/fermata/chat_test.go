package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// talker knows what to say to what it is told.
func talker() role {
	return role{
		agent.Definition{Name: "talker", Tools: []string{agent.AskUserTool, "pay", "dig"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}},
		[]testsuite.Reply{
			{Match: "^hello$", Text: "Good day."},
			{Match: "^work$", Calls: []testsuite.Call{{Tool: "dig"}}},
			{Match: "^(faster|/etc/hosts)$", Text: "I hurry."},
			{Match: "^later$", Text: "Now it is later."},
			{Match: "^ask$", Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which one?"}}}},
			{Match: "^pay$", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 3}}}},
			{Match: "You are being stopped", Text: `{"summary":"I stopped"}`},
			{Match: "(?s).*", Text: "I see."},
		},
	}
}

// dig is a tool that takes as long as the test wants.
func dig() (t tool.Tool, done func()) {
	dug := make(chan struct{})
	return tool.New("dig", "digs", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		select {
		case <-dug:
		case <-ctx.Done():
		}
		return "dug", nil
	}, nil), func() { dug <- struct{}{} }
}

// idle is dig for those who do not dig.
func idle() tool.Tool { t, _ := dig(); return t }

// script runs a command with these lines as its input, and no terminal.
func (s *stage) script(lines []string, args ...string) ran {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := newCLI(strings.NewReader(strings.Join(lines, "\n")), &out, &errs).execute(s.t.Context(), append(args, s.flags...))
	return ran{code, out.String(), errs.String()}
}

// A chat is one session, in which a person talks, answers and gives orders
// (HA-118, HA-120).
func TestChatAtTheTerminal(t *testing.T) {
	slow, dug := dig()
	s := scripted(t, talker()).works(pay(), slow)
	id := s.session("a")
	d := s.sits("chat", "talker", "--session", id)
	d.sees("session "+id).answers("> ", "hello").sees("Good day.").sees("completed · 1 turn")
	d.answers("> ", "/help").sees("/queue TEXT").answers("> ", "/what").sees("unknown command /what")
	d.answers("> ", "/pause").sees("no run is live")

	// What is asked is asked here, and a command is no answer.
	d.answers("> ", "ask").sees("Which one?").answers("your answer: ", "/transcript").sees("== assistant").answers("your answer: ", "the first")
	d.sees("I see.").sees("completed")
	d.answers("> ", "pay").answers("approve? ", "y").sees("paid 3 EUR").sees("completed")

	// What is typed while it works steers it.
	d.answers("> ", "work").sees("→ dig").types("/pause so wait").sees("it is suspending")
	dug()
	d.sees("held (pause): so wait; /help lists the commands")
	d.types("/queue later").types("/resume faster").sees("(said) faster").sees("Now it is later.").sees("completed")
	d.answers("> ", "//etc/hosts").sees("I hurry.").sees("completed")
	d.answers("> ", "work").sees("→ dig").types("/stop that will do").sees("stop accepted")
	dug()
	d.sees("handed over").sees("stopped")
	d.answers("> ", "/quit")
	r := d.ends(4)
	require.Contains(t, r.err, "come back with fermata chat --session "+id)
	runs := outlines[agent.RunRecord](t, s.run("runs", id, "--json").out)
	require.Len(t, runs, 6, "all in one session")
}

// Who leaves leaves the run alive, and comes back to what was said and asked
// (PA-77, PA-80).
func TestChatComesBack(t *testing.T) {
	slow, dug := dig()
	s := scripted(t, talker()).works(pay(), slow)
	id := s.session("a")
	d := s.sits("chat", "talker", "--session", id)
	d.answers("> ", "ask").sees("your answer: ")
	require.NoError(t, d.typed.Close())
	r := d.ends(3)
	require.Contains(t, r.err, "left; it continues by itself")
	require.Contains(t, r.err, "come back with fermata chat --session "+id+" --address ")
	s.fails(6, "to start it, name an agent: fermata chat AGENT --session", "chat", "--session", s.session("b"))
	s.fails(2, "needs an agent, or --session with an existing session", "chat")

	d = s.sits("chat", "--session", id)
	d.sees("session "+id+" · talker · suspended").sees("== user").sees("ask").sees("Which one?").answers("your answer: ", "the second")
	d.sees("I see.").sees("completed").answers("> ", "work").sees("→ dig").types("faster")
	require.Eventually(t, func() bool {
		run, err := s.Get(t.Context(), id)
		require.NoError(t, err)
		status, err := run.Status(t.Context())
		return err == nil && status.Queued > 0
	}, patience, 10*time.Millisecond)
	dug()
	d.sees("I hurry.").sees("completed").sees("> ").presses()
	d.ends(0)
}

// An answer that is given elsewhere takes the question away (OA-119).
func TestChatHearsAnAnswerGivenElsewhere(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	id := s.session("a")
	d := s.sits("chat", "talker", "--session", id)
	d.answers("> ", "ask").sees("your answer: ")
	require.Zero(t, s.run("answer", id, "the third", "--request", "q-1", "--by", "bo").exit)
	d.sees("q-1 answered by bo").sees("I see.").sees("completed").answers("> ", "hello").sees("Good day.").sees("completed")
	d.answers("> ", "/quit")
	d.ends(0)
}

// Without a terminal lines are read as they are wanted.
func TestChatByScript(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	id := s.session("a")
	r := s.script([]string{"hello", "ask", "the first", "pay", "n", "too much", "hello", ""}, "chat", "talker", "--session", id)
	require.Zero(t, r.exit, r.out+r.err)
	require.Equal(t, 2, strings.Count(r.out, "Good day.\ncompleted"), r.out)
	require.Contains(t, r.out, "rejected Not executed: it was not approved. too much")
	require.Len(t, outlines[agent.RunRecord](t, s.run("runs", id, "--json").out), 4)

	r = s.script([]string{"pay"}, "chat", "--session", id, "--json")
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.err, "fermata approve "+id+" --request q-")
	require.Contains(t, r.err, "approve? ")
	for line := range strings.Lines(r.out) {
		require.Equal(t, id, lastLine[map[string]any](t, line)["session"])
	}
	r = s.script([]string{"y", "hello"}, "chat", "--session", id, "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "Good day.", lastLine[agent.Outcome](t, r.out).Text)
}

// All of it goes without a server of one's own: the commands that need one start it
// with the worker, and the others read the store.
func TestSessionsOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	chat := b.command("chat", "reader", "--session", "s-1")
	chat.Stdin = strings.NewReader("What do the notes say?\n")
	out, err := chat.Output()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "session s-1; /help lists the commands\nreader · script:reader.yaml\n│ Let me look.\n→ fs_read")
	require.Contains(t, string(out), "The notes say: call the till.\ncompleted · 2 turns")

	r := b.run("checkpoints", "s-1", "--json")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "no Temporal server runs: this is what the store has")
	turns := lastLine[fermata.CheckpointPage](t, r.out)
	require.Equal(t, 3, turns.Total)
	r = b.run("fork", "s-1", turns.Items[1].ID)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "The notes say: call the till.\ncompleted")
	require.Contains(t, b.run("runs", "s-1").out, " "+turns.Items[1].ID+"\n")
	r = b.elsewhere().run("fork", "s-1", "--message", "x")
	require.Equal(t, 5, r.exit, "no agents here, and no server")
	r = b.run("delete", "s-1", "--yes")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, 6, b.run("delete", "s-1", "--yes").exit)
}
