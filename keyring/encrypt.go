package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// What is encrypted is a header, and what AES-256-GCM makes of the plain form, with
// its random nonce before and its tag behind. The header has the number of this
// form, the length of the key's id, the id, and the salt of the message's own key; it
// is authenticated as well.
const (
	form     = 1
	saltSize = 16
)

// Encrypt encrypts with the first key, for a purpose that names what it is: it can
// be read for the same one alone. The ring must have a key.
func (r *Ring) Encrypt(purpose string, plain []byte) []byte {
	k := r.keys[0]
	header := append([]byte{form, byte(len(k.ID))}, k.ID...)
	salt := make([]byte, saltSize)
	rand.Read(salt)
	header = append(header, salt...)
	a := k.aead(salt, purpose)
	return a.Seal(slices.Grow(slices.Clip(header), len(plain)+a.Overhead()), nil, plain, header)
}

// Decrypt reads what Encrypt has made. The error is [agent.CodeNotSetUp] where the ring
// lacks the key, and [agent.CodeBadSignature] where the bytes were made for another
// purpose or with another key of the same id, or were changed since.
func (r *Ring) Decrypt(purpose string, data []byte) ([]byte, error) {
	id, salt, header, ok := split(data)
	if !ok {
		return nil, agent.Errorf(agent.CodeIncompatible, "it is not encrypted in a form that this build knows")
	}
	i := -1
	if r != nil {
		i = slices.IndexFunc(r.keys, func(k Entry) bool { return k.ID == id })
	}
	if i < 0 {
		return nil, r.MissingKey(id)
	}
	plain, err := r.keys[i].aead(salt, purpose).Open(nil, nil, data[len(header):], header)
	if err != nil {
		return nil, agent.Errorf(agent.CodeBadSignature, "it can't be decrypted with key %s: it was changed, is in another's place, or another key has this id", id)
	}
	return plain, nil
}

// MissingKey is the error of a key that the ring does not have, [agent.CodeNotSetUp].
func (r *Ring) MissingKey(id string) error {
	has := "has no keys"
	if ids := r.IDs(); len(ids) > 0 {
		has = "has " + strings.Join(ids, ", ")
	}
	return agent.Errorf(agent.CodeNotSetUp, "it is encrypted with key %s, and this process %s: give it that key (FERMATA_ENCRYPTION_KEYS)", id, has)
}

// KeyID is the id of the key that encrypted; empty for what is not encrypted.
func KeyID(data []byte) string {
	id, _, _, _ := split(data)
	return id
}

// Check tells keys of one id apart, and says nothing of them: who has encrypted with another
// key of that id has another check. It is empty for a key that the ring lacks.
func (r *Ring) Check(id string) string {
	if r == nil {
		return ""
	}
	for i, k := range r.keys {
		if k.ID == id {
			return r.checks[i]
		}
	}
	return ""
}

// Hashes returns a keyed hash of a text for each key, the one that writes first: 32 hexadecimal
// digits by which equal texts of a purpose are found, and which nobody without a key can
// compute or try out. A ring without keys has none.
func (r *Ring) Hashes(purpose, text string) (marks []string) {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		marks = append(marks, k.mark("mark/"+purpose, text))
	}
	return marks
}

// mark is the keyed hash of a text.
func (k Entry) mark(purpose, text string) string {
	own, err := hkdf.Key(sha256.New, k.Secret, nil, "fermata/1/"+purpose, keySize)
	if err != nil {
		panic(err) // only of a length that no hash gives
	}
	h := hmac.New(sha256.New, own)
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// split takes the header apart.
func split(data []byte) (id string, salt, header []byte, ok bool) {
	if len(data) < 2 || data[0] != form {
		return "", nil, nil, false
	}
	n := 2 + int(data[1])
	if len(data) < n+saltSize || !idForm.Match(data[2:n]) {
		return "", nil, nil, false
	}
	return string(data[2:n]), data[n : n+saltSize], data[:n+saltSize], true
}

// aead is the cipher of one message.
func (k Entry) aead(salt []byte, purpose string) cipher.AEAD {
	own, err := hkdf.Key(sha256.New, k.Secret, salt, "fermata/1/"+purpose, keySize)
	if err != nil {
		panic(err) // only of a length that no hash gives
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		panic(err) // only of another length of the key
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only of another block's size
	}
	return a
}
