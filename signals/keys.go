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

// Keys are public keys of Ed25519 by their ids. They verify tokens, or exports, and make
// none. Several at once let one follow another. The zero value accepts nothing.
type Keys map[string]ed25519.PublicKey

// Signer is a private key of Ed25519 with its id. Whoever has one makes tokens, or signs
// exports. It never shows the key, however it is printed. The zero value signs nothing.
type Signer struct {
	id  string
	key ed25519.PrivateKey
}

var keyForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Format prints the keys' ids instead of the keys.
func (k Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, slices.Sorted(maps.Keys(k))) }

// named lists the keys' ids.
func (k Keys) named() string {
	if len(k) == 0 {
		return "no keys"
	}
	return strings.Join(slices.Sorted(maps.Keys(k)), ", ") //workflowcheck:ignore the order of the map is gone after sorting
}

// MarshalText writes the keys' ids instead of the keys.
func (k Keys) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(k)), nil }

// ID is the key's id; empty for the zero value.
func (s Signer) ID() string { return s.id }

// Format prints the key's id instead of the key.
func (s Signer) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%s]", s.id) }

// MarshalText writes the key's id instead of the key.
func (s Signer) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(s)), nil }

// NewSigner makes a new random key with an id. The error is [agent.CodeInvalidInput], for the id.
func NewSigner(id string) (Signer, error) {
	if !keyForm.MatchString(id) {
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "key id %q: it has 1 to 32 lower-case letters, digits or '-'", id)
	}
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	return Signer{id, ed25519.NewKeyFromSeed(seed)}, nil
}

// Private is the key as [ParseSigner] reads it: a secret.
func (s Signer) Private() string { return s.id + ":" + base64.StdEncoding.EncodeToString(s.key) }

// Public is the public key as [ParseKeys] reads it.
func (s Signer) Public() string {
	return s.id + ":" + base64.StdEncoding.EncodeToString(s.key[ed25519.SeedSize:])
}

// Keys are those that verify what the key signs, and nothing else.
func (s Signer) Keys() Keys {
	return Keys{s.id: ed25519.PublicKey(slices.Clone(s.key[ed25519.SeedSize:]))}
}

// ParseKeys reads public keys as an environment has them, see [keyring.Entries], whose
// errors it has. It refuses a private key, which has 64 bytes. An empty text is no keys.
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
		case ed25519.PrivateKeySize:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d is a private key; give the public one to who verifies", i+1)
		default:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; a public key of Ed25519 has %d", i+1, len(e.Secret), ed25519.PublicKeySize)
		}
	}
	return keys, nil
}

// ParseSigner reads one private key as an environment has it, "id:base64". It refuses a
// public key. An empty text is the zero Signer. Errors are [agent.CodeInvalidInput].
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
	if !key.Equal(ed25519.NewKeyFromSeed(key.Seed())) {
		return Signer{}, agent.Errorf(agent.CodeInvalidInput, "its two halves do not belong together: copy it whole")
	}
	return Signer{list[0].ID, key}, nil
}

// Sign signs a message of any length by its SHA-512 (Ed25519ph). What it is signed for is
// part of the signature, so that it is good for nothing else; it has at most 255 bytes.
// The error is [agent.CodeInvalidInput] for the zero Signer.
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

// Verified reports whether a key of an id made a signature of [Signer.Sign].
func (k Keys) Verified(id, purpose string, sha512, signature []byte) bool {
	key := k[id]
	return len(key) == ed25519.PublicKeySize && ed25519.VerifyWithOptions(key, sha512, signature, ph(purpose)) == nil
}
