package agent

import "encoding/json"

// Tick is the input of the workflow fermata.tick, which a Temporal schedule starts:
// it says something in a session, or tells it of an event. Where the session has no
// live run, it begins one.
type Tick struct {
	V       int    `json:"v,omitempty"`
	Session string `json:"session"`
	// Agent is whose run the session's next one is, where one has to begin.
	Agent string `json:"agent"`
	// Text is said as by a send; or Topic and Payload are emitted, to a daemon.
	Text    string          `json:"text,omitempty"`
	Topic   string          `json:"topic,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// By is who says so: a claim, recorded as one.
	By string `json:"by,omitempty"`
}
