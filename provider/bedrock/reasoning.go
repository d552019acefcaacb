package bedrock

import (
	"regexp"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Beginnings of the names of model families that are known here; see family.
const (
	claudes = "anthropic.claude-"
	novas   = "amazon.nova-"
	nova2   = "amazon.nova-2-"
	openGPT = "openai."
)

// manual matches the models of Claude whose thinking has a budget of tokens: those before
// version 4.6. Later ones refuse a budget.
var manual = regexp.MustCompile(`^anthropic\.claude-(3-7-sonnet|[a-z]+-4(-[0-5])?)$`)

// cannotTurnOff is a model that can't turn its thinking off, but has a setting that comes close.
const cannotTurnOff = "anthropic.claude-sonnet-5-5"

// levels are the levels of models that the table lacks.
var (
	claudeLevels = []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh, agent.ReasoningXHigh, agent.ReasoningMax}
	otherLevels  = []agent.Reasoning{agent.ReasoningLow, agent.ReasoningMedium, agent.ReasoningHigh}
)

// budgets are the tokens of thinking for the levels.
var budgets = map[agent.Reasoning]int{
	agent.ReasoningMinimal: minBudget, agent.ReasoningLow: 4096, agent.ReasoningMedium: 8192, agent.ReasoningHigh: 16_384, agent.ReasoningXHigh: 32_768,
	agent.ReasoningMax: 32_768, agent.ReasoningAuto: 8192,
}

// minBudget is the smallest budget that Claude accepts.
const minBudget = 1024

// reason adds a level of reasoning to a request, in its model's terms, and reports
// whether the request turns reasoning off. For models whose terms are unknown it adds
// nothing.
func (r *request) reason(req *model.Request, in *inference) (off bool) {
	name, level := family(req.Model), req.Reasoning
	if level == "" {
		return false
	}
	switch {
	case manual.MatchString(name):
		return r.reasonWithin(req, in)
	case strings.HasPrefix(name, claudes):
		return r.reasonClaude(name, level)
	case strings.HasPrefix(name, nova2):
		return r.reasonNova(name, level, in)
	case strings.HasPrefix(name, openGPT) && level != agent.ReasoningAuto:
		r.Additional = &additional{Effort: string(level.Nearest(levelsOf(name, otherLevels)))}
	}
	return false
}

func levelsOf(name string, usual []agent.Reasoning) []agent.Reasoning {
	if row, ok := table.Models[name]; ok {
		return row.Reasoning
	}
	return usual
}

func (r *request) reasonClaude(name string, level agent.Reasoning) (off bool) {
	nearest := level.Nearest(levelsOf(name, claudeLevels))
	kind := "adaptive"
	switch {
	case level == agent.ReasoningAuto:
	case nearest == agent.ReasoningOff && name == cannotTurnOff:
		kind = "between_tools"
	case nearest == agent.ReasoningOff:
		kind = "disabled"
	default:
		r.Output = &output{Effort: string(nearest)}
	}
	r.Additional = &additional{Thinking: &thinking{Type: kind}}
	return kind == "disabled"
}

// reasonWithin gives the thinking a budget, at most half of the reply's length. It adds
// no thinking if the reply is too short for both, or if another model began the turn: the
// provider would refuse those requests.
func (r *request) reasonWithin(req *model.Request, in *inference) (off bool) {
	if req.Reasoning == agent.ReasoningOff {
		r.Additional = &additional{Thinking: &thinking{Type: "disabled"}}
		return true
	}
	if in.MaxTokens == 0 { // the budget must be below this limit
		in.MaxTokens = table.Models[family(req.Model)].MaxOutput
	}
	// Half is left for the answer, because the budget counts towards the reply's limit.
	if budget := min(budgets[req.Reasoning], in.MaxTokens/2); budget >= minBudget && thought(r.Messages) {
		r.Additional = &additional{Thinking: &thinking{Type: "enabled", Budget: budget}}
	}
	return false
}

// reasonNova turns Nova's reasoning on or off. At its highest level Nova refuses a limit
// on the reply's length.
func (r *request) reasonNova(name string, level agent.Reasoning, in *inference) (off bool) {
	switch nearest := level.Nearest(levelsOf(name, otherLevels)); {
	case level == agent.ReasoningOff:
		r.Additional = &additional{Nova: &novaThink{Type: "disabled"}}
		return true
	case level == agent.ReasoningAuto:
		r.Additional = &additional{Nova: &novaThink{Type: "enabled", Effort: string(agent.ReasoningMedium)}}
	default:
		r.Additional = &additional{Nova: &novaThink{Type: "enabled", Effort: string(nearest)}}
	}
	// Nova refuses a limit at its highest level.
	if r.thinksHardest() {
		in.MaxTokens = 0
	}
	return false
}

// thinksWithin reports whether Claude's thinking has a budget.
func (r *request) thinksWithin() bool {
	return r.Additional != nil && r.Additional.Thinking != nil && r.Additional.Thinking.Budget > 0
}

// thinksHardest reports whether Nova reasons at its highest level.
func (r *request) thinksHardest() bool {
	return r.Additional != nil && r.Additional.Nova != nil && r.Additional.Nova.Effort == string(agent.ReasoningHigh)
}

// thought reports whether the turn began with thinking. A turn that is just beginning
// counts too.
func thought(messages []message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		first := messages[i].Content[0]
		switch {
		// A turn that did not start with thinking may not have it later.
		case messages[i].Role == roleAssistant:
			return first.Reasoning != nil
		case first.Result == nil:
			return true
		}
	}
	return true
}
