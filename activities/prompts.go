package activities

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/loop"
)

// note returns the message that is added after the conversation; empty for none.
func (in ModelInput) note(spec *agent.Spec) string {
	switch in.Summary {
	case loop.SummaryForHandoff:
		return spec.Text(agent.TextSummaryHandoff)
	case loop.SummaryFinal:
		return spec.Text(agent.TextSummaryFinal)
	case loop.SummaryOfAll:
		return spec.Text(agent.TextSummaryAll)
	case loop.SummaryOfOlder:
		return strings.TrimSpace(spec.Text(agent.TextSummaryOlder) + "\n" + spec.Compaction.Instructions)
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
