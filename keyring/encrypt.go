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

// A ciphertext is a header, followed by the output of AES-256-GCM: a random nonce, the
// encrypted text, and the tag. The header has the number of this form, the length of the
// key's id, the id, and the salt of the message's own key. It is authenticated too.
const (
	form     = 1
	saltSize = 16
)

// Encrypt encrypts with the first key. purpose says what the text is, and only the same
// purpose can decrypt it. The ring must have a key.
func (r *Ring) Encrypt(purpose string, plain []byte) []byte {
	k := r.keys[0]
	header := append([]byte{form, byte(len(k.ID))}, k.ID...)
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	header = append(header, salt...)
	a := k.aead(salt, purpose)
	return a.Seal(slices.Grow(slices.Clip(header), len(plain)+a.Overhead()), nil, plain, header)
}

// Decrypt decrypts the output of [Ring.Encrypt]. It returns [agent.CodeNotSetUp] if the
// ring lacks the key, [agent.CodeIncompatible] if data is in no known form, and
// [agent.CodeBadSignature] if data was made for another purpose, with another key of the
// same id, or was changed.
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
	// The header is authenticated too: nobody can change the key's id or the salt.
	plain, err := r.keys[i].aead(salt, purpose).Open(nil, nil, data[len(header):], header)
	if err != nil {
		return nil, agent.Errorf(agent.CodeBadSignature, "it can't be decrypted with key %s: it was changed, was stored for something else, or another key has this id", id)
	}
	return plain, nil
}

// MissingKey returns the error for a key that the ring lacks, [agent.CodeNotSetUp].
func (r *Ring) MissingKey(id string) error {
	has := "has no keys"
	if ids := r.IDs(); len(ids) > 0 {
		has = "has " + strings.Join(ids, ", ")
	}
	return agent.Errorf(agent.CodeNotSetUp, "it is encrypted with key %s, and this process %s: give it that key (FERMATA_ENCRYPTION_KEYS)", id, has)
}

// KeyID returns the id of the key that encrypted data; empty if data is not encrypted.
func KeyID(data []byte) string {
	id, _, _, _ := split(data)
	return id
}

// Check returns a value that tells different keys of one id apart, without revealing
// them. It is empty if the ring lacks the key.
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

// Hashes returns a keyed hash of a text for each key, the writing key's first: 32
// hexadecimal digits. Equal texts of one purpose have equal hashes, so they can be found.
// Nobody without a key can compute or guess them. A ring without keys returns none.
func (r *Ring) Hashes(purpose, text string) (marks []string) {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		marks = append(marks, k.mark("mark/"+purpose, text))
	}
	return marks
}

// mark returns the keyed hash of a text.
func (k Entry) mark(purpose, text string) string {
	own, err := hkdf.Key(sha256.New, k.Secret, nil, "fermata/1/"+purpose, keySize)
	if err != nil {
		panic(err) // only for a length that no hash gives
	}
	h := hmac.New(sha256.New, own)
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// split parses the header.
func split(data []byte) (id string, salt, header []byte, ok bool) {
	if len(data) < 2 || data[0] != form {
		return "", nil, nil, false
	}
	n := 2 + int(data[1])
	// The id as well: plain data may begin with the same byte.
	if len(data) < n+saltSize || !idForm.Match(data[2:n]) {
		return "", nil, nil, false
	}
	return string(data[2:n]), data[n : n+saltSize], data[:n+saltSize], true
}

// aead returns the cipher of one message.
func (k Entry) aead(salt []byte, purpose string) cipher.AEAD {
	own, err := hkdf.Key(sha256.New, k.Secret, salt, "fermata/1/"+purpose, keySize)
	if err != nil {
		panic(err) // only for a length that no hash gives
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		panic(err) // only for another key length
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for another block size
	}
	return a
}
