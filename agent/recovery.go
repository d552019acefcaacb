package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Recovery says what a run does about failures, by their kind. A kind that is not named has its
// default, which docs/recovery.md lists. The zero value names none.
type Recovery map[FailureKind]Remedy

// FailureKind is a kind of failure that [Definition.Recovery] may name.
type FailureKind string

// The kinds of failures.
const (
	FailureRefusal         FailureKind = "refusal"          // the model refused to answer
	FailureProvider        FailureKind = "provider"         // the provider can't answer: a wrong key, a bad request, an outage
	FailureNoProgress      FailureKind = "no_progress"      // under completion "tool", a reply calls no tool; or too many turns are idle (loop_detection.idle)
	FailureLoop            FailureKind = "loop"             // the model repeats its calls
	FailureToolError       FailureKind = "tool_error"       // calls of one tool fail, one after the other
	FailureTruncated       FailureKind = "truncated"        // a reply was cut off at its output limit
	FailureBadOutput       FailureKind = "bad_output"       // the answer does not fit the output's schema
	FailurePolicyViolation FailureKind = "policy_violation" // a rule, or the parent, denied a call
	FailureUnable          FailureKind = "unable"           // the model called [ReturnUnableTool]
	// What a tool of hooks.after_turn may report, beside policy_violation.
	FailureUnclearRequest FailureKind = "unclear_request" // nobody could say what is asked for
	FailureScopeTooLarge  FailureKind = "scope_too_large" // the work does not fit into one step

	FailureLimitTurns  FailureKind = "limit_turns"
	FailureLimitTime   FailureKind = "limit_time"
	FailureLimitTokens FailureKind = "limit_tokens"
	FailureLimitCost   FailureKind = "limit_cost"
)

// RecoveryAction is what a run does about a failure.
type RecoveryAction string

// The actions.
const (
	RecoverRetry    RecoveryAction = "retry"    // the model is asked again
	RecoverCorrect  RecoveryAction = "correct"  // the model gets a message, and is asked again
	RecoverCompact  RecoveryAction = "compact"  // the model is asked again, with a summary of the conversation
	RecoverFallback RecoveryAction = "fallback" // the next of the agent's fallbacks is asked, from then on
	RecoverAsk      RecoveryAction = "ask"      // a person is asked what to do
	RecoverFinalize RecoveryAction = "finalize" // the model gets one last reply without tools, and then the run hands off
	RecoverHandoff  RecoveryAction = "handoff"  // sub-agents hand off, and the run fails with a handoff
	RecoverFail     RecoveryAction = "fail"     // the run fails without a handoff
)

// Remedy is what a run does about one kind of failure. It may be written as the name of its action
// alone.
type Remedy struct {
	// Do is what the run does.
	Do RecoveryAction `json:"do"`
	// Times is how often in a row retry, correct, compact or fallback is tried; zero means once.
	// After that, Then follows.
	Times int `json:"times,omitempty"`
	// Text is the message of correct; empty means a text of the runtime's.
	Text string `json:"text,omitempty"`
	// Then follows when Times are used up: ask, handoff or fail; empty means fail.
	Then RecoveryAction `json:"then,omitempty"`
}

// Bounds of a remedy.
const (
	maxRecoveryTimes = 100
	maxRecoveryText  = 4 << 10 // bytes
)

// recoveryActions are the actions that make sense for each kind, the milder ones first.
var recoveryActions = map[FailureKind][]RecoveryAction{
	FailureRefusal:         {RecoverRetry, RecoverCorrect, RecoverFallback, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureProvider:        {RecoverRetry, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureNoProgress:      {RecoverCorrect, RecoverCompact, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureLoop:            {RecoverCorrect, RecoverCompact, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureToolError:       {RecoverRetry, RecoverCorrect, RecoverCompact, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureTruncated:       {RecoverRetry, RecoverCorrect, RecoverCompact, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureBadOutput:       {RecoverCorrect, RecoverAsk, RecoverHandoff, RecoverFail},
	FailurePolicyViolation: {RecoverCorrect, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureUnable:          {RecoverAsk, RecoverHandoff},
	FailureUnclearRequest:  {RecoverCorrect, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureScopeTooLarge:   {RecoverCorrect, RecoverCompact, RecoverAsk, RecoverHandoff, RecoverFail},
	FailureLimitTurns:      {RecoverAsk, RecoverFinalize, RecoverHandoff, RecoverFail},
	FailureLimitTime:       {RecoverAsk, RecoverFinalize, RecoverHandoff, RecoverFail},
	FailureLimitTokens:     {RecoverAsk, RecoverHandoff, RecoverFail},
	FailureLimitCost:       {RecoverAsk, RecoverHandoff, RecoverFail},
}

// FailureKinds returns every kind of failure, in alphabetical order.
func FailureKinds() []FailureKind { return slices.Sorted(maps.Keys(recoveryActions)) }

// Actions returns the actions that may be named for a kind, the milder ones first; nil for an
// unknown kind.
func (k FailureKind) Actions() []RecoveryAction { return slices.Clone(recoveryActions[k]) }

// repeats reports whether an action lets the run go on by itself, and so needs a bound.
func (a RecoveryAction) repeats() bool {
	return slices.Contains([]RecoveryAction{RecoverRetry, RecoverCorrect, RecoverCompact, RecoverFallback}, a)
}

// MarshalJSON writes a remedy that is an action alone as that action's name.
func (r Remedy) MarshalJSON() ([]byte, error) {
	if r == (Remedy{Do: r.Do}) {
		return json.Marshal(string(r.Do))
	}
	type whole Remedy
	return json.Marshal(whole(r))
}

// UnmarshalJSON reads a remedy, or the name of its action.
func (r *Remedy) UnmarshalJSON(b []byte) error {
	var do RecoveryAction
	if json.Unmarshal(b, &do) == nil {
		*r = Remedy{Do: do}
		return nil
	}
	// Strictly: a decoder of a whole definition does not look into a value that decodes itself.
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil || fields == nil {
		return errRemedy
	}
	for name, value := range fields {
		if !slices.Contains([]string{"do", "times", "text", "then"}, name) || string(value) == "null" {
			return errRemedy
		}
	}
	type whole Remedy
	if json.Unmarshal(b, (*whole)(r)) != nil {
		return errRemedy
	}
	return nil
}

var errRemedy = errors.New("a remedy is an action, or an object with do, times, text and then")

// WithDefaults returns the policy with every default filled in; nil for nil.
func (r Recovery) WithDefaults() Recovery {
	whole := maps.Clone(r)
	for kind, remedy := range whole { //workflowcheck:ignore each is filled in alone
		if remedy.Do.repeats() {
			remedy.Times, remedy.Then = remedy.Attempts(), remedy.After()
			whole[kind] = remedy
		}
	}
	return whole
}

// Attempts returns how often the remedy lets the run go on by itself; zero if it does not.
func (r Remedy) Attempts() int {
	if !r.Do.repeats() {
		return 0
	}
	return or(r.Times, 1)
}

// After returns what follows when the attempts are used up.
func (r Remedy) After() RecoveryAction {
	if !r.Do.repeats() {
		return r.Do
	}
	return or(r.Then, RecoverFail)
}

// checkRecovery refuses what no run could carry out.
func (d Definition) checkRecovery() error {
	if d.Model == FlowModel && (len(d.Recovery) > 0 || d.Lessons || d.LoopDetection.named() || d.Limits.Adaptive != nil || d.OnLimit == LimitActionFinalize) {
		return Errorf(CodeInvalidInput, "agent %s: recovery, lessons, loop_detection, limits.adaptive and on_limit: finalize are about a model, and a flow has none; let its function decide", d.Name).WithPath("recovery")
	}
	for _, kind := range slices.Sorted(maps.Keys(d.Recovery)) {
		if err := d.checkRemedy(kind, d.Recovery[kind]); err != nil {
			return err
		}
	}
	return nil
}

func (d Definition) checkRemedy(kind FailureKind, r Remedy) error {
	path := "recovery." + string(kind)
	fault := func(format string, args ...any) error {
		return Errorf(CodeInvalidInput, "agent %s: %s: %s", d.Name, path, fmt.Sprintf(format, args...)).WithPath(path)
	}
	actions, known := recoveryActions[kind]
	switch {
	case !known:
		return fault("there is no such kind of failure; the kinds are %s", listed(FailureKinds()))
	case !slices.Contains(actions, r.Do):
		return fault("do must be one of %s, not %q", listed(actions), r.Do)
	case r.Times < 0 || r.Times > maxRecoveryTimes:
		return fault("times is %d; it may be 1 to %d", r.Times, maxRecoveryTimes)
	case (r.Times != 0 || r.Then != "") && !r.Do.repeats():
		return fault("times and then belong to retry, correct, compact and fallback; %s happens once", r.Do)
	case r.Then != "" && !slices.Contains([]RecoveryAction{RecoverAsk, RecoverHandoff, RecoverFail}, r.Then):
		return fault("then must be one of ask, handoff, fail, not %q", r.Then)
	case r.Text != "" && r.Do != RecoverCorrect:
		return fault("text is the message of correct; leave it out of %s", r.Do)
	case r.Text != "" && strings.TrimSpace(r.Text) == "":
		return fault("text is blank; say what the model is to do")
	case len(r.Text) > maxRecoveryText:
		return fault("text has %d bytes, and may have %d", len(r.Text), maxRecoveryText)
	case r.Do == RecoverFallback && len(d.Fallbacks) == 0:
		return fault("fallback needs fallbacks: name the models to ask")
	case kind == FailureUnable && d.Completion != CompletionTool:
		return fault("it needs completion: tool; otherwise a text without calls is the answer")
	case kind == FailureNoProgress && d.Completion != CompletionTool && d.LoopDetection.Idle == 0:
		return fault("it needs completion: tool, or loop_detection.idle; otherwise a text without calls is the answer")
	case kind == FailureBadOutput && len(d.Output) == 0:
		return fault("it needs output, the schema of the answer")
	}
	return nil
}

func listed[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}
