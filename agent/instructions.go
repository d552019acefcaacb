package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// InstructionsChange says that a run has other instructions from its next request on, because a resume
// ([ResumeCommand.Refresh]) or its agent ([Definition.RefreshOnResume]) says so. Tools, limits, rules and
// all else of the agent stay as they were when the run began.
type InstructionsChange struct {
	// Text is what the agent's definition says, and Digest its SHA-256 in hex.
	Text   string `json:"text,omitempty"`
	Digest string `json:"digest,omitempty"`
	// By says who resumed with refresh. It is not authenticated. Empty also means that the agent says so.
	By string `json:"by,omitempty"`
	// Error says why the run keeps the instructions that it has; nil means that they have changed. With it,
	// the other fields are empty.
	Error *Error `json:"error,omitempty"`
}

// NewInstructions returns the change to a text.
func NewInstructions(text, by string) InstructionsChange {
	sum := sha256.Sum256([]byte(text))
	return InstructionsChange{Text: text, Digest: hex.EncodeToString(sum[:]), By: by}
}

// ApplyTo returns the spec with these instructions. What its tool sources say about their tools stays
// behind them.
func (c InstructionsChange) ApplyTo(s Spec) Spec {
	if c.Error != nil {
		return s
	}
	return s.withInstructions(c.Text, s.Instructions[len(s.Instructions)-min(s.SourceInstructions, len(s.Instructions)):])
}

// WithSources returns the spec with the instructions of its tool sources behind its own.
func (s Spec) WithSources(instructions string) Spec {
	return s.withInstructions(s.Instructions, instructions)
}

func (s Spec) withInstructions(own, sources string) Spec {
	s.Instructions, s.SourceInstructions = own, len(sources)
	if sources != "" {
		s.Instructions = strings.TrimPrefix(own+"\n\n"+sources, "\n\n")
	}
	return s
}
