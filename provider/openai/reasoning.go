package openai

import (
	"github.com/openai/openai-go/v3/shared"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// The levels of models that the table lacks. All of OpenAI's reasoning models have these.
// Most servers with the same API also know the word for no reasoning.
var (
	usualLevels = []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh}
	otherLevels = append([]agent.Reasoning{agent.ReasoningOff}, usualLevels...)
)

// effort returns a request's reasoning in the server's words; empty if none is sent.
// OpenAI has no word for auto, and without one some of its models do not think. So auto
// becomes the effort that most models have by default. Other servers have their own
// defaults.
func (m *Model) effort(req *model.Request) shared.ReasoningEffort {
	level, has := req.Reasoning, usualLevels
	switch row, known := table.Models[family(req.Model)]; {
	// Other servers decide it themselves.
	case !m.own && level == agent.ReasoningAuto:
		return ""
	case !m.own:
		has = otherLevels
	case known:
		has = row.Reasoning
	}
	if level == agent.ReasoningAuto {
		level = agent.ReasoningMedium
	}
	if level = level.Nearest(has); level == agent.ReasoningOff {
		return shared.ReasoningEffortNone
	}
	return shared.ReasoningEffort(level)
}

// temperature returns a request's temperature; nil if its model would refuse one.
func temperature(req *model.Request, effort shared.ReasoningEffort) *float64 {
	return table.Models[family(req.Model)].Temperature.Takes(req.Temperature, effort == shared.ReasoningEffortNone)
}
