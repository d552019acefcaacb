package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/signals"
)

// A keyPair is two environment variables: public keys that verify, and the private one that
// signs. Each may be in a file (see the package secret).
type keyPair struct{ public, private string }

var (
	// approvalKeys are for tokens: workers verify, and whoever knows the principals mints.
	approvalKeys = keyPair{"FERMATA_APPROVAL_KEYS", "FERMATA_APPROVAL_SIGNING_KEY"}
	// exportKeys are for exports.
	exportKeys = keyPair{"FERMATA_EXPORT_KEYS", "FERMATA_EXPORT_SIGNING_KEY"}
)

// make is how a pair is made.
func (p keyPair) make() string {
	if p == exportKeys {
		return "export $(fermata token key k1 --exports)"
	}
	return "export $(fermata token key k1)"
}

// verifiers are the public keys of this process; none where the variable is not set.
func (p keyPair) verifiers() (signals.Keys, error) {
	text, err := secret.Get(p.public)
	if err != nil {
		return nil, err
	}
	keys, err := signals.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; private keys belong in %s, and not to a worker", p.public, err, p.private)
	}
	return keys, nil
}

// wanted are the public keys that a command can't do without.
func (p keyPair) wanted() (signals.Keys, error) {
	keys, err := p.verifiers()
	if err == nil && len(keys) == 0 {
		err = agent.Errorf(agent.CodeNotSetUp, "%s is not set: give this command and the workers the public key of who signs (\"%s\" makes a pair)", p.public, p.make())
	}
	return keys, err
}

// signer is the private key of this process; the error is [agent.CodeNotSetUp] where it has none.
func (p keyPair) signer() (signals.Signer, error) {
	text, err := secret.Get(p.private)
	if err != nil {
		return signals.Signer{}, err
	}
	s, err := signals.ParseSigner(text)
	switch {
	case err != nil:
		return s, fmt.Errorf("%s: %w", p.private, err)
	case s.ID() == "":
		return s, agent.Errorf(agent.CodeNotSetUp, "%s is not set: \"%s\" makes a pair; keep it from the workers, which take %s", p.private, p.make(), p.public)
	}
	return s, nil
}

func (c *cli) tokenKeyCommand() *cobra.Command {
	var exports bool
	cmd := &cobra.Command{
		Use:   "key ID",
		Short: "Make a new pair of keys",
		Long: `Key prints a new pair of keys with an id, as two variables: the private one, which
mints, and the public one, which verifies. Give the workers the public one alone.

To change keys: give the workers both public keys, with a comma between them, then
mint with the new private key, and take the old public one away when no token of it
is good any more.`,
		Example: `  export $(fermata token key k1)
  fermata token key k1 --json | jq -r .public`,
		Args: wants(1, "an id for the keys"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := signals.NewSigner(args[0])
			if err != nil {
				return err
			}
			p := approvalKeys
			if exports {
				p = exportKeys
			}
			if c.JSON {
				c.Line(pairLine{agent.Version, s.Private(), s.Public()})
				return nil
			}
			c.Print("%s=%s", p.private, s.Private())
			c.Print("%s=%s", p.public, s.Public())
			return nil
		},
	}
	cmd.Flags().BoolVar(&exports, "exports", false, "as the variables of keys that sign exports")
	c.jsonFlag(cmd, "print the keys as one line of JSON")
	return cmd
}

// pairLine is the output of token key --json.
type pairLine struct {
	V       int    `json:"v"`
	Private string `json:"private"`
	Public  string `json:"public"`
}
