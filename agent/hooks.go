package agent

import (
	"encoding/json"
)

// Hooks are checks at other points of a run than its end. The zero value has none.
type Hooks struct {
	// BeforeRun look at the task before the first turn of a run.
	BeforeRun RunHooks `json:"before_run,omitzero"`
	// BeforeCalls look at the calls of a reply before any of them is made.
	BeforeCalls CallHooks `json:"before_calls,omitzero"`
	// AfterTurn look at each turn after which the run would go on, and may steer it.
	AfterTurn TurnHooks `json:"after_turn,omitzero"`
	// BeforeSuspension are asked before a person's pause, or a park, suspends the run. A veto lets the
	// run go on.
	BeforeSuspension HookList `json:"before_suspension,omitzero"`
	// AfterSuspension are told of a suspension once it is stored.
	AfterSuspension HookList `json:"after_suspension,omitzero"`
	// BeforeResume are asked before a person's resume is carried out. A veto refuses the resume with
	// [CodeDenied].
	BeforeResume HookList `json:"before_resume,omitzero"`
	// AfterResume are told of a resume before the run goes on.
	AfterResume HookList `json:"after_resume,omitzero"`
}

// RunHooks are checks of a run's task, before its first turn. They are made in their order. A veto fails
// the run with [CodeDenied], and no model is asked for a turn. Messages that come later are not looked at.
type RunHooks struct {
	// Checks are made one after the other; at most 8. Each is a tool, a command or a judge.
	Checks []Check `json:"checks,omitempty"`
}

// RunTask is what the tool of a check in hooks.before_run gets.
type RunTask struct {
	Session string `json:"session"`
	// Task is what people and programs have asked the run, or the run before if this one goes on from there
	// without a message. A daemon's is what woke it first. It is empty if the task is in Files alone.
	Task string `json:"task"`
	// Files are the files that came with the task, without what is in them.
	Files []TaskFile `json:"files,omitempty"`
}

// TaskFile is a file of a run's task.
type TaskFile struct {
	// Name is the file's name without folders; empty if it has none. Whoever sends it chooses it.
	Name string `json:"name,omitempty"`
	// MediaType is what the bytes are, as "image/png". It was found in the bytes, where they say it.
	MediaType string `json:"media_type"`
}

// check refuses what can never work, with [CodeInvalidInput].
func (h RunHooks) check() error {
	for i, k := range h.Checks {
		if k.Kind() == CheckByAgent {
			return Errorf(CodeInvalidInput, "%s: before a run a tool, a command or a judge looks, and no agent", PointBeforeRun.Path(i)).WithPath(PointBeforeRun.Path(i) + ".agent")
		}
	}
	return PointBeforeRun.check(h.Checks)
}

// CallHooks are checks of the calls of a reply. They are made in their order, each time the model asks
// for calls. If all accept, the calls are made, and rules and approvals apply as without them. A veto
// ends the round.
type CallHooks struct {
	// Checks are made one after the other; at most 8.
	Checks []Check `json:"checks,omitempty"`
	// OnVeto says what becomes of calls that a check vetoes; empty means replace.
	OnVeto VetoAction `json:"on_veto,omitempty"`
	// Max is after how many vetoes in a row the run fails with [CodeVerifyCapped]; zero means 3, and -1
	// any number.
	Max int `json:"max,omitempty"`
}

// VetoAction says what becomes of calls that a check vetoes.
type VetoAction string

// What becomes of such calls.
const (
	VetoReplace VetoAction = "replace" // they are not made: their results say why, and the model may ask for others
	VetoRetain  VetoAction = "retain"  // they are made, and the model reads the verdict after their results
)

// defaultCallVetoes is after how many vetoes of calls in a row a run fails, if its agent does not say.
const defaultCallVetoes = 3

// WithDefaults returns h with every default filled in.
func (h Hooks) WithDefaults() Hooks {
	if len(h.BeforeCalls.Checks) > 0 {
		h.BeforeCalls.OnVeto = or(h.BeforeCalls.OnVeto, VetoReplace)
		h.BeforeCalls.Max = or(h.BeforeCalls.Max, defaultCallVetoes)
	}
	return h
}

// ProposedCalls are calls that a model asks for, as the tool of a check gets them before they are made.
type ProposedCalls struct {
	// Task is what people and programs have asked the run. A daemon's is what woke it last.
	Task string `json:"task"`
	// Text is what the model wrote beside the calls.
	Text string `json:"text,omitempty"`
	// Calls leave out those that were refused already.
	Calls []ProposedCall `json:"calls"`
	Turn  int            `json:"turn"`
}

// ProposedCall is a call that a model asks for.
type ProposedCall struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// check refuses hooks that can never work, with [CodeInvalidInput].
func (c CallHooks) check() error {
	switch {
	case len(c.Checks) == 0 && (c.Max != 0 || c.OnVeto != ""):
		return Errorf(CodeInvalidInput, "hooks.before_calls.checks is empty; name a check").WithPath("hooks.before_calls.checks")
	case c.Max < -1:
		return Errorf(CodeInvalidInput, "hooks.before_calls.max is %d; it is a number of vetoes, or -1 for any number", c.Max).WithPath("hooks.before_calls.max")
	case c.OnVeto != "" && c.OnVeto != VetoReplace && c.OnVeto != VetoRetain:
		return Errorf(CodeInvalidInput, "hooks.before_calls.on_veto is replace or retain, not %q", c.OnVeto).WithPath("hooks.before_calls.on_veto")
	}
	return PointBeforeCalls.check(c.Checks)
}
