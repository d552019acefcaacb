package remembered

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// CommandDigest returns a digest that tells two commands with the same id apart: 8 hex digits of
// the SHA-256 of the verb and the payload. It ignores the order of keys. It also ignores id, meta
// and token, because a second attempt may have a new token.
func CommandDigest(c agent.Command) string {
	fields := fieldsOf(c)
	if list, ok := c.(agent.AnswersCommand); ok {
		// Each answer of the list has a token of its own, so each is reduced like a command.
		answers := make([]any, len(list.Answers))
		for i, a := range list.Answers {
			one := map[string]any{"request": a.Request}
			for _, said := range a.Commands() {
				one[string(said.Verb())] = fieldsOf(said)
			}
			answers[i] = one
		}
		fields["answers"] = answers
	}
	return sum(string(c.Verb()), fields)
}

// MessageDigest returns a digest that tells two messages with the same id apart: 8 hex digits of
// the SHA-256 of the parts. It ignores the author.
func MessageDigest(m agent.Message) string { return sum("message", m.Parts) }

// EventDigest returns a digest that tells two emitted events with the same id apart: 8 hex digits
// of the SHA-256 of topic and payload.
func EventDigest(e agent.EmitCommand) string {
	return sum("event", canonical(agent.EmitCommand{Topic: e.Topic, Payload: e.Payload}))
}

// fieldsOf returns a command's fields without those that may differ between two attempts.
func fieldsOf(c agent.Command) map[string]any {
	fields, _ := canonical(c).(map[string]any)
	for _, name := range []string{"id", "meta", "token"} {
		delete(fields, name)
	}
	return fields
}

// canonical returns a value that marshals to JSON with sorted keys and unchanged numbers; nil if
// value has no JSON.
func canonical(value any) (v any) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make two large numbers equal
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

func sum(kind string, value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(append([]byte(kind+"\x00"), raw...))
	return hex.EncodeToString(digest[:4])
}
