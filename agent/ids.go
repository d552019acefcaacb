package agent

import "regexp"

// Forms of the identifiers that pass through Temporal (docs/wire.md §2).
var (
	sessionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	toolForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	topicForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Limits for what may be sent to a run (docs/wire.md §1).
const (
	MaxIDLength = 64      // of a message's or a verb's id, in characters
	MaxLabels   = 16      // labels of one run
	MaxPayload  = 1 << 20 // of a start's input, in bytes
	// maxDefinition is the largest definition, as JSON in bytes. The history of each run
	// records it, and Temporal's payloads have at most 2 MB.
	maxDefinition = 1 << 20
	MaxJSONDepth  = 32 // levels of nesting in a payload
)

// CheckSession returns a [CodeInvalidInput] error if a client may not use id as a
// session's id. The session's id is also the id of the Temporal workflow.
func CheckSession(id string) error {
	if !sessionForm.MatchString(id) {
		return Errorf(CodeInvalidInput, "session %.120q: use 1 to 100 letters, digits, '.', '_', ':' or '-', beginning with a letter or digit", id).WithPath("session")
	}
	return nil
}

// CheckName returns a [CodeInvalidInput] error if name can't name an agent.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return Errorf(CodeInvalidInput, "agent %q: use 1 to 32 lower-case letters, digits or '_', beginning with a letter", name).WithPath("agent")
	}
	return nil
}

// CheckTool returns a [CodeInvalidInput] error if name can't name a tool. Every provider
// accepts the names that it allows.
func CheckTool(name string) error {
	if !toolForm.MatchString(name) {
		return Errorf(CodeInvalidInput, "tool %q: use 1 to 64 letters, digits, '_' or '-', beginning with a letter", name).WithPath("tools")
	}
	return nil
}

const maxTopic = 128

// CheckTopic returns a [CodeInvalidInput] error without a path if the topic can't be
// emitted or waited for.
func CheckTopic(topic string) *Error {
	switch {
	case topic == "":
		return Errorf(CodeInvalidInput, "topic is missing; name one, such as orders.paid")
	case len(topic) > maxTopic || !topicForm.MatchString(topic):
		return Errorf(CodeInvalidInput, "topic %q: use 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", topic, maxTopic)
	}
	return nil
}

// IdempotencyKey returns the key that a tool passes on to the service it calls. The key
// stays the same when the call is repeated, so the service can do the work once.
func IdempotencyKey(run, call string) string { return run + "/" + call }
