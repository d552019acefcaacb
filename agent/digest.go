package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// CommandDigest returns what tells two verbs of one id apart: 8 hex digits of the SHA-256 of the
// verb's name and its payload. Keys in another order make no difference, and neither do
// id and meta, nor a token: a second attempt may have a new one.
func CommandDigest(c Command) string {
	fields := fieldsOf(c)
	if list, ok := c.(AnswersCommand); ok {
		answers := make([]any, len(list.Answers))
		for i, a := range list.Answers {
			one := map[string]any{"request": a.Request}
			for _, said := range a.said() {
				one[string(said.Verb())] = fieldsOf(said)
			}
			answers[i] = one
		}
		fields["answers"] = answers
	}
	return sum(string(c.Verb()), fields)
}

// VerbsOf lists what a command says: its verb or, of several answers, that of each.
func VerbsOf(c Command) (verbs []Verb) {
	list, ok := c.(AnswersCommand)
	if !ok {
		return []Verb{c.Verb()}
	}
	for _, a := range list.Answers {
		for _, said := range a.said() {
			verbs = append(verbs, said.Verb())
		}
	}
	return verbs
}

// said lists what is said to the request.
func (a AnswerTo) said() (all []Command) {
	if a.Answer != nil {
		all = append(all, *a.Answer)
	}
	if a.Approve != nil {
		all = append(all, *a.Approve)
	}
	if a.Reject != nil {
		all = append(all, *a.Reject)
	}
	return all
}

// Digest returns what tells two messages of one id apart: 8 hex digits of the SHA-256 of the
// parts, whoever wrote them.
func (m Message) Digest() string { return sum("message", m.Parts) }

// Digest returns what tells two events of one id apart: 8 hex digits of the SHA-256 of topic
// and payload.
func (o EmitCommand) Digest() string {
	return sum("event", canonical(EmitCommand{Topic: o.Topic, Payload: o.Payload}))
}

// fieldsOf is a payload without what may differ from one attempt to the next.
func fieldsOf(c Command) map[string]any {
	fields, _ := canonical(c).(map[string]any)
	for _, name := range []string{"id", "meta", "token"} {
		delete(fields, name)
	}
	return fields
}

// canonical is a value whose JSON has sorted keys, and numbers as they were written.
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
