package signals

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Keys are public Ed25519 keys by their ids. They verify tokens or exports, and cannot
// make any. During a change of keys there may be several. The zero value accepts nothing.
type Keys map[string]ed25519.PublicKey

// Signer is a private Ed25519 key with its id. It makes tokens, or signs exports. It
// never shows the key, however it is printed; only [Signer.Private] does. The zero value
// signs nothing.
type Signer struct {
	id  string
	key ed25519.PrivateKey
}

var keyForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Format implements [fmt.Formatter]. It prints the keys' ids, whatever the verb.
func (k Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, slices.Sorted(maps.Keys(k))) }

// named lists the keys' ids for a message.
func (k Keys) named() string {
	if len(k) == 0 {
		return "no keys"
	}
	return strings.Join(slices.Sorted(maps.Keys(k)), ", ") //workflowcheck:ignore the order of the map is gone after sorting
}

// MarshalText implements [encoding.TextMarshaler]. It writes the keys' ids.
func (k Keys) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(k)), nil }

// ID returns the key's id; empty for the zero value.
func (s Signer) ID() string { return s.id }

// Format implements [fmt.Formatter]. It prints the key's id, whatever the verb.
func (s Signer) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%s]", s.id) }

// MarshalText implements [encoding.TextMarshaler]. It writes the key's id.
func (s Signer) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(s)), nil }

// NewSigner returns a new random key. The error is [agent.CodeInvalidInput] if the id is
// invalid.
func NewSigner(id string) (Signer, error) {
	if !keyForm.MatchString(id) {
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "key id %q: it has 1 to 32 lower-case letters, digits or '-'", id)
	}
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	return Signer{id, ed25519.NewKeyFromSeed(seed)}, nil
}

// Private returns the key in the form of [ParseSigner]. It is a secret.
func (s Signer) Private() string { return s.id + ":" + base64.StdEncoding.EncodeToString(s.key) }

// Public returns the public key in the form of [ParseKeys].
func (s Signer) Public() string {
	return s.id + ":" + base64.StdEncoding.EncodeToString(s.key[ed25519.SeedSize:])
}

// Keys returns the public key, which verifies what the signer signs.
func (s Signer) Keys() Keys {
	return Keys{s.id: ed25519.PublicKey(slices.Clone(s.key[ed25519.SeedSize:]))}
}

// ParseKeys parses public keys from an environment variable. It refuses a private key. An
// empty text gives no keys. Other errors are those of [keyring.Entries].
func ParseKeys(env string) (Keys, error) {
	list, err := keyring.Entries(env)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	keys := Keys{}
	for i, e := range list {
		switch len(e.Secret) {
		case ed25519.PublicKeySize:
			keys[e.ID] = e.Secret
		// A worker that held a private key by mistake could make tokens itself.
		case ed25519.PrivateKeySize:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d is a private key; give the public one to who verifies", i+1)
		default:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; a public key of Ed25519 has %d", i+1, len(e.Secret), ed25519.PublicKeySize)
		}
	}
	return keys, nil
}

// ParseSigner parses one private key from an environment variable, "id:base64". It
// refuses a public key. An empty text gives the zero Signer. Errors are
// [agent.CodeInvalidInput].
func ParseSigner(env string) (Signer, error) {
	list, err := keyring.Entries(env)
	switch {
	case err != nil || len(list) == 0:
		return Signer{}, err
	case len(list) > 1:
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "there are %d keys; one signs", len(list))
	case len(list[0].Secret) == ed25519.PublicKeySize:
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "it has %d bytes, as a public key has; who signs needs the private one", ed25519.PublicKeySize)
	case len(list[0].Secret) != ed25519.PrivateKeySize:
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "it has %d bytes; a private key of Ed25519 has %d", len(list[0].Secret), ed25519.PrivateKeySize)
	}
	key := ed25519.PrivateKey(list[0].Secret)
	// The public half is not checked when it signs, and a wrong one makes signatures that
	// nobody can verify.
	if !key.Equal(ed25519.NewKeyFromSeed(key.Seed())) {
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "its two halves do not belong together: copy it whole")
	}
	return Signer{list[0].ID, key}, nil
}

// Sign signs the SHA-512 of a message (Ed25519ph). The purpose is part of the signature,
// which is valid for no other purpose; it has at most 255 bytes. The error is
// [agent.CodeInvalidInput] for the zero Signer.
func (s Signer) Sign(purpose string, sha512 []byte) ([]byte, error) {
	if len(s.key) != ed25519.PrivateKeySize {
		return nil, agent.Errorf(agent.CodeInvalidInput, "there is no private key to sign with")
	}
	signature, err := s.key.Sign(nil, sha512, ph(purpose))
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "signing: %w", err)
	}
	return signature, nil
}

// Verified reports whether [Signer.Sign] made a signature with the key of an id, for the
// purpose.
func (k Keys) Verified(id, purpose string, sha512, signature []byte) bool {
	key := k[id]
	return len(key) == ed25519.PublicKeySize && ed25519.VerifyWithOptions(key, sha512, signature, ph(purpose)) == nil
}
