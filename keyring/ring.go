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

// Ring is a set of keys, of which the first writes and all read. It never shows
// them, however it is printed. A nil ring has no keys: it reads nothing. A ring may
// be used from many goroutines at once.
type Ring struct {
	keys   []Entry  // the first writes
	checks []string // of each key, see [Ring.Check]
}

// keySize is that of a key of AES-256, in bytes.
const keySize = 32

// idForm is what names a key: it stands in payloads, in names of chunks and in errors.
var idForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

const idRule = "1 to 32 lower-case letters, digits or '-'"

// New returns a new key as [Parse] reads it, an id and 32 random bytes in base64. The
// error is [agent.CodeInvalidInput], for the id.
func New(id string) (string, error) {
	if !idForm.MatchString(id) {
		return "", agent.Errorf(agent.CodeInvalidInput, "key id %q: it has %s", id, idRule)
	}
	secret := make([]byte, keySize)
	rand.Read(secret)
	return id + ":" + base64.StdEncoding.EncodeToString(secret), nil
}

// Parse reads keys as an environment has them: "id:base64,id2:base64", each of 32
// bytes. The first one writes. An empty text is a nil ring. Errors are those of [Entries].
func Parse(env string) (*Ring, error) {
	keys, err := Entries(env)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	for i, k := range keys {
		if len(k.Secret) != keySize {
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; a key of AES-256 has %d: fermata codec key makes one", i+1, len(k.Secret), keySize)
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

// Entries reads secrets as an environment has them, "id:base64,id2:base64", in their
// order. An empty text has none. Errors are [agent.CodeInvalidInput] and say no more of a
// secret than its place, since an id may be a secret that was put at the wrong side.
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
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d: what is behind the ':' is not base64", i+1)
		case len(secret) < MinSecret:
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has %d bytes; at least %d are wanted", i+1, len(secret), MinSecret)
		case slices.ContainsFunc(list, func(e Entry) bool { return e.ID == id }):
			return nil, agent.Errorf(agent.CodeInvalidInput, "key %d has the id of one before it", i+1)
		}
		list = append(list, Entry{id, secret})
	}
	return list, nil
}

// Primary is the id of the key that encrypts; empty if the ring has none.
func (r *Ring) Primary() string {
	if r == nil || len(r.keys) == 0 {
		return ""
	}
	return r.keys[0].ID
}

// IDs are the ids of all keys, the one that writes first.
func (r *Ring) IDs() (ids []string) {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		ids = append(ids, k.ID)
	}
	return ids
}

// String names the keys and shows none.
func (r *Ring) String() string { return "keys " + strings.Join(r.IDs(), ", ") }

// Format writes the ring as [Ring.String] does, whatever the verb.
func (r *Ring) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.String()) }

// MarshalText writes the ring as [Ring.String] does.
func (r *Ring) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
