package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
)

// decider is one answer, approve or reject.
type decider struct {
	*cli
	verb          agent.Verb
	request       string
	choice        string
	result, edit  string
	always, wait  bool
	reason, note  string
	by, tokenFile string
}

// decision is an answer to one request, with the person who gives it.
type decision struct {
	agent.AnswerTo
	by, token string
}

const answerHelp = `
On a terminal the command shows the open requests with their arguments and asks you.
Without a terminal, name the request with --request. inbox, show, run and wait print
its id.

The command waits up to 15s for a worker. With --wait, the exit status is that of
fermata run.`

func (d *decider) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + "\n" + answerHelp, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.verb == agent.VerbAnswer && len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a session")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := d.said(append(args, "")[1])
			if err == nil && d.request != "" && said.empty() && (!d.terminal || d.JSON) {
				err = d.unsaid()
			}
			if err != nil {
				return err
			}
			return d.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return d.do(cmd.Context(), runs, args[0], said)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.request, "request", "", "id of the request, such as q-7, or pay-1/q-7 in a sub-agent's run")
	d.tokenFlag(cmd, &d.tokenFile)
	d.byFlag(cmd, &d.by)
	f.BoolVar(&d.wait, "wait", false, "wait until the run that asked is suspended or ended, and print the outcome")
	d.jsonFlag(cmd, "print the run's answer as one line of JSON; with --wait, the outcome")
	return cmd
}

// said returns the decision in the flags; it has no answer if they have none.
func (d *decider) said(text string) (decision, error) {
	out := decision{by: byOr(d.by)}
	var err error
	if out.token, err = tokenOf(d.tokenFile); err != nil {
		return out, err
	}
	switch d.verb {
	case agent.VerbAnswer:
		out.Answer, err = d.answerOrder(text)
	case agent.VerbReject:
		if d.reason != "" {
			out.Reject = &agent.RejectCommand{Reason: d.reason}
		}
	default:
		if d.request != "" || d.edit != "" || d.always || d.note != "" {
			out.Approve, err = d.approveOrder()
		}
	}
	return out, err
}

// empty reports whether no answer was given.
func (d decision) empty() bool { return d.Answer == nil && d.Approve == nil && d.Reject == nil }

func (d *decider) do(ctx context.Context, runs *fermata.Client, session string, said decision) error {
	if d.request == "" {
		return d.pick(ctx, runs, session, said)
	}
	session, d.request = askedBelow(session, d.request)
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	// A worker that was just started may not poll yet; reading a request may be repeated.
	q, err := connect.RetryUntilWorker(soon, d.Connector, func() (agent.Request, error) { return runs.Request(soon, session, d.request) })
	if err != nil {
		return d.elsewhere(ctx, runs, session, noAnswer(session, err))
	}
	if said.empty() {
		if said.AnswerTo, err = d.console().Ask(ctx, q); err != nil {
			return nothingSaid(err)
		}
	}
	return d.decideAndTell(ctx, runs, q, said)
}

// askedBelow returns the session that asks, if the request is named from an ancestor:
// pay-1/q-7, or trip-42/pay-1/q-7.
func askedBelow(session, request string) (asks, id string) {
	at := strings.LastIndexByte(request, '/')
	if at < 0 {
		return session, request
	}
	below := strings.TrimPrefix(request[:at], session+"/")
	return session + "/" + below, request[at+1:]
}

// unsaid says what is missing of an answer.
func (d *decider) unsaid() error {
	if d.verb == agent.VerbReject {
		return agent.Errorf(agent.CodeInvalidInput, "--reason is required: the model reads it")
	}
	return agent.Errorf(agent.CodeInvalidInput, "an answer is required: a TEXT, --choice N or --result JSON")
}

// elsewhere adds to the error of a request that is not open in which sub-agent a request
// of that name is open.
func (d *decider) elsewhere(ctx context.Context, runs *fermata.Client, session string, err error) error {
	if !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	for _, q := range below(ctx, runs, session) {
		if q.ID == d.request {
			return agent.Errorf(agent.CodeNotFound, "%w; one of that name is open in %s: name that session", err, q.Session)
		}
	}
	return err
}

func (d *decider) decideAndTell(ctx context.Context, runs *fermata.Client, q agent.Request, said decision) error {
	// Only now: the choices are known when the request is read.
	if d.choice != "" {
		n, err := chosen(q, d.choice)
		if err != nil {
			return err
		}
		said.Answer.Choice = &n
	}
	ack, err := d.decide(ctx, runs, q, said)
	if err != nil {
		return err
	}
	what := "answered"
	switch {
	case said.Approve != nil:
		what = "approved"
	case said.Reject != nil:
		what = "rejected"
	}
	if !d.wait || !d.JSON {
		d.printAck(ack, q.ID+" "+what)
	}
	if !d.wait {
		return nil
	}
	return d.rests(ctx, runs, runs.RunOf(ack))
}

// decide sends an answer to the run that asked.
func (c *cli) decide(ctx context.Context, runs *fermata.Client, q agent.Request, d decision) (ack agent.Ack, err error) {
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	switch {
	case d.Approve != nil:
		o := &fermata.ApproveOptions{Always: d.Approve.Always, Note: d.Approve.Note, By: d.by, Token: d.token}
		if len(d.Approve.Arguments) > 0 {
			o.Arguments = d.Approve.Arguments
		}
		ack, err = runs.Approve(ctx, q, o)
	case d.Reject != nil:
		ack, err = runs.Reject(ctx, q, d.Reject.Reason, &fermata.RejectOptions{By: d.by, Token: d.token})
	default:
		a := d.Answer
		ack, err = runs.Answer(ctx, q, a.Text, &fermata.AnswerOptions{Choice: a.Choice, Data: a.Data, By: d.by, Token: d.token})
	}
	return ack, noAnswer(q.Session, err)
}

// pick shows the open requests of a session and its sub-agents, and asks the person which
// one to answer, and how. Without a person it names the open requests.
func (d *decider) pick(ctx context.Context, runs *fermata.Client, session string, said decision) error {
	open, err := d.open(ctx, runs, session)
	switch {
	case err != nil:
		return err
	case len(open) == 0:
		return agent.Errorf(agent.CodeNotFound, "session %s asks nothing, and nor does any below it", session)
	case !d.terminal || d.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "--request is required: name the request that you saw; open: %s", openNames(open, session)).WithPath("request")
	}
	con := d.console()
	q := open[0]
	if len(open) > 1 {
		for _, q := range open {
			con.Show(q)
			con.Print("")
		}
		if q, err = con.Choose(ctx, open); err != nil {
			return nothingSaid(err)
		}
	}
	if said.empty() {
		if said.AnswerTo, err = con.Ask(ctx, q); err != nil {
			return nothingSaid(err)
		}
		return d.decideAndTell(ctx, runs, q, said)
	}
	// The person gave an answer for a request that they have not seen yet. Show it, and
	// confirm.
	if len(open) == 1 {
		con.Show(q)
	}
	sure, err := con.Yes(ctx, string(d.verb)+" "+q.ID+"?")
	if err == nil && !sure {
		err = console.ErrLater
	}
	if err != nil {
		return nothingSaid(err)
	}
	return d.decideAndTell(ctx, runs, q, said)
}

// nothingSaid returns the error for a person who decides to answer nothing.
func nothingSaid(err error) error {
	if errors.Is(err, console.ErrLater) || errors.Is(err, io.EOF) {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was said, and nothing was sent")
	}
	return err
}

// open lists the open requests of a session and its sub-agents.
func (d *decider) open(ctx context.Context, runs *fermata.Client, session string) ([]agent.Request, error) {
	run, err := runs.Get(ctx, session)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	s, err := connect.RetryUntilWorker(soon, d.Connector, func() (*agent.Suspension, error) { return run.Suspension(soon) })
	if err != nil {
		return nil, noAnswer(session, err)
	}
	var list []agent.Request
	if s != nil {
		list = s.Requests
	}
	whole, _ := requestsInFull(ctx, runs, below(ctx, runs, session))
	return append(list, whole...), nil
}

// openNames lists requests by the names to answer them with.
func openNames(open []agent.Request, session string) string {
	var names []string
	for _, q := range open {
		name := q.ID + " (" + string(q.Type)
		if q.Call != nil {
			name += ", " + q.Call.Tool
		}
		if q.Session != session {
			name += ", in session " + q.Session
		}
		names = append(names, name+")")
	}
	return strings.Join(names, ", ")
}
