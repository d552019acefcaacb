package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
)

// keysVariable is the environment variable with the keys that prove approvers.
const keysVariable = "FERMATA_APPROVAL_KEYS"

// approvalKeys reads the keys of this process. first is the id of the one that
// stands first, which mints.
func approvalKeys() (keys signals.Keys, first string, err error) { return keysIn(keysVariable) }

// keysIn reads the keys of an environment variable, and tells which stands first.
func keysIn(variable string) (keys signals.Keys, first string, err error) {
	text := os.Getenv(variable)
	keys, err = signals.ParseKeys(text)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", variable, err)
	}
	first, _, _ = strings.Cut(strings.TrimSpace(text), ":")
	return keys, first, nil
}

// tokenOrder is what a token is to be for.
type tokenOrder struct {
	session, request, approver string
	lasts                      time.Duration
}

func (c *cli) tokenCommand() *cobra.Command {
	var o tokenOrder
	cmd := &cobra.Command{
		Use:   "token --session S --request ID --approver WHO",
		Short: "Mint what an approver proves to be one with",
		Long: `Token prints a token with which this approver, and nobody else, may decide this
request, until its time is over. It is made with the first of the keys in
` + keysVariable + ` (id:base64,…), which the workers have too.

Whoever has it can decide the request: give it to the approver only.`,
		Example: `  fermata token --session invoice-118 --request q-7 --approver ana@acme.com > token
  fermata approve invoice-118 --request q-7 --token-file token`,
		Args: wants(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, first, err := o.check()
			if err != nil {
				return err
			}
			return c.withServer(cmd.Context(), func(s *server, runs *fermata.Client) error {
				return c.token(cmd.Context(), s, runs, o, keys, first)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "the session that asks")
	f.StringVar(&o.request, "request", "", "the request, such as q-7")
	f.StringVar(&o.approver, "approver", "", "who may decide it, as the rule names them")
	f.DurationVar(&o.lasts, "for", 24*time.Hour, "how long it is good")
	c.jsonFlag(cmd, "print the token as one line of JSON")
	return cmd
}

// tokenLine is the output of token --json.
type tokenLine struct {
	V        int       `json:"v"`
	Token    string    `json:"token"`
	Session  string    `json:"session"`
	Request  string    `json:"request"`
	Approver string    `json:"approver"`
	Expires  time.Time `json:"expires"`
}

func (o tokenOrder) check() (signals.Keys, string, error) {
	switch {
	case o.session == "" || o.request == "" || o.approver == "":
		return nil, "", agent.Errorf(agent.InvalidInput, "--session, --request and --approver are wanted, all of them")
	case o.lasts <= 0:
		return nil, "", agent.Errorf(agent.InvalidInput, "--for must be positive")
	}
	keys, first, err := approvalKeys()
	if err == nil && len(keys) == 0 {
		err = agent.Errorf(agent.NotSetUp, "%s is not set: give it to this command and to the workers, such as \"%s=k1:$(openssl rand -base64 32)\"", keysVariable, keysVariable)
	}
	return keys, first, err
}

func (c *cli) token(ctx context.Context, s *server, runs *fermata.Client, o tokenOrder, keys signals.Keys, first string) error {
	run, err := runs.Get(ctx, o.session)
	if err != nil {
		return err
	}
	d, err := s.DescribeWorkflowExecution(ctx, o.session, "")
	if err != nil {
		return fmt.Errorf("looking for session %s: %w", o.session, err)
	}
	open := fermata.MemoOf(d.GetWorkflowExecutionInfo()).Requests
	at := slices.IndexFunc(open, func(q agent.MemoRequest) bool { return q.ID == o.request })
	if at < 0 {
		var ids []string
		for _, q := range open {
			ids = append(ids, q.ID)
		}
		return agent.Errorf(agent.NotFound, "request %s of session %s is not open; open: %s", o.request, o.session, orNone(ids))
	}
	if named := open[at].Approvers; !slices.Contains(named, o.approver) {
		return agent.Errorf(agent.InvalidInput, "request %s has no approver %q; it names %s; where it names none, anybody decides it without a token", o.request, o.approver, orNone(named))
	}
	expires := time.Now().Add(o.lasts)
	if err := c.recordKey(audit.Entry{What: "token", Session: o.session, Run: run.ID, Request: o.request, Approver: o.approver, Key: first}); err != nil {
		return err
	}
	token, err := keys.Mint(first, signals.Claim{Session: o.session, Run: run.ID, Request: o.request, Approver: o.approver, Expires: expires})
	switch {
	case err != nil:
		return err
	case c.json:
		c.line(tokenLine{agent.Version, token, o.session, o.request, o.approver, expires.UTC()})
	default:
		c.print("%s", token)
	}
	return nil
}

// orNone lists names.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
