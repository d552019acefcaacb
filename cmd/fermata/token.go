package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/signals"
)

// tokenOrder is what a token is for.
type tokenOrder struct {
	session, verb, request, principal string
	edit                              string
	always, alwaysInSession           bool
	lasts                             time.Duration
}

func (c *cli) tokenCommand() *cobra.Command {
	var o tokenOrder
	cmd := &cobra.Command{
		Use:   "token --session S --principal WHO",
		Short: "Create an approver's token",
		Long: `Token prints a token that lets a principal send one verb to the session's run, once,
until the token expires. With --request the token is valid for that request only: for
an approval of the requested arguments, or of those in --edit. The command signs it
with the private key in ` + env.ApprovalKeys.Private + ` (see fermata token key).
Workers have the public key.

Whoever has the token can use it: give it to the principal only.`,
		Example: `  fermata token --session invoice-118 --request q-7 --principal ana@acme.com > token
  fermata approve invoice-118 --request q-7 --token-file token
  fermata token --session invoice-118 --request q-7 --verb reject --principal ana@acme.com
  fermata token --session invoice-118 --verb stop --principal ana@acme.com --for 5m`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			signer, err := o.check()
			if err != nil {
				return err
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				return c.token(cmd.Context(), runs, o, signer)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "the session that gets the verb")
	f.StringVar(&o.verb, "verb", "", "the verb (default approve, with --request)")
	f.StringVar(&o.request, "request", "", "the request to decide, such as q-7")
	f.StringVar(&o.principal, "principal", "", "who may send the verb, as a rule or a policy names them")
	f.StringVar(&o.edit, "edit", "", "approve the call with these arguments instead, as JSON")
	f.BoolVar(&o.always, "always", false, "the token is for an approval with --always")
	f.BoolVar(&o.alwaysInSession, "always-in-session", false, "the token is for an approval with --always-in-session")
	f.DurationVar(&o.lasts, "for", time.Hour, "how long the token is valid, at most 720h")
	c.jsonFlag(cmd, "print the token as one line of JSON")
	cmd.AddCommand(c.tokenKeyCommand())
	return cmd
}

// tokenLine is the output of token --json.
type tokenLine struct {
	V         int        `json:"v"`
	Token     string     `json:"token"`
	Session   string     `json:"session"`
	Verb      agent.Verb `json:"verb"`
	Request   string     `json:"request,omitempty"`
	Principal string     `json:"principal"`
	Expires   time.Time  `json:"expires"`
}

func (o *tokenOrder) check() (signals.Signer, error) {
	if o.verb == "" && o.request != "" {
		o.verb = string(agent.VerbApprove)
	}
	var err error
	switch {
	case o.session == "" || o.principal == "":
		err = agent.Errorf(agent.CodeInvalidInput, "--session and --principal are required")
	case o.verb == "":
		err = agent.Errorf(agent.CodeInvalidInput, "name what the token allows: a --request to approve, or a --verb such as stop")
	case (o.edit != "" || o.always || o.alwaysInSession) && o.verb != string(agent.VerbApprove):
		err = agent.Errorf(agent.CodeInvalidInput, "--edit, --always and --always-in-session are for an approval")
	case o.lasts <= 0:
		err = agent.Errorf(agent.CodeInvalidInput, "--for must be positive")
	case o.edit != "":
		// Only checked here; the claim gets the digest later.
		_, err = jsonOf("--edit", o.edit)
	}
	if err != nil {
		return signals.Signer{}, err
	}
	return env.ApprovalKeys.Signer()
}

func (c *cli) token(ctx context.Context, runs *fermata.Client, o tokenOrder, signer signals.Signer) error {
	soon, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	// The claim comes from the run: it is bound to its execution and to the request's
	// digest.
	claim, err := connect.RetryUntilWorker(soon, c.Connector, func() (signals.Claim, error) {
		return runs.TokenClaim(soon, o.session, agent.Verb(o.verb), o.request, o.principal)
	})
	if err != nil {
		return c.noAnswer(o.session, err)
	}
	claim.Edits, claim.Always, claim.AlwaysInSession, claim.Expires = signals.EditsOf(json.RawMessage(o.edit)), o.always, o.alwaysInSession, time.Now().Add(o.lasts)
	// Recorded before the token exists: a token without an entry could still be used.
	if err := c.host.Audit.Key(audit.Entry{What: "token", Session: o.session, Request: o.request, Principal: o.principal, Key: signer.ID()}); err != nil {
		return err
	}
	token, err := signer.Mint(claim)
	switch {
	case err != nil:
		return err
	case c.JSON:
		c.Line(tokenLine{agent.Version, token, o.session, claim.Verb, o.request, o.principal, claim.Expires.UTC()})
	default:
		c.Print("%s", token)
	}
	return nil
}

// orNone lists names, or says that there are none.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (c *cli) tokenKeyCommand() *cobra.Command {
	var exports bool
	cmd := &cobra.Command{
		Use:   "key ID",
		Short: "Create a key pair",
		Long: `Key prints a new key pair with an id, as two environment variables. The private key
signs tokens, and the public key verifies them. Give workers the public key only.

To change keys, give the workers both public keys with a comma between them. Sign with
the new private key. Remove the old public key when its tokens have expired.`,
		Example: `  export $(fermata token key k1)
  fermata token key k1 --json | jq -r .public`,
		Args: exactArgs(1, "an id for the keys"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := signals.NewSigner(args[0])
			if err != nil {
				return err
			}
			p := env.ApprovalKeys
			if exports {
				p = env.ExportKeys
			}
			if c.JSON {
				c.Line(pairLine{agent.Version, s.Private(), s.Public()})
				return nil
			}
			c.Print("%s=%s", p.Private, s.Private())
			c.Print("%s=%s", p.Public, s.Public())
			return nil
		},
	}
	cmd.Flags().BoolVar(&exports, "exports", false, "print the variables of keys that sign exports")
	c.jsonFlag(cmd, "print the keys as one line of JSON")
	return cmd
}

// pairLine is the output of token key --json.
type pairLine struct {
	V       int    `json:"v"`
	Private string `json:"private"`
	Public  string `json:"public"`
}
