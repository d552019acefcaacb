package agent

import "encoding/json"

// Tick is the input of the workflow fermata.tick, which a Temporal schedule starts. The
// workflow sends a message to a session, or emits an event to it. If the session has no
// live run, it starts one.
type Tick struct {
	V       int    `json:"v,omitempty"`
	Session string `json:"session"`
	// Agent is the agent of the run, if one has to be started.
	Agent string `json:"agent"`
	// Text is sent as a message. Or an event with Topic and Payload is emitted to a
	// daemon.
	Text    string          `json:"text,omitempty"`
	Topic   string          `json:"topic,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// By says who sent it. It is logged, and not authenticated.
	By string `json:"by,omitempty"`
}
