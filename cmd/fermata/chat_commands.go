package main

import (
	"context"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

const chatHelp = `a line is a message: it steers the agent while that works, and else begins its next run
  /queue TEXT      a message for when it would be done
  /pause [REASON]  hold it when its turn has ended
  /resume [TEXT]   let it go on, with a message
  /stop [REASON]   end its run with a handoff
  /transcript      all that was said
  /quit            leave; a live run goes on (Ctrl-D does it too)
  //TEXT           a message that begins with a slash`

// command does what a line with a slash says.
func (t *chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
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
		t.to.Note("there is no %s; /help lists what there is", name)
	}
	return nil
}

// verb says something to the live run that is no message.
func (t *chat) verb(ctx context.Context, name, text string) error {
	if t.run == nil {
		t.to.Note("no run is live; a message begins one")
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	var ack agent.Ack
	var err error
	switch name {
	case "/pause":
		ack, err = t.run.Pause(soon, text)
	case "/stop":
		ack, err = t.run.Stop(soon, text, 0)
	default:
		ack, err = t.run.Resume(soon, &fermata.ResumeOptions{Message: text, By: env.User()})
	}
	if err != nil {
		t.failed(ctx, noAnswer(t.session, err))
		return ctx.Err()
	}
	t.after, t.rest = 0, ""
	t.to.Note("%s %s, it is %s", strings.TrimPrefix(name, "/"), ack.Effect, statusText(ack))
	return nil
}
