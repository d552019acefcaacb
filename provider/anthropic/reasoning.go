package anthropic

import (
	"regexp"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-agents/fermata/agent"
)

// manual matches the models whose thinking has a budget of tokens: those before version
// 4.6. Later ones refuse a budget, and these refuse an effort.
var manual = regexp.MustCompile(`^claude-[a-z]+-4(-[0-5])?$`)

// cannotTurnOff is a model that can't turn its thinking off, but has a setting that comes close.
const cannotTurnOff = "claude-sonnet-5-5"

// usualLevels are the levels of models that the table lacks.
var usualLevels = []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh, agent.ReasoningXHigh, agent.ReasoningMax}

// budgets are the tokens of thinking for the levels.
var budgets = map[agent.Reasoning]int64{
	agent.ReasoningMinimal: minBudget, agent.ReasoningLow: 4096, agent.ReasoningMedium: 8192, agent.ReasoningHigh: 16_384, agent.ReasoningXHigh: 32_768,
	agent.ReasoningMax: 32_768, agent.ReasoningAuto: 8192,
}

// minBudget is the smallest budget that the provider accepts.
const minBudget = 1024

// reason adds a level of reasoning to a request, in its model's terms.
func reason(p *sdk.MessageNewParams, level agent.Reasoning) {
	name := family(p.Model)
	has := usualLevels
	if row, ok := table.Models[name]; ok {
		has = row.Reasoning
	}
	switch {
	case level == "":
	case manual.MatchString(name) || !strings.HasPrefix(name, "claude-"): // others imitate the older form
		reasonWithin(p, level)
	case level == agent.ReasoningAuto:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
	case level.Nearest(has) == agent.ReasoningOff && name == cannotTurnOff:
		between := sdk.NewThinkingConfigBetweenToolsParam()
		p.Thinking.OfBetweenTools = &between
	case level.Nearest(has) == agent.ReasoningOff:
		disabled := sdk.NewThinkingConfigDisabledParam()
		p.Thinking.OfDisabled = &disabled
	default:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(level.Nearest(has))
	}
}

// reasonWithin gives the thinking a budget, at most half of the reply's length. It adds
// no thinking if the reply is too short for both, or if another model began the turn: the
// provider would refuse those requests.
func reasonWithin(p *sdk.MessageNewParams, level agent.Reasoning) {
	if level == agent.ReasoningOff {
		disabled := sdk.NewThinkingConfigDisabledParam()
		p.Thinking.OfDisabled = &disabled
		return
	}
	// Half is left for the answer, because the budget counts towards the reply's limit.
	if budget := min(budgets[level], p.MaxTokens/2); budget >= minBudget && thought(p.Messages) {
		p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
	}
}

// thought reports whether the model's messages since the user's last text, if there are
// any, begin with its thinking.
func thought(messages []sdk.MessageParam) bool {
	for _, msg := range slices.Backward(messages) {
		first := msg.Content[0]
		switch {
		// The provider accepts thinking in a turn only if the turn started with it.
		case msg.Role == sdk.MessageParamRoleAssistant:
			return first.OfThinking != nil || first.OfRedactedThinking != nil
		case first.OfToolResult == nil:
			return true
		}
	}
	return true
}
