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
	verb            agent.Verb
	request         string
	choice          string
	result, edit    string
	always, wait    bool
	alwaysInSession bool
	reason, note    string
	paths           []string // of files that go with an answer
	by, tokenFile   string
}

// decision is an answer to one request, with the person who gives it.
type decision struct {
	agent.AnswerTo
	files     []fermata.FileInput
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
			// A flag that is wrong is reported before a server is looked for.
			given, err := d.decisionFromFlags(append(args, "")[1])
			// With a named request and nobody to ask, the answer must be in the flags.
			if err == nil && d.request != "" && given.empty() && (!d.terminal || d.JSON) {
				err = d.missingAnswer()
			}
			if err != nil {
				return err
			}
			return d.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return d.do(cmd.Context(), runs, args[0], given)
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

// decisionFromFlags returns the decision in the flags; it has no answer if they have none.
func (d *decider) decisionFromFlags(text string) (decision, error) {
	out := decision{by: byOr(d.by)}
	var err error
	if out.token, err = tokenOf(d.tokenFile); err != nil {
		return out, err
	}
	switch d.verb {
	case agent.VerbAnswer:
		if out.files, err = fileInputs(d.paths); err == nil {
			out.Answer, err = d.answerOrder(text)
		}
	case agent.VerbReject:
		// Without a reason a terminal asks for one, so nothing is decided yet.
		if d.reason != "" {
			out.Reject = &agent.RejectCommand{Reason: d.reason}
		}
	default:
		if d.request != "" || d.edit != "" || d.always || d.alwaysInSession || d.note != "" {
			out.Approve, err = d.approveOrder()
		}
	}
	return out, err
}

// empty reports whether no answer was given.
func (d decision) empty() bool { return d.Answer == nil && d.Approve == nil && d.Reject == nil }

func (d *decider) do(ctx context.Context, runs *fermata.Client, session string, given decision) error {
	if d.request == "" {
		return d.pick(ctx, runs, session, given)
	}
	// The id may name a sub-agent's request by its path.
	session, d.request = askedBelow(session, d.request)
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	// A worker that was just started may not poll yet; reading a request may be repeated.
	q, err := connect.RetryUntilWorker(soon, d.Connector, func() (agent.Request, error) { return runs.Request(soon, session, d.request) })
	if err != nil {
		// The same id may be open in a sub-agent, which is what the person then meant.
		return d.elsewhere(ctx, runs, session, given, d.noAnswer(session, err))
	}
	if given.empty() {
		if given.AnswerTo, err = d.console().Ask(ctx, q); err != nil {
			return noAnswerGiven(err)
		}
	}
	return d.decideAndPrint(ctx, runs, q, given)
}

// askedBelow returns the session that asks, if the request is named from an ancestor:
// pay-1/q-7, or trip-42/pay-1/q-7.
func askedBelow(session, request string) (asks, id string) {
	at := strings.LastIndexByte(request, '/')
	// The last slash: ids have none, but sessions of sub-agents do.
	if at < 0 {
		return session, request
	}
	// The path may start with the session or be relative to it.
	below := strings.TrimPrefix(request[:at], session+"/")
	return session + "/" + below, request[at+1:]
}

// missingAnswer says what is missing of an answer.
func (d *decider) missingAnswer() error {
	if d.verb == agent.VerbReject {
		return agent.Errorf(agent.CodeInvalidInput, "--reason is required: the model reads it")
	}
	return agent.Errorf(agent.CodeInvalidInput, "an answer is required: a TEXT, --choice N, --result JSON or --file")
}

// elsewhere adds to the error of a request that is not open in which sub-agent a request
// of that name is open. If there is none, the answer may be late.
func (d *decider) elsewhere(ctx context.Context, runs *fermata.Client, session string, given decision, err error) error {
	if !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	// A failed listing only loses the hint; the first error is returned anyway.
	for _, q := range below(ctx, runs, session) {
		if q.ID == d.request {
			return agent.Errorf(agent.CodeNotFound, "%w; a request with this id is open in session %s: use that session", err, q.Session)
		}
	}
	return d.late(ctx, runs, session, given, err)
}

// late sends an answer to a request that is not open: the run knows what became of the request, and records
// the first answer after its deadline. The request may also have been opened just now. err stays if the run
// does not know the request, or has ended.
func (d *decider) late(ctx context.Context, runs *fermata.Client, session string, given decision, err error) error {
	if given.empty() || d.choice != "" { // whose text only an open request has
		return err
	}
	refused := d.decideAndPrint(ctx, runs, agent.Request{ID: d.request, Session: session}, given)
	if errors.Is(refused, agent.CodeNotFound) || errors.Is(refused, agent.CodeClosed) {
		return err
	}
	return refused
}

func (d *decider) decideAndPrint(ctx context.Context, runs *fermata.Client, q agent.Request, given decision) error {
	// The choices are known only now, when the request was read.
	if d.choice != "" {
		n, err := chosen(q, d.choice)
		if err != nil {
			return err
		}
		given.Answer.Choice = &n
	}
	ack, err := d.decide(ctx, runs, q, given)
	if err != nil {
		return err
	}
	what := "answered"
	switch {
	// The run checks them when it makes the call, so nobody knows yet whether it does.
	case given.Approve != nil && len(given.Approve.Arguments) > 0:
		what = "has other arguments, and the call is made if they fit the tool"
	case given.Approve != nil:
		what = "approved"
	case given.Reject != nil:
		what = "rejected"
	}
	// With --wait and --json the last line must be the outcome, and the only one.
	if !d.wait || !d.JSON {
		d.printAck(ack, q.ID+" "+what)
	}
	if !d.wait {
		return nil
	}
	// The acknowledgement names the run that accepted the answer, which may be a sub-agent's.
	return d.rests(ctx, runs, runs.RunOf(ack))
}

// decide sends an answer to the run that asked.
func (c *cli) decide(ctx context.Context, runs *fermata.Client, q agent.Request, d decision) (ack agent.Ack, err error) {
	// Never as a signal: a late answer would be refused, and nobody would learn that.
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	switch {
	case d.Approve != nil:
		o := &fermata.ApproveOptions{Always: d.Approve.Always, AlwaysInSession: d.Approve.AlwaysInSession, Note: d.Approve.Note, By: d.by, Token: d.token}
		// nil and an empty object differ: nil approves the arguments as they are.
		if len(d.Approve.Arguments) > 0 {
			o.Arguments = d.Approve.Arguments
		}
		ack, err = runs.Approve(ctx, q, o)
	case d.Reject != nil:
		ack, err = runs.Reject(ctx, q, d.Reject.Reason, &fermata.RejectOptions{By: d.by, Token: d.token})
	default:
		a := d.Answer
		ack, err = runs.Answer(ctx, q, a.Text, &fermata.AnswerOptions{Choice: a.Choice, Data: a.Data, Files: d.files, By: d.by, Token: d.token})
	}
	return ack, c.noAnswer(q.Session, err)
}

// pick shows the open requests of a session and its sub-agents, and asks the person which
// one to answer, and how. Without a person it names the open requests.
func (d *decider) pick(ctx context.Context, runs *fermata.Client, session string, given decision) error {
	open, err := d.open(ctx, runs, session)
	switch {
	case err != nil:
		return err
	case len(open) == 0:
		return agent.Errorf(agent.CodeNotFound, "session %s and its sub-agents have no open request", session)
	case !d.terminal || d.JSON:
		// A script must name the request: between listing and answer another one may open.
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
			return noAnswerGiven(err)
		}
	}
	if given.empty() {
		if given.AnswerTo, err = con.Ask(ctx, q); err != nil {
			return noAnswerGiven(err)
		}
		return d.decideAndPrint(ctx, runs, q, given)
	}
	// The person gave an answer for a request that they have not seen. Show it and confirm.
	if len(open) == 1 {
		con.Show(q)
	}
	sure, err := con.Yes(ctx, string(d.verb)+" "+q.ID+"?")
	// A "no" leaves the request open; it does not reject it.
	if err == nil && !sure {
		err = console.ErrLater
	}
	if err != nil {
		return noAnswerGiven(err)
	}
	return d.decideAndPrint(ctx, runs, q, given)
}

// noAnswerGiven returns the error for a person who decides to answer nothing.
func noAnswerGiven(err error) error {
	if errors.Is(err, console.ErrLater) || errors.Is(err, io.EOF) {
		return agent.Errorf(agent.CodeInvalidInput, "no answer was given, and nothing was sent")
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
		return nil, d.noAnswer(session, err)
	}
	var list []agent.Request
	if s != nil {
		list = s.Requests
	}
	// A sub-agent whose run does not answer is left out: its arguments could not be shown.
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
