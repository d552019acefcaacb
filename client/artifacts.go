package client

import (
	"context"
	"iter"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// SessionArtifact is a version of an artifact, as the log of a session has it.
type SessionArtifact struct {
	// Seq is the number of the event that saved it, and Turn that of its turn.
	Seq  int64 `json:"seq"`
	Turn int   `json:"turn,omitempty"`
	// Current means that it is the artifact's last version for the session's last run. Older
	// versions are not current, and neither is what a fork or a reset has left behind.
	Current bool `json:"current,omitempty"`
	agent.Artifact
}

// Artifacts lists all versions of a session's artifacts, in the order of the log. [Client.File]
// reads the bytes of one. Those of sub-agents are in their own sessions, which [agent.Outcome]
// names. It needs what [Client.Transcript] needs, with the same errors.
func (c *Client) Artifacts(ctx context.Context, session string) iter.Seq2[SessionArtifact, error] {
	return func(yield func(SessionArtifact, error) bool) {
		view, err := c.view(ctx, session)
		if err != nil {
			yield(SessionArtifact{}, err)
			return
		}
		current := view.Artifacts()
		for _, e := range view.Events() {
			if e.Artifact == nil {
				continue
			}
			one := SessionArtifact{Seq: e.Seq, Turn: e.Turn, Current: slices.Contains(current, *e.Artifact), Artifact: *e.Artifact}
			if !yield(one, nil) {
				return
			}
		}
	}
}
