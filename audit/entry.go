package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Kind is the kind of an entry. There may be more.
type Kind string

const (
	// KindOpened begins a process's entries.
	KindOpened Kind = "opened"
	// KindClosed ends a process's entries.
	KindClosed Kind = "closed"
	// KindAlive is written every [AliveInterval].
	KindAlive Kind = "alive"
	// KindVerb is a verb that a run received, and whether it was accepted.
	KindVerb Kind = "verb"
	// KindEvent is an event of a run; its type is in Event.
	KindEvent Kind = "event"
	// KindKey is a use of a key: a token, an export, an import, or re-encryption of the
	// store.
	KindKey Kind = "key"
	// KindPolicy is a worker's agents, with the digest of its agents file.
	KindPolicy Kind = "policy"
	// KindRepaired says how much of a half-written line was removed. Its writer was
	// killed.
	KindRepaired Kind = "repaired"
)

// Entry is one record. Only Kind is required; fields that do not apply are empty. The
// writer sets V, N, Time, Process, Prev and Sig. An entry has no text of a model or
// person, no argument and no token; the session's log has those, at Seq.
type Entry struct {
	V         int        `json:"v"`
	N         int64      `json:"n"` // from 1, without gaps
	Time      time.Time  `json:"time"`
	Kind      Kind       `json:"kind"`
	What      string     `json:"what,omitempty"` // the verb, the use of a key, or the command
	Event     string     `json:"event,omitempty"`
	Session   string     `json:"session,omitempty"`
	Run       string     `json:"run,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Seq       int64      `json:"seq,omitempty"`       // the event's number in the session's log
	ID        string     `json:"id,omitempty"`        // the verb's id: equal if it came twice
	By        string     `json:"by,omitempty"`        // as claimed; nobody verified it
	Principal string     `json:"principal,omitempty"` // whom a token or a rule names
	Request   string     `json:"request,omitempty"`
	Digest    string     `json:"digest,omitempty"` // of arguments, a file or an export
	Tool      string     `json:"tool,omitempty"`
	Children  string     `json:"children,omitempty"` // the sub-agents that a model's call names, with commas
	Outcome   string     `json:"outcome,omitempty"`
	Code      agent.Code `json:"code,omitempty"` // why it was refused
	Key       string     `json:"key,omitempty"`  // a key's id, never the key
	Process   string     `json:"process,omitempty"`
	Count     int64      `json:"count,omitempty"`
	Prev      string     `json:"prev"` // the SHA-256 of the line before, in hex
	Sig       string     `json:"sig,omitempty"`
}

// maxText limits each text of an entry, in bytes: somebody else chose most of them. The
// limit shrinks if the line would be longer than a reader accepts.
const maxText = 1000

// first is Prev of a record's first line.
var first = hex.EncodeToString(make([]byte, sha256.Size))

// seal returns the entry's signed line, with the newline.
func (e Entry) seal(key ed25519.PrivateKey) ([]byte, error) {
	unsigned, err := e.bounded(maxText)
	for most := maxText / 2; err == nil && len(unsigned) > maxLine/2; most /= 2 { // a character may take six bytes in JSON
		unsigned, err = e.bounded(most)
	}
	if err != nil {
		return nil, err
	}
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(key, unsigned))
	// Appended as text: a reader removes it again and verifies the exact bytes, without
	// encoding JSON again.
	return append(append(unsigned[:len(unsigned)-1], `,"sig":"`+sig+`"}`...), '\n'), nil
}

// bounded returns the entry as JSON without a signature, with no text longer than most.
func (e Entry) bounded(most int) ([]byte, error) {
	e.Sig = ""
	for _, text := range []*string{
		&e.What, &e.Event, &e.Session, &e.Run, &e.Agent, &e.ID, &e.By, &e.Principal, &e.Request, &e.Digest, &e.Tool, &e.Children, &e.Outcome, (*string)(&e.Code), &e.Key,
	} {
		if len(*text) > most {
			*text = string(bytes.ToValidUTF8([]byte((*text)[:most]), nil)) + "…"
		}
	}
	return json.Marshal(e)
}

// open parses a line without its newline, and verifies its signature.
func open(line []byte, key ed25519.PublicKey) (e Entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, agent.Errorf(agent.CodeBadSignature, "it is not JSON: %w", err)
	}
	at := bytes.LastIndex(line, []byte(`,"sig":"`))
	if at < 0 {
		return e, agent.Errorf(agent.CodeBadSignature, "it is not signed")
	}
	sig, err := base64.StdEncoding.DecodeString(e.Sig)
	if err != nil || string(line[at:]) != `,"sig":"`+e.Sig+`"}` || !ed25519.Verify(key, append(bytes.Clone(line[:at]), '}'), sig) {
		return e, agent.Errorf(agent.CodeBadSignature, "its signature is not of this key, or the line was changed")
	}
	return e, nil
}

func digest(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
