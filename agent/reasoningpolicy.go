package agent

import "slices"

// ReasoningPolicy chooses how much a model thinks, by what a call is for and how hard the agent's
// work is. The zero value is a policy of medium scale.
type ReasoningPolicy struct {
	// Scale is how hard the agent's work is; empty means medium.
	Scale ReasoningScale `json:"scale,omitempty"`
	// Task is what the agent's turns are for. Empty means: verify for the profile verifier and for
	// an agent that checks the work of others, chat for an agent without tools, skills and
	// sub-agents, and agent for others. Judges always verify, and a summary is always summarize.
	Task ReasoningTask `json:"task,omitempty"`
}

// ReasoningScale is how hard an agent's work is.
type ReasoningScale string

// The scales. The zero value means medium.
const (
	ReasoningSmall       ReasoningScale = "small"
	ReasoningMediumScale ReasoningScale = "medium"
	ReasoningLarge       ReasoningScale = "large"
)

// ReasoningTask is what a model call is for.
type ReasoningTask string

// The tasks. The zero value means that the runtime infers it.
const (
	ReasoningChat      ReasoningTask = "chat"
	ReasoningAgent     ReasoningTask = "agent"
	ReasoningCode      ReasoningTask = "code"
	ReasoningVerify    ReasoningTask = "verify"
	ReasoningSummarize ReasoningTask = "summarize"
)

var reasoningScales = []ReasoningScale{ReasoningSmall, ReasoningMediumScale, ReasoningLarge}

// reasoningLevels has a level for each of reasoningScales. A run that is resumed by another build reads
// the table of that build, so a changed level changes what recorded runs ask for.
var reasoningLevels = map[ReasoningTask][3]Reasoning{
	ReasoningChat:      {ReasoningMinimal, ReasoningLow, ReasoningMedium},
	ReasoningAgent:     {ReasoningLow, ReasoningMedium, ReasoningHigh},
	ReasoningCode:      {ReasoningMedium, ReasoningHigh, ReasoningXHigh},
	ReasoningVerify:    {ReasoningLow, ReasoningMedium, ReasoningHigh},
	ReasoningSummarize: {ReasoningMinimal, ReasoningMinimal, ReasoningLow},
}

// Check returns a [CodeInvalidInput] error that names the field.
func (p *ReasoningPolicy) Check() error {
	if p == nil {
		return nil
	}
	if p.Scale != "" && !slices.Contains(reasoningScales, p.Scale) {
		return Errorf(CodeInvalidInput, "reasoning_policy.scale must be small, medium or large, not %q", string(p.Scale)).WithPath("reasoning_policy.scale")
	}
	if _, ok := reasoningLevels[p.Task]; !ok && p.Task != "" {
		return Errorf(CodeInvalidInput, "reasoning_policy.task must be one of chat, agent, code, verify, summarize, not %q; leave it out to have it inferred", string(p.Task)).WithPath("reasoning_policy.task")
	}
	return nil
}

// WithDefaults returns the policy with its scale filled in; nil for nil. The task is inferred when a run
// begins: see [Definition.InferReasoningTask].
func (p *ReasoningPolicy) WithDefaults() *ReasoningPolicy {
	if p == nil {
		return nil
	}
	return &ReasoningPolicy{Scale: or(p.Scale, ReasoningMediumScale), Task: p.Task}
}

// Level returns how much a model thinks in a call for a task, and empty for a task that is unknown:
//
//	           small    medium   large
//	chat       minimal  low      medium
//	agent      low      medium   high
//	code       medium   high     xhigh
//	verify     low      medium   high
//	summarize  minimal  minimal  low
//
// It never chooses off or max. Max has no limit of cost, and reasoning: off is how an agent says that its
// model does not think.
func (p ReasoningPolicy) Level(task ReasoningTask) Reasoning {
	at := slices.Index(reasoningScales, or(p.Scale, ReasoningMediumScale))
	if at < 0 {
		return ""
	}
	return reasoningLevels[task][at]
}

// InferReasoningTask returns the definition with the task of its policy filled in. verifies says that
// the run checks the work of another one.
func (d Definition) InferReasoningTask(verifies bool) Definition {
	if d.ReasoningPolicy == nil || d.ReasoningPolicy.Task != "" {
		return d
	}
	p := *d.ReasoningPolicy
	switch {
	case verifies || d.Profile == ProfileVerifier:
		p.Task = ReasoningVerify
	case len(d.Tools)+len(d.ClientTools)+len(d.Skills)+len(d.Agents) == 0:
		p.Task = ReasoningChat
	default:
		p.Task = ReasoningAgent
	}
	d.ReasoningPolicy = &p
	return d
}

// ReasoningFor returns the level that the policy chooses for a model call; empty if there is no policy,
// or if the definition itself names a level, which wins. An empty task means the agent's turns.
func (d *Definition) ReasoningFor(task ReasoningTask) Reasoning {
	if d.ReasoningPolicy == nil || d.Reasoning != "" {
		return ""
	}
	return d.ReasoningPolicy.Level(or(task, d.ReasoningPolicy.Task))
}
