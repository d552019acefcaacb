package main

import (
	"context"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

const chatHelp = `a line is a message: it steers a live run, or starts the next run
  /queue TEXT      a message for when the run would end
  /pause [REASON]  hold the run after its current turn
  /resume [TEXT]   continue the run, with a message
  /stop [REASON]   end the run with a handoff
  /transcript      show all messages
  /quit            leave; a live run continues (also Ctrl-D)
  //TEXT           a message that begins with a slash
  @FILE            in a line: show this file; @"my file.png" with spaces, @@ for an @`

// command does what a line with a slash says.
func (t *chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	// A half-printed line of the reply must not join the command's output.
	t.to.Break()
	switch name {
	case "/quit":
		return errDetached
	case "/help":
		t.console.Print("%s", untrusted.Block(chatHelp))
	case "/queue":
		return t.message(ctx, rest, agent.SendQueue)
	case "/transcript":
		messages, err := t.runs.Transcript(ctx, t.session)
		if err != nil {
			t.failed(ctx, err)
			return ctx.Err()
		}
		t.Messages(messages)
	case "/pause", "/resume", "/stop":
		return t.verb(ctx, name, rest)
	default:
		t.to.Note("unknown command %s; /help lists the commands", name)
	}
	return nil
}

// verb sends a verb other than a message to the live run.
func (t *chat) verb(ctx context.Context, name, text string) error {
	if t.run == nil {
		t.to.Note("no run is live; a message starts one")
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	var ack agent.Ack
	var files []fermata.FileInput
	var err error
	switch name {
	case "/pause":
		ack, err = t.run.Pause(soon, text, &fermata.PauseOptions{By: env.User()})
	case "/stop":
		ack, err = t.run.Stop(soon, text, &fermata.StopOptions{By: env.User()})
	default:
		var resumed *fermata.ResumedRun
		if text, files, err = t.filesIn(text); err == nil {
			resumed, err = t.run.Resume(soon, &fermata.ResumeOptions{Message: text, Files: files, By: env.User()})
		}
		if err == nil {
			ack = resumed.Ack
		}
	}
	if err != nil {
		t.failed(ctx, t.noAnswer(t.session, err))
		return ctx.Err()
	}
	t.noteShown(files)
	// The verb changes what the run waits for, so the next suspension is shown again.
	t.after, t.rest = 0, ""
	t.to.Note("%s %s, it is %s", strings.TrimPrefix(name, "/"), ack.Effect, statusText(ack))
	return nil
}
