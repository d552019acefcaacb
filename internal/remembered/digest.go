package remembered

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// CommandDigest tells two verbs of one id apart: 8 hex digits of the SHA-256 of the verb's name
// and its payload. The order of keys does not count, and neither do id, meta and token: a second
// attempt may have a new token.
func CommandDigest(c agent.Command) string {
	fields := fieldsOf(c)
	if list, ok := c.(agent.AnswersCommand); ok {
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

// MessageDigest tells two messages of one id apart: 8 hex digits of the SHA-256 of the parts,
// whoever wrote them.
func MessageDigest(m agent.Message) string { return sum("message", m.Parts) }

// EventDigest tells two emitted events of one id apart: 8 hex digits of the SHA-256 of topic and
// payload.
func EventDigest(e agent.EmitCommand) string {
	return sum("event", canonical(agent.EmitCommand{Topic: e.Topic, Payload: e.Payload}))
}

// fieldsOf returns a payload without what may differ from one attempt to the next.
func fieldsOf(c agent.Command) map[string]any {
	fields, _ := canonical(c).(map[string]any)
	for _, name := range []string{"id", "meta", "token"} {
		delete(fields, name)
	}
	return fields
}

// canonical returns a value whose JSON has sorted keys, and numbers as they were written.
func canonical(value any) (v any) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
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
