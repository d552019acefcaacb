package gemini

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/agent"
)

// levels are the levels of models from version 3 on that the table lacks.
var levels = []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh}

// budgets are the tokens of thinking for the levels in version 2.5. Some of its models
// have less or more, see budget.
var budgets = map[agent.Reasoning]int32{
	agent.ReasoningAuto: -1, // as many as the model likes
	agent.ReasoningOff:  0, agent.ReasoningMinimal: 512, agent.ReasoningLow: 1024,
	agent.ReasoningMedium: 8192, agent.ReasoningHigh: 24_576, agent.ReasoningXHigh: 24_576, agent.ReasoningMax: 24_576,
}

// The least and the most thinking of gemini-2.5-pro, which can't be turned off.
const (
	proMinBudget = 128
	proMaxBudget = 32_768
)

var versioned = regexp.MustCompile(`^gemini-(\d+(?:\.\d+)?)`)

// generation returns the version in a model's name, 2.5 for "gemini-2.5-pro". A name
// without one, "gemini-flash-latest", counts as a current model. A name that is no Gemini
// has none.
func generation(name string) float64 {
	if v := versioned.FindStringSubmatch(name); v != nil {
		n, _ := strconv.ParseFloat(v[1], 64) // the pattern has found a number
		return n
	}
	// Names such as gemini-flash-latest lead to the newest models.
	if strings.HasPrefix(name, "gemini-") {
		return 3
	}
	return 0
}

// thinking returns how a model should think; nil for a model that does not think.
// Summaries of the thinking are always requested, except with a budget of zero, for which
// the provider refuses that.
func thinking(name string, level agent.Reasoning) *genai.ThinkingConfig {
	version := generation(name)
	if version < 2.5 {
		return nil
	}
	c := &genai.ThinkingConfig{IncludeThoughts: true}
	switch {
	case level == "":
	case version < 3:
		// Version 2.5 takes a budget, later versions a level.
		tokens := budget(name, level)
		c.ThinkingBudget, c.IncludeThoughts = &tokens, tokens != 0
	case level != agent.ReasoningAuto: // which is the default
		has := levels
		if row, ok := table.Models[name]; ok {
			has = row.Reasoning
		}
		c.ThinkingLevel = genai.ThinkingLevel(strings.ToUpper(string(level.Nearest(has))))
	}
	return c
}

func budget(name string, level agent.Reasoning) int32 {
	switch pro := strings.HasPrefix(name, "gemini-2.5-pro"); {
	// This model can't turn its thinking off; it gets the least.
	case pro && level == agent.ReasoningOff:
		return proMinBudget
	case pro && (level == agent.ReasoningXHigh || level == agent.ReasoningMax):
		return proMaxBudget
	}
	return budgets[level]
}
