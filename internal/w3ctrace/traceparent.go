package w3ctrace

import (
	"encoding/json"
	"regexp"
	"strings"
)

// form matches a traceparent of version 00.
var form = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Valid reports whether a text is a traceparent with ids that are not zero.
func Valid(text string) bool {
	return form.MatchString(text) && text[3:35] != strings.Repeat("0", 32) && text[36:52] != strings.Repeat("0", 16)
}

// InMeta returns the traceparent in a start's meta. It is empty if there is none or it is
// malformed.
func InMeta(meta json.RawMessage) string {
	var m struct {
		Traceparent string `json:"traceparent"`
	}
	if json.Unmarshal(meta, &m) != nil || !Valid(m.Traceparent) {
		return ""
	}
	return m.Traceparent
}

// Meta returns the meta that [InMeta] reads; nil for an empty traceparent.
func Meta(traceparent string) json.RawMessage {
	if traceparent == "" {
		return nil
	}
	return json.RawMessage(`{"traceparent":"` + traceparent + `"}`)
}

// FlagUndecided is the flag of a traceparent whose trace begins with a segment of a run.
// Each process then decides by the trace's id whether the trace is kept. The W3C does not
// define this flag, and it is only passed between runs.
const FlagUndecided = 0x80
