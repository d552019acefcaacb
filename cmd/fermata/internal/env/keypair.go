package env

import (
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/signals"
)

// A KeyPair is two environment variables: public keys that verify, and the private key
// that signs. Each may be in a file (see package secret).
type KeyPair struct{ Public, Private string }

var (
	// ApprovalKeys are for tokens: workers verify, and the person or service that
	// knows the principals signs.
	ApprovalKeys = KeyPair{"FERMATA_APPROVAL_KEYS", "FERMATA_APPROVAL_SIGNING_KEY"}
	// ExportKeys are for exports.
	ExportKeys = KeyPair{"FERMATA_EXPORT_KEYS", "FERMATA_EXPORT_SIGNING_KEY"}
)

// Make returns the command that makes a pair.
func (p KeyPair) Make() string {
	if p == ExportKeys {
		return "export $(fermata token key k1 --exports)"
	}
	return "export $(fermata token key k1)"
}

// Verifiers returns the public keys of this process; none if the variable is not set.
func (p KeyPair) Verifiers() (signals.Keys, error) {
	text, err := secret.Get(p.Public)
	if err != nil {
		return nil, err
	}
	keys, err := signals.ParseKeys(text)
	if err != nil {
		// The usual mistake: the private key in the public key's variable.
		return nil, fmt.Errorf("%s: %w; private keys belong in %s, and not to a worker", p.Public, err, p.Private)
	}
	return keys, nil
}

// Required returns the public keys, or [agent.CodeNotSetUp] if there are none.
func (p KeyPair) Required() (signals.Keys, error) {
	keys, err := p.Verifiers()
	if err == nil && len(keys) == 0 {
		err = agent.Errorf(agent.CodeNotSetUp, "%s is not set: give this command and the workers the signer's public key (\"%s\" makes a pair)", p.Public, p.Make())
	}
	return keys, err
}

// Signer returns the private key of this process, or [agent.CodeNotSetUp] if it has none.
func (p KeyPair) Signer() (signals.Signer, error) {
	text, err := secret.Get(p.Private)
	if err != nil {
		return signals.Signer{}, err
	}
	s, err := signals.ParseSigner(text)
	switch {
	case err != nil:
		return s, fmt.Errorf("%s: %w", p.Private, err)
	case s.ID() == "":
		return s, agent.Errorf(agent.CodeNotSetUp, "%s is not set: \"%s\" makes a pair; keep it from the workers, which take %s", p.Private, p.Make(), p.Public)
	}
	return s, nil
}
