package agent

import "regexp"

// Wire §2. The forms of the identifiers that cross Temporal.
var (
	sessionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	toolForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	topicForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Sizes that are promised to whoever speaks to a run (docs/wire.md §1).
const (
	MaxIDLength = 64      // of a message's or a verb's id, in characters
	MaxLabels   = 16      // labels of one run
	MaxPayload  = 1 << 20 // of what is said in a start, in bytes
	// maxDefinition bounds an agent's definition, as JSON in bytes: it is recorded in the
	// history of each of its runs, where a payload may have 2 MB.
	maxDefinition = 1 << 20
	MaxJSONDepth  = 32 // levels of nesting in what is said
)

// CheckSession reports whether a client may use id as a session's id, which is
// also the Temporal workflow's id. It returns an [CodeInvalidInput] error.
func CheckSession(id string) error {
	if !sessionForm.MatchString(id) {
		return Errorf(CodeInvalidInput, "session %.120q: use 1 to 100 letters, digits, '.', '_', ':' or '-', beginning with a letter or digit", id).WithPath("session")
	}
	return nil
}

// CheckName reports whether name can name an agent. It returns an [CodeInvalidInput] error.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return Errorf(CodeInvalidInput, "agent %q: use 1 to 32 lower-case letters, digits or '_', beginning with a letter", name).WithPath("agent")
	}
	return nil
}

// CheckTool reports whether name can name a tool: a form that every provider accepts.
// It returns an [CodeInvalidInput] error.
func CheckTool(name string) error {
	if !toolForm.MatchString(name) {
		return Errorf(CodeInvalidInput, "tool %q: use 1 to 64 letters, digits, '_' or '-', beginning with a letter", name).WithPath("tools")
	}
	return nil
}

const maxTopic = 128

// CheckTopic reports whether a topic can be emitted and waited for. It returns an
// [CodeInvalidInput] error without a path.
func CheckTopic(topic string) *Error {
	switch {
	case topic == "":
		return Errorf(CodeInvalidInput, "topic is missing; name one, such as orders.paid")
	case len(topic) > maxTopic || !topicForm.MatchString(topic):
		return Errorf(CodeInvalidInput, "topic %q: use 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", topic, maxTopic)
	}
	return nil
}

// IdempotencyKey is what a tool can hand on to what it calls, so that a call
// which is made again has its effect once.
func IdempotencyKey(run, call string) string { return run + "/" + call }
