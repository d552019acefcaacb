package activities

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/loop"
)

// Prompts for summaries. They are here and not in a history: a build with a better
// wording uses it at once, for old runs too.
const (
	// freshPrompt asks for the summary that replaces the conversation when a run is
	// resumed.
	freshPrompt = "Sum up this conversation for yourself: what the task is, what was done and found, what is decided, what is still to do, " +
		"what images and documents show, and every name, number and path that you need to go on. Your summary will replace the conversation. Answer with the summary alone."
	// finalPrompt asks for the last reply of a run that reached a limit.
	finalPrompt = "Your limit is reached: this is your last reply, and you have no tools any more. Give the answer to your task now, with what you have. Say what is missing."
	// compactPrompt asks for the summary that replaces the older part of a conversation.
	compactPrompt = "Sum up this conversation so far: it has become too long, and your summary will replace all but its newest messages. " +
		"Keep what the task is, what was done and found, what is decided, what is still to do, what images and documents show, and every name, number and path that may be needed. Answer with the summary alone."
)

// note returns the message that is added after the conversation; empty for none.
func (in ModelInput) note(spec *agent.Spec) string {
	switch in.Summary {
	case loop.SummaryForHandoff:
		return handoff.Prompt
	case loop.SummaryFinal:
		return finalPrompt
	case loop.SummaryOfAll:
		return freshPrompt
	case loop.SummaryOfOlder:
		if more := spec.Compaction.Instructions; more != "" {
			return compactPrompt + "\n" + more
		}
		return compactPrompt
	}
	return in.Note
}

// output returns the schema of a summary; nil for free text.
func (in ModelInput) output() json.RawMessage {
	if in.Summary == loop.SummaryForHandoff {
		return handoff.SummarySchema()
	}
	return nil
}
