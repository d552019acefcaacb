package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Ring is a set of keys. The first one encrypts, and all of them decrypt. However a ring
// is printed, it never shows its keys. A nil ring has no keys and decrypts nothing. A
// ring is safe for concurrent use.
type Ring struct {
	keys   []Entry  // the first one encrypts
	checks []string // one for each key, see [Ring.Check]
}

// keySize is the size of an AES-256 key, in bytes.
const keySize = 32

// idForm is the form of a key's id, which appears in payloads, names of chunks and
// errors.
var idForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

const idRule = "1 to 32 lower-case letters, digits or '-'"

// New returns a new key in the form that [Parse] reads: an id and 32 random bytes in
// base64. It returns [agent.CodeInvalidInput] if the id is invalid.
func New(id string) (string, error) {
	if !idForm.MatchString(id) {
		return "", agent.Errorf(agent.CodeInvalidInput, "key id %q: it has %s", id, idRule)
	}
	secret := make([]byte, keySize)
	rand.Read(secret) // never fails
	return id + ":" + base64.StdEncoding.EncodeToString(secret), nil
}

// Parse returns the ring of a text such as "id:base64,id2:base64", each key of 32 bytes.
// The first key encrypts. An empty text gives a nil ring. Errors are those of [Entries].
func Parse(env string) (*Ring, error) {
	keys, err := Entries(env)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	for i, k := range keys {
		if len(k.Secret) != keySize {
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; a key of AES-256 has %d: make one with fermata codec key", i+1, len(k.Secret), keySize)
		}
	}
	r := &Ring{keys: keys}
	for _, k := range keys {
		r.checks = append(r.checks, k.mark("check", ""))
	}
	return r, nil
}

// Entry is a secret with its id.
type Entry struct {
	ID     string
	Secret []byte
}

// MinSecret is the least length of a secret, in bytes.
const MinSecret = 32

// Entries returns the secrets of a text such as "id:base64,id2:base64", in order; none
// for an empty text. Errors are [agent.CodeInvalidInput]. They only give a secret's
// position, because its id may be a secret that was put on the wrong side.
func Entries(env string) (list []Entry, err error) {
	if strings.TrimSpace(env) == "" {
		return nil, nil
	}
	for i, one := range strings.Split(env, ",") {
		id, encoded, colon := strings.Cut(strings.TrimSpace(one), ":")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case !colon:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has no ':': write id:base64, as fermata codec key and fermata token key print it", i+1)
		case !idForm.MatchString(id):
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has no id: write id:base64, the id of %s", i+1, idRule)
		case err != nil:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d: the text after the ':' is not base64", i+1)
		case len(secret) < MinSecret:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; at least %d are needed", i+1, len(secret), MinSecret)
		case slices.ContainsFunc(list, func(e Entry) bool { return e.ID == id }):
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has the id of one before it", i+1)
		}
		list = append(list, Entry{id, secret})
	}
	return list, nil
}

// Primary returns the id of the key that encrypts; empty if the ring has none.
func (r *Ring) Primary() string {
	if r == nil || len(r.keys) == 0 {
		return ""
	}
	return r.keys[0].ID
}

// IDs returns the ids of all keys, the encrypting one first.
func (r *Ring) IDs() (ids []string) {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		ids = append(ids, k.ID)
	}
	return ids
}

// String returns the ids of the keys, never the keys.
func (r *Ring) String() string { return "keys " + strings.Join(r.IDs(), ", ") }

// Format writes the same as [Ring.String], whatever the verb.
func (r *Ring) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.String()) }

// MarshalText returns the same as [Ring.String].
func (r *Ring) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
