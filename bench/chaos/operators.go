package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// operators are the people who send verbs to runs and remember the answers.
type operators struct {
	*client.Client
	temporal temporal.Client
	stored   store.Store
	desk     *desk
	plan     *plan
	newer    bool // there is a newer build
	report   *report
	readers  []*reader
	reading  sync.WaitGroup
	stop     context.CancelFunc // ends the readers

	mu        sync.Mutex
	posts     []post
	decisions []decision
	erasures  map[string]*deletedSession // by session
}

// post is a message or event that was sent, with its own token.
type post struct {
	token, session string
	verb           agent.Verb
	id             string
	became         string
}

// decision is an answer to a request. A session that was deleted and started again
// numbers its requests from the beginning: later means that the answer was given there.
type decision struct {
	session, request, by, became string
	later                        bool
}

// Results of a verb that was not refused with a code.
const (
	wasLeft = "left" // as a signal: nobody has answered
	wasLost = "lost" // it may have arrived or not
)

func newOperators(at place, p *plan, r *report) (*operators, error) {
	t, err := at.dial()
	if err != nil {
		return nil, err
	}
	st, err := at.remote()
	if err != nil {
		return nil, err
	}
	return &operators{
		Client: client.New(t, &client.Options{TaskQueue: queue, Store: st}), temporal: t, stored: st, desk: at.desk(), plan: p, report: r,
		newer: r.Builds > 1, erasures: map[string]*deletedSession{},
	}, nil
}

// begin starts a story. If the answer was lost it tries again, and then finds the session
// live.
func (c *operators) begin(ctx context.Context, s story) {
	o := &client.StartOptions{Session: s.Session}
	if s.Park {
		o.Park = &agent.Conditions{}
	}
	for ctx.Err() == nil {
		soon, cancel := context.WithTimeout(ctx, sayWithin)
		_, err := c.Start(soon, s.Agent, s.Text, o)
		cancel()
		became := c.became(s.Session, agent.Ack{Effect: agent.EffectAccepted}, err)
		if c.report.said("start", became); became != wasLost {
			return
		}
	}
}

const sayWithin = 10 * time.Second

// became returns the result of a verb.
func (c *operators) became(session string, ack agent.Ack, err error) string {
	var e *agent.Error
	switch {
	case err == nil:
		return string(ack.Effect)
	case errors.Is(err, agent.CodeTimeout), errors.Is(err, agent.CodeUnreachable), errors.Is(err, agent.CodeNoWorker):
		return wasLost
	case errors.As(err, &e):
		return string(e.Code)
	case errors.Is(err, context.Canceled):
		return wasLost
	}
	c.report.find(wrong, session, "", "a refusal has no code: %v", err)
	return "uncoded"
}

// token makes a message findable in the logs.
func (s plannedCommand) token() string { return fmt.Sprintf("(m-%d)", s.N) }
func (s plannedCommand) by() string    { return fmt.Sprintf("person-%d", s.N) }

func (c *operators) say(ctx context.Context, s plannedCommand) {
	ctx, cancel := context.WithTimeout(ctx, 3*sayWithin)
	defer cancel()
	root := c.plan.Stories[s.Story].Session
	switch s.Verb {
	case agent.VerbAnswer:
		c.decide(ctx, s)
	case doNext:
		_, err := c.Send(ctx, root, "more "+s.token(), &client.SendOptions{ID: "say" + s.token(), By: s.by()})
		// A send may start a run or leave a signal, so only its presence in the log is
		// checked.
		c.posted(s, root, c.became(root, agent.Ack{Effect: wasLeft}, err))
	case doFork:
		to := fmt.Sprintf("fork-%d", s.N)
		a, err := c.Fork(ctx, root, &client.ForkOptions{NewSession: true, Session: to, Text: "again " + s.token(), By: s.by()})
		c.forked(ctx, s, to, a, err)
	case doRetry:
		a, err := c.Retry(ctx, root, &client.ForkOptions{Text: "again " + s.token(), By: s.by()})
		c.forked(ctx, s, root, a, err)
	default:
		c.command(ctx, s)
	}
}

func (c *operators) forked(ctx context.Context, s plannedCommand, session string, a *client.PreparedRun, err error) {
	if err == nil {
		_, err = a.Start(ctx)
	}
	c.posted(s, session, c.became(session, agent.Ack{Effect: agent.EffectAccepted}, err))
}

// posted remembers a message.
func (c *operators) posted(s plannedCommand, session, became string) {
	c.report.said(string(s.Verb), became)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, post{s.token(), session, s.Verb, "say" + s.token(), became})
}

// command sends one of the verbs to a run of the story's tree.
func (c *operators) command(ctx context.Context, s plannedCommand) {
	session := c.target(ctx, s)
	o := agent.CommandHeader{ID: "say" + s.token(), By: s.by()}
	var command agent.Command
	switch s.Verb {
	case agent.VerbPause:
		command = agent.PauseCommand{CommandHeader: o, Reason: "chaos"}
	case agent.VerbInterrupt:
		command = agent.InterruptCommand{CommandHeader: o, Reason: "chaos", Grace: agent.Duration(time.Duration(s.Pick%4) * time.Second)}
	case agent.VerbResume:
		command = agent.ResumeCommand{CommandHeader: o, Message: "go on " + s.token(), FromSummary: s.Pick%7 == 0}
	case agent.VerbStop:
		command = agent.StopCommand{CommandHeader: o, Reason: "chaos", Deadline: agent.Duration(time.Duration(2+s.Pick%20) * time.Second)}
	case agent.VerbCancel:
		command = agent.CancelCommand{CommandHeader: o, Reason: "chaos"}
	case agent.VerbSend:
		modes := []agent.SendMode{agent.SendSteer, agent.SendQueue, agent.SendInterrupt}
		command = agent.SendCommand{CommandHeader: o, Text: "note " + s.token(), Mode: modes[s.Pick%len(modes)]}
	case agent.VerbEmit:
		command = agent.EmitCommand{CommandHeader: o, Topic: topic, Payload: json.RawMessage(`{"n":"` + s.token() + `"}`)}
	}
	if c.newer && s.Newer {
		switch o := command.(type) {
		case agent.SendCommand:
			command = newerSendCommand{o, "low"}
		case agent.PauseCommand:
			command = newerCommand{o}
		}
	}
	became := c.tell(ctx, session, command, s.Signal)
	if s.Twice {
		second := make(chan string)
		go func() { second <- c.tell(ctx, session, command, s.Signal) }()
		became = either(became, <-second)
	}
	c.posted(s, session, became)
}

// either returns the result of a verb that was sent twice with one id.
func either(a, b string) string {
	for _, became := range []string{string(agent.EffectAccepted), wasLeft, wasLost} {
		if a == became || b == became {
			return became
		}
	}
	return a
}

// tell sends a verb once, as a signal or update.
func (c *operators) tell(ctx context.Context, session string, command agent.Command, signal bool) string {
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	if signal {
		return c.became(session, agent.Ack{Effect: wasLeft}, signals.Signal(ctx, c.temporal, session, command))
	}
	ack, err := signals.Update(ctx, c.temporal, session, command)
	return c.became(session, ack, err)
}

// target picks a live run of the story's tree, most often the root. Most events go to
// daemons.
func (c *operators) target(ctx context.Context, s plannedCommand) string {
	at := s.Story
	if s.Verb == agent.VerbEmit && s.Pick%3 > 0 {
		at = min(at-at%daemons+daemons-1, len(c.plan.Stories)-1)
	}
	root := c.plan.Stories[at].Session
	if s.Pick%2 == 0 {
		return root
	}
	var live []string
	for l, err := range c.List(ctx, &client.ListOptions{Query: "ExecutionStatus = 'Running' AND RootWorkflowId = " + signals.Quote(root)}) {
		if err != nil {
			return root // the server is away, and the verb will notice
		}
		live = append(live, l.Session)
	}
	if len(live) == 0 {
		return root
	}
	return live[s.Pick%len(live)]
}

// decide answers a request that is open somewhere: some by two people at once, and some
// through the root run.
func (c *operators) decide(ctx context.Context, s plannedCommand) {
	var open []agent.Request
	for w, err := range c.Inbox(ctx, nil) {
		if err != nil {
			c.report.said("answer", wasLost)
			return
		}
		open = append(open, w.Request)
	}
	if len(open) == 0 {
		return
	}
	req := open[s.Pick%len(open)]
	people := []string{s.by()}
	if s.Twice {
		people = append(people, s.by()+"-too")
	}
	var both sync.WaitGroup
	for i, by := range people {
		both.Go(func() { c.answer(ctx, req, s.Pick/7+i, by, s.Signal, s.Pick%5 == 0) })
	}
	both.Wait()
}

// answer sends one of the answers that a request may have.
func (c *operators) answer(ctx context.Context, req agent.Request, choice int, by string, signal, through bool) {
	session, id := req.Session, req.ID
	if top, below, ok := strings.Cut(session, "/"); ok && through {
		session, id = top, below+"/"+id
	}
	o := agent.CommandHeader{By: by}
	var command agent.Command
	switch {
	case req.Type == agent.RequestApproval && choice%3 == 0:
		command = agent.RejectCommand{CommandHeader: o, Request: id, Reason: "chaos"}
	case req.Type == agent.RequestApproval:
		command = agent.ApproveCommand{CommandHeader: o, Request: id, Digest: req.Digest}
	case req.Type == agent.RequestClientTool:
		command = agent.AnswerCommand{CommandHeader: o, Request: id, Data: json.RawMessage(`{"signed":true}`)}
	case req.Type == agent.RequestLimit && choice%2 == 0:
		command = agent.AnswerCommand{CommandHeader: o, Request: id, Text: "stop"}
	case req.Type == agent.RequestLimit:
		command = agent.AnswerCommand{CommandHeader: o, Request: id, Text: "continue"}
	case req.Step != "" && len(req.Choices) > 0:
		text, err := c.desk.outcomeChoice(req, choice)
		if err != nil {
			c.report.find(wrong, req.Session, req.Run, "the journal can't be read: %v", err)
		}
		command = agent.AnswerCommand{CommandHeader: o, Request: id, Text: text}
	default:
		command = agent.AnswerCommand{CommandHeader: o, Request: id, Text: "This way, says " + by}
	}
	became := c.tell(ctx, session, command, signal)
	c.report.said(string(command.Verb()), became)
	if session != req.Session && became == string(agent.EffectAccepted) {
		became = wasLeft // the root only passed it on
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	root, _, _ := strings.Cut(req.Session, "/")
	c.decisions = append(c.decisions, decision{req.Session, req.ID, by, became, c.erasures[root] != nil})
}
