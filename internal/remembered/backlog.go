package remembered

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Backlog is what a session has taken and not dealt with when its run has ended. A daemon's
// next run takes it over. Its zero value is empty.
type Backlog struct {
	// Unfinished means that the run ended in the middle of something. Its message is in the
	// log, and the next run goes on from there.
	Unfinished bool `json:"unfinished,omitempty"`
	// Events wait, in the order in which they came.
	Events []agent.EmitCommand `json:"events,omitempty"`
}

// BacklogBlob names waiting events that a store keeps: a blob, and which of its events, in
// their order.
type BacklogBlob struct {
	Blob string   `json:"blob"`
	Keys []string `json:"keys"` // see [EventKey]
}

// EventKey names a waiting event by its content: the first 16 digits of the SHA-256 of its JSON.
func EventKey(e agent.EmitCommand) string {
	raw, _ := json.Marshal(e) // strings, and a payload that was JSON when it came
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
