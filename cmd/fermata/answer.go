package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
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

// decision is an answer to one request, and who gives it.
type decision struct {
	agent.AnswerTo
	by, token string
}

const answerHelp = `
On a terminal the request need not be named: what is open is shown, with its
arguments, and asked. Without one --request is wanted, as it was printed (by
fermata inbox, show, run or wait): what was shown to somebody is what is answered.

A worker that has just been started is waited for, up to 15s. With --wait the exit
status is that of run.`

func (c *cli) answerCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbAnswer}
	cmd := d.command("answer SESSION [TEXT]", "Answer a question, a limit or a client tool",
		"Answer answers what a run asks, with a text, one of its choices, or JSON.", `  fermata answer trip-42
  fermata answer trip-42 "By train" --request q-7
  fermata answer trip-42 --request q-7 --choice 0
  fermata answer trip-42 --request q-8 --result '{"seat":"12A"}'`)
	f := cmd.Flags()
	f.StringVar(&d.choice, "choice", "", "one of its choices: its number, from 0, or its text")
	f.StringVar(&d.result, "result", "", "the result of a client tool, as JSON")
	return cmd
}

func (c *cli) approveCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbApprove}
	cmd := d.command("approve SESSION", "Let a call be made",
		"Approve lets the call be made that a run asks about, and no other: the digest of\nits arguments goes along.", `  fermata approve invoice-118
  fermata approve invoice-118 --request q-7
  fermata approve invoice-118 --request q-7 --edit '{"amount_eur":80}'
  fermata approve invoice-118 --request q-7 --always --by ana@acme.com --token-file token`)
	f := cmd.Flags()
	f.StringVar(&d.edit, "edit", "", "make the call with these arguments instead, as JSON")
	f.BoolVar(&d.always, "always", false, "approve every further call of the tool in this run, too")
	f.StringVar(&d.note, "note", "", "recorded with the approval")
	return cmd
}

func (c *cli) rejectCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbReject}
	cmd := d.command("reject SESSION", "Refuse a call",
		"Reject refuses the call that a run asks about. The model is told the reason.", `  fermata reject invoice-118
  fermata reject invoice-118 --request q-7 --reason "wrong account"`)
	cmd.Flags().StringVar(&d.reason, "reason", "", "why: the model is told")
	return cmd
}

func (d *decider) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + "\n" + answerHelp, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.verb == agent.VerbAnswer && len(args) == 2 {
				return nil
			}
			return wants(1, "a session")(cmd, args)
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
	f.StringVar(&d.request, "request", "", "the request, such as q-7, or pay-1/q-7 of a run below")
	d.tokenFlag(cmd, &d.tokenFile)
	d.byFlag(cmd, &d.by)
	f.BoolVar(&d.wait, "wait", false, "wait until the run that asked rests or ends, and print how")
	d.jsonFlag(cmd, "print the run's answer as one line of JSON; with --wait, the outcome")
	return cmd
}

// said is what the flags say; without an answer where they say none.
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

// answerOrder is nil where no answer is given.
func (d *decider) answerOrder(text string) (*agent.AnswerCommand, error) {
	order, given := &agent.AnswerCommand{Text: text}, 0
	for _, is := range []bool{text != "", d.choice != "", d.result != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, agent.Errorf(agent.CodeInvalidInput, "TEXT, --choice and --result exclude each other")
	case given == 0:
		return nil, nil
	case d.result != "":
		raw, err := jsonOf("--result", d.result)
		if err != nil {
			return nil, err
		}
		order.Data = raw
	}
	return order, nil
}

func (d *decider) approveOrder() (*agent.ApproveCommand, error) {
	order := &agent.ApproveCommand{Always: d.always, Note: d.note}
	if d.edit != "" {
		raw, err := jsonOf("--edit", d.edit)
		var object map[string]json.RawMessage
		if err == nil && json.Unmarshal(raw, &object) != nil {
			err = agent.Errorf(agent.CodeInvalidInput, "--edit must be an object, such as '{\"amount_eur\":80}'")
		}
		if err != nil {
			return nil, err
		}
		order.Arguments = raw
	}
	return order, nil
}

// empty tells that no answer was given.
func (d decision) empty() bool { return d.Answer == nil && d.Approve == nil && d.Reject == nil }

func (d *decider) do(ctx context.Context, runs *fermata.Client, session string, said decision) error {
	if d.request == "" {
		return d.pick(ctx, runs, session, said)
	}
	session, d.request = askedBelow(session, d.request)
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
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

// askedBelow finds the session that asks, where a request is named from above it:
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
		return agent.Errorf(agent.CodeInvalidInput, "--reason is wanted: the model is told why")
	}
	return agent.Errorf(agent.CodeInvalidInput, "an answer is wanted: a TEXT, --choice N or --result JSON")
}

// elsewhere adds to a request that is not open where else one of its name is.
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

// chosen is the number of a choice, which may be said by its text; a number is never a text.
func chosen(q agent.Request, said string) (int, error) {
	n, err := strconv.Atoi(said)
	if err != nil {
		n = slices.Index(q.Choices, said)
	}
	if n >= 0 && n < len(q.Choices) {
		return n, nil
	}
	if len(q.Choices) == 0 {
		return 0, agent.Errorf(agent.CodeInvalidInput, "request %s has no choices: answer it with a TEXT", q.ID).WithPath("choice")
	}
	list := make([]string, len(q.Choices))
	for i, text := range q.Choices {
		list[i] = fmt.Sprintf("%d %q", i, text)
	}
	return 0, agent.Errorf(agent.CodeInvalidInput, "%q is none of the choices of request %s: %s", said, q.ID, strings.Join(list, ", ")).WithPath("choice")
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
		ack, err = runs.Answer(ctx, q, fermata.AnswerOptions{Text: a.Text, Choice: a.Choice, Data: a.Data, By: d.by, Token: d.token})
	}
	return ack, noAnswer(q.Session, err)
}
