package agent

import (
	"fmt"
	"slices"
)

// TurnHooks are tools that look at each turn after which a run would go on. They are called in their
// order, before limits are looked at and before the next turn. A tool gets a report of the turn and returns a
// decision as JSON, a text for the model, true to stop the run, or nothing.
type TurnHooks struct {
	// Checks are called one after the other; at most 8. Each names a tool, and its on_error is hold
	// unless it says accept: a person sees what went wrong.
	Checks []Check `json:"checks,omitempty"`
}

// TurnReport is what a tool of hooks.after_turn gets.
type TurnReport struct {
	Session string `json:"session"`
	Turn    int    `json:"turn"`
	// Task is what people and programs have asked the run. A daemon's is what woke it last.
	Task string `json:"task"`
	// Text is what the model wrote in the turn.
	Text string `json:"text,omitempty"`
	// TextChars is how many characters Text has, and Calls how many calls the turn had. TextCalls means
	// that the model wrote them as text (see [Definition.TextCalls]).
	TextChars int  `json:"text_chars"`
	Calls     int  `json:"calls"`
	TextCalls bool `json:"text_calls"`
	// Results are those of the turn's calls, each cut to 4 KiB.
	Results []TurnResult `json:"results"`
	// Tools are those of this turn, and All those of the run.
	Tools TurnTools `json:"tools"`
	All   TurnTools `json:"all"`
	// Required are the entries of the agent's require, by whether one of their tools has succeeded.
	Required   RequiredTools  `json:"required"`
	Budget     TurnBudget     `json:"budget"`
	Completion TurnCompletion `json:"completion"`
	Progress   TurnProgress   `json:"progress"`
}

// TurnResult is the result of a call.
type TurnResult struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	OK     bool       `json:"ok"`
	Status CallStatus `json:"status"`
	Text   string     `json:"text"`
}

// TurnTools are names of tools, each once.
type TurnTools struct {
	Successful []string `json:"successful"`
	Rejected   []string `json:"rejected"`
}

// RequiredTools are entries of [Definition.Require].
type RequiredTools struct {
	Satisfied []string `json:"satisfied"`
	Missing   []string `json:"missing"`
}

// TurnBudget is the limit of the run's own turns.
type TurnBudget struct {
	// Limit is the limit now, and Max how far it may be extended. They differ only with limits.adaptive.
	Limit int `json:"limit"`
	Max   int `json:"max"`
	// Remaining is how many turns are left, and Extensions how often the limit was extended.
	Remaining  int `json:"remaining"`
	Extensions int `json:"extensions"`
}

// TurnCompletion says whether the turn's answer would have completed the run.
type TurnCompletion struct {
	Proposed bool `json:"proposed"`
	Vetoed   bool `json:"vetoed"`
	// Verdict is the last one, and Feedback what it said.
	Verdict  Decision `json:"verdict,omitempty"`
	Feedback string   `json:"feedback,omitempty"`
}

// TurnProgress says whether the turn did something: it made calls, or wrote text.
type TurnProgress struct {
	Changed bool   `json:"changed"`
	Summary string `json:"summary"`
}

// TurnDecision is what a tool of hooks.after_turn decides. The zero value lets the run go on.
type TurnDecision struct {
	Action TurnAction `json:"action,omitempty"`
	// By is how many turns more extend gives, and Until the limit that it sets; one of them is set.
	By    int `json:"by,omitempty"`
	Until int `json:"until,omitempty"`
	// Reason says why. A run that is stopped has it as its reason; ask shows it to a person.
	Reason string `json:"reason,omitempty"`
	// Failure is the kind that fail reports: unclear_request, scope_too_large or policy_violation.
	Failure FailureKind `json:"failure,omitempty"`
	// Message is a text for the model, with any action that lets the run go on.
	Message string `json:"message,omitempty"`
	// Next is what the next turn is like; nil changes nothing.
	Next *NextTurn `json:"next,omitempty"`
}

// TurnAction is what a run does after a turn.
type TurnAction string

// The actions. The zero value means none.
const (
	TurnNone   TurnAction = "none"
	TurnExtend TurnAction = "extend" // moves the limit of limits.adaptive, up to its max
	TurnStop   TurnAction = "stop"   // stops the run, with a handoff
	TurnAsk    TurnAction = "ask"    // asks a person whether to go on
	TurnFail   TurnAction = "fail"   // does what recovery says about a kind of failure
)

// NextTurn says what is different in the next turn. The turn after it is as usual again. The zero value
// changes nothing.
type NextTurn struct {
	// Tools are names and patterns of the tools that are offered. Nil offers all, and an empty list none
	// but the runtime's own.
	Tools []string `json:"tools,omitzero"`
	// Model is the first model that is asked: the agent's model or one of its fallbacks. Those after it
	// in that order are its fallbacks. Empty means the agent's model.
	Model string `json:"model,omitempty"`
	// MaxOutputTokens, Temperature and Reasoning replace the agent's; zero or nil keeps them.
	MaxOutputTokens int       `json:"max_output_tokens,omitempty"`
	Temperature     *float64  `json:"temperature,omitempty"`
	Reasoning       Reasoning `json:"reasoning,omitempty"`
}

// check returns a [CodeInvalidInput] error for values that no turn can have.
func (n *NextTurn) check() error {
	switch {
	case n == nil:
		return nil
	case n.MaxOutputTokens < 0:
		return Errorf(CodeInvalidInput, "next.max_output_tokens must be positive").WithPath("next.max_output_tokens")
	case n.Temperature != nil && !(*n.Temperature >= 0 && *n.Temperature <= maxTemperature):
		return Errorf(CodeInvalidInput, "next.temperature is %g; it may be 0 to %d", *n.Temperature, maxTemperature).WithPath("next.temperature")
	}
	return n.Reasoning.Check()
}

// Check returns a [CodeInvalidInput] error for a decision that means nothing.
func (d TurnDecision) Check() error {
	switch {
	case !slices.Contains([]TurnAction{"", TurnNone, TurnExtend, TurnStop, TurnAsk, TurnFail}, d.Action):
		return Errorf(CodeInvalidInput, "the action %q is unknown; it is none, extend, stop, ask or fail", d.Action).WithPath("action")
	case (d.By != 0 || d.Until != 0) && d.Action != TurnExtend:
		return Errorf(CodeInvalidInput, "by and until belong to the action extend").WithPath("action")
	case d.Action == TurnExtend && (d.By < 0 || d.Until < 0 || (d.By > 0) == (d.Until > 0)):
		return Errorf(CodeInvalidInput, "extend needs by or until, a positive number").WithPath("by")
	case d.Action == TurnAsk && d.Reason == "":
		return Errorf(CodeInvalidInput, "say in reason what the person has to decide").WithPath("reason")
	case (d.Failure != "") != (d.Action == TurnFail):
		return Errorf(CodeInvalidInput, "the action fail needs failure, and only that action has it").WithPath("failure")
	case d.Action == TurnFail && !slices.Contains(hookFailures, d.Failure):
		return Errorf(CodeInvalidInput, "failure must be one of %s, not %q", listed(hookFailures), d.Failure).WithPath("failure")
	}
	return d.Next.check()
}

// hookFailures are the kinds that a hook may report.
var hookFailures = []FailureKind{FailureUnclearRequest, FailureScopeTooLarge, FailurePolicyViolation}

// check refuses what can never work, with [CodeInvalidInput].
func (h TurnHooks) check() error {
	for i, k := range h.Checks {
		path := PointAfterTurn.Path(i)
		switch {
		case k.Kind() != CheckByTool || len(k.Arguments) > 0:
			return Errorf(CodeInvalidInput, "%s: name a tool, without arguments: it gets the report of the turn", path).WithPath(path)
		case k.OnError == CheckErrorVeto || k.FeedbackFallback != "":
			return Errorf(CodeInvalidInput, "%s: nothing is vetoed after a turn; on_error is hold or accept, and there is no feedback_fallback", path).WithPath(fmt.Sprintf("%s.on_error", path))
		}
	}
	return PointAfterTurn.check(h.Checks)
}
