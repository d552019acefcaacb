package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/live"
)

// chat is a conversation over the runs of one session.
type chat struct {
	*conversation
	script bool  // nobody is at the terminal: a line is read when the session is suspended or ended
	exit   error // the exit status of the last run
}

func (c *cli) chatCommand() *cobra.Command {
	r := &runner{cli: c, live: live.NewHub()}
	cmd := &cobra.Command{
		Use:   "chat [AGENT]",
		Short: "Chat with an agent",
		Long: `Chat is a conversation in one session. Each message starts a run, or goes to the
run that is live. What you type while the agent works steers it: the agent reads
it before its next turn. When the agent asks something, your next line is the
answer. A line that starts with a slash is a command (/help lists them). Two
slashes start a message with a slash.

A message or answer shows the files that it names with @, as in "What is wrong in
@page.png?". Use quotes for spaces (@"my page.png"). If there is no such file, the
line is not sent. An @ in a mail address or before a name stays text, and so does
@@, as one @. Without a terminal each @ stays text.

Ctrl-D or /quit leaves the chat, and a live run continues. To come back, use
fermata chat --session ID without an AGENT. Ctrl-C holds a live run and asks what
to do. Without a live run, Ctrl-C leaves the chat.

If standard input is no terminal, chat reads a line whenever the session is
suspended or ended. The line answers a request, or is the next message.

The exit status is that of the last run (see fermata run), and 3 if it continues.`,
		Example: `  fermata chat reviewer
  fermata chat reviewer --session review-7
  fermata chat --session review-7
  printf 'What is open?\nPay the first one\n' | fermata chat payer --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && r.session != "" {
				return nil
			}
			return exactArgs(1, "an agent, or --session with an existing session")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.agent = append(args, "")[0]
			if r.file, err = agentsFile(cmd.Context(), r.agents); err != nil {
				return err
			}
			return r.chat(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	f.StringVar(&r.session, "session", "", "the session to come back to, or the name of a new one")
	c.jsonFlag(cmd, "print each event as a line of JSON, and the outcome at the end of each run")
	return cmd
}

func (r *runner) chat(ctx context.Context) error {
	if r.agent != "" {
		if err := agent.CheckName(r.agent); err != nil {
			return err
		}
		if err := r.checkAgent(r.file, r.agent); err != nil {
			return err
		}
	}
	// Version 7 ids sort by time, so listings show the latest session last.
	r.session = cmp.Or(r.session, uuid.Must(uuid.NewV7()).String())
	if err := agent.CheckSession(r.session); err != nil {
		return err
	}
	// Before the client is made: its calls are counted too.
	if err := r.observe(ctx); err != nil {
		return err
	}
	defer r.close()
	if err := r.reach(ctx); err != nil {
		return err
	}
	// From here on Ctrl-C belongs to the conversation, and does not end the command.
	pressed, giveBack := r.keys.Take()
	defer giveBack()
	t := r.newChat(pressed)
	if err := t.openSession(ctx); err != nil {
		return err
	}
	if err := r.findWorker(ctx); err != nil {
		return err
	}
	var err error
	if r.pieces, err = r.Subscribe(ctx, r.server, r.live, r.session); err != nil {
		return err
	}
	defer r.pieces.Close()
	return t.left(ctx, t.loop(ctx))
}

func (r *runner) newChat(pressed <-chan struct{}) *chat {
	t := &chat{script: !r.terminal, conversation: &conversation{
		runner: r, pressed: pressed, passed: map[string]bool{}, help: "/help lists the commands",
	}}
	if r.JSON {
		r.asker = console.NewConsole(r.in, r.Err, pressed) // standard output has only the JSON lines
		t.to = quiet{jsonLines{r.cli, nil, nil}}
	} else {
		t.to = r.Printer()
	}
	t.console, t.readFiles = r.console(), t.filesIn
	t.console.SetInterrupt(pressed)
	// A script has no line that nobody asked for: its lines are read when the session rests.
	if typed := t.console.Buffer(t.script); !t.script {
		t.typed = typed
	}
	return t
}

// quiet prints events for programs; it has no unfinished lines.
type quiet struct{ jsonLines }

func (quiet) Break() {}

// openSession finds the session's agent, and shows the state of an existing session.
func (t *chat) openSession(ctx context.Context) error {
	t.elsewhere = t.FollowQueue(ctx, t.server, t.session)
	run, stands, err := t.standing(ctx, t.server, t.runs, t.session)
	// A new session does not exist on the server until its first message starts a run.
	if errors.Is(err, agent.CodeNotFound) && t.runner.agent != "" {
		t.to.Note("session %s; /help lists the commands", t.session)
		return nil
	}
	if errors.Is(err, agent.CodeNotFound) {
		return agent.Errorf(agent.CodeNotFound, "%w; to start it, name an agent: fermata chat AGENT --session %s", err, t.session)
	}
	if err != nil {
		return err
	}
	// What was recorded before is shown by showRecent; follow only what comes.
	t.runner.agent = cmp.Or(t.runner.agent, stands.Agent)
	t.followed.Seq = stands.Seq
	if !stands.Status.Ended() {
		t.watchRun(run)
		// The start of a reply that already streams was missed, so the printer must not expect it.
		if to, ok := t.to.(*render.Printer); ok {
			to.StartMidTurn(stands.Turn, slices.ContainsFunc(stands.InFlight, func(d agent.InFlight) bool { return d.Kind == agent.InFlightModel }))
		}
	} else {
		t.exit = exitOf(stands.Status)
	}
	t.to.Note("session %s · %s · %s", t.session, stands.Agent, stands.Status)
	return t.showRecent(ctx)
}

// showRecent shows the last messages.
func (t *chat) showRecent(ctx context.Context) error {
	const shown = 6
	messages, err := t.runs.Transcript(ctx, t.session)
	switch {
	// The transcript is only a help here; without it the conversation can continue.
	case errors.Is(err, agent.CodeNoWorker), errors.Is(err, agent.CodeTimeout), errors.Is(err, agent.CodeNotFound):
		t.to.Note("earlier messages can't be shown: %v", err)
		return nil
	case err != nil || t.JSON:
		return err
	}
	if n := len(messages) - shown; n > 0 {
		t.to.Note("%s before, see %s", counted(n, "message"), t.CommandLine("transcript %s", t.session))
		messages = messages[n:]
	}
	t.Messages(messages)
	return nil
}

// watchRun changes to a run that begins or continues.
func (t *chat) watchRun(run *fermata.Run) {
	// Events are numbered across the session's runs, so only the position is kept.
	t.run, t.followed = run, follow.State{Seq: t.followed.Seq}
	t.holding, t.after, t.rest = false, 0, ""
	clear(t.passed)
	if t.JSON {
		t.to = quiet{jsonLines{t.cli, run, nil}}
	} else {
		t.to = t.Printer() // a printer knows the turns of one run
	}
}

// loop goes from run to run until the person leaves.
func (t *chat) loop(ctx context.Context) error {
	for {
		var err error
		switch {
		case t.run == nil:
			err = t.nextMessage(ctx)
		case t.script && t.after > 0: // the run is suspended, and asks nothing
			err = t.line(ctx)
		default:
			err = t.followRun(ctx)
		}
		if command := console.Command(""); errors.As(err, &command) {
			err = t.command(ctx, string(command))
		}
		if err != nil {
			return err
		}
	}
}

// followRun follows a run to the next thing to do.
func (t *chat) followRun(ctx context.Context) error {
	o, err := t.step(ctx)
	switch {
	case errors.Is(err, follow.ErrTyped):
		return t.handleTyped(ctx)
	case err != nil:
		return err
	case o != nil:
		t.over(ctx, o)
	}
	return nil
}

// over shows how a run ended.
func (t *chat) over(ctx context.Context, o *agent.Outcome) {
	t.exit = t.printEnd(ctx, t.runs, o, t.to)
	t.followed.Seq = max(t.followed.Seq, o.Seq)
	t.run = nil
}

// handleTyped sends to the run what was typed while it worked.
func (t *chat) handleTyped(ctx context.Context) error {
	for {
		// Several lines may be buffered, and one signal stands for all of them.
		line, err := t.console.Typed()
		switch {
		case errors.Is(err, console.ErrNothing):
			return nil
		case err != nil:
			return err
		}
		if err := t.message(ctx, line, agent.SendSteer); err != nil {
			return err
		}
	}
}

// nextMessage asks for the message that begins the next run.
func (t *chat) nextMessage(ctx context.Context) error {
	// Lines that were typed before the run ended come first.
	if !t.script {
		if err := t.handleTyped(ctx); err != nil || t.run != nil {
			return err
		}
	}
	return t.line(ctx)
}

// line asks for a message.
func (t *chat) line(ctx context.Context) error {
	prompt := "> "
	if t.script {
		prompt = ""
	}
	// Ctrl-C at an empty prompt leaves the chat; no run is held by it.
	line, err := t.console.Line(ctx, prompt)
	if errors.Is(err, console.ErrInterrupted) {
		return errDetached
	}
	if err != nil {
		return err
	}
	return t.message(ctx, line, agent.SendSteer)
}

// message sends a message to the session. If it can't be sent now, message says so and
// the conversation continues.
func (t *chat) message(ctx context.Context, text string, mode agent.SendMode) error {
	if text == "" {
		return nil
	}
	text, files, err := t.filesIn(text)
	if err != nil {
		t.failed(ctx, err)
		return ctx.Err()
	}
	// Bounded: a conversation must not hang on a run without a worker.
	soon, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	line, run, err := t.deliver(soon, t.runs, t.session, text, &fermata.SendOptions{Mode: mode, By: env.User(), Agent: t.runner.agent, Files: files})
	// The message was refused, not the conversation. Only a cancelled context ends it.
	if err != nil {
		t.failed(ctx, err)
		return ctx.Err()
	}
	t.noteShown(files)
	// The suspension may change now, so it is shown and asked again.
	t.after, t.rest = 0, ""
	switch {
	// A signal has no run id yet. The listing finds the run when a worker takes the message.
	case line.Later:
		t.to.Note("no worker answers; the message waits for one")
	// The message may have started the next run, or another client may have.
	case t.run == nil || line.Run != t.run.ID:
		t.watchRun(run)
	}
	return nil
}

// left says how to come back, and returns the exit status.
func (t *chat) left(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, errDetached):
		// Only the end of input, a detach and a cancelled context are ways to leave.
		return err
	case t.run != nil:
		err = t.conversation.left(ctx, err)
	case ctx.Err() != nil:
		err = exitInterrupted
	default:
		err = t.exit
	}
	t.Note("come back with %s", t.CommandLine("chat --session %s", t.session))
	return err
}
