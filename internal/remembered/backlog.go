package remembered

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Backlog is what a session has accepted and not dealt with when its run ends. A daemon's next
// run takes it over. Its zero value is empty.
type Backlog struct {
	// Unfinished means that the run ended in the middle of a task. The task's message is in the
	// log, and the next run continues from there.
	Unfinished bool `json:"unfinished,omitempty"`
	// Events are the events that wait, in the order in which they came.
	Events []agent.EmitCommand `json:"events,omitempty"`
}

// BacklogBlob names waiting events that a store keeps: the blob, and which of its events still
// wait, in their order.
type BacklogBlob struct {
	Blob string   `json:"blob"`
	Keys []string `json:"keys"` // see [EventKey]
}

// EventKey returns a name for a waiting event, made of its content: the first 16 hex digits of
// the SHA-256 of its JSON. Two equal events have the same key.
func EventKey(e agent.EmitCommand) string {
	raw, _ := json.Marshal(e) // cannot fail: the fields are strings, and Payload was read as JSON
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
