package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/fermata-agents/fermata/internal/glob"
)

// Rule decides about tool calls before they are made. If several rules match a call, deny
// beats ask and ask beats allow. A call that no rule matches is made, unless
// [Definition.Default] says otherwise.
type Rule struct {
	// Do is what the rule decides: make the call, ask a person first, or refuse it.
	Do Ruling `json:"do"`
	// Tools are names or patterns ("fs_*") of the tools that the rule is about; empty means
	// every tool.
	Tools []string `json:"tools,omitempty"`
	// Class narrows the rule to tools that only read, or to tools that change something.
	Class ToolClass `json:"class,omitempty"`
	// Arguments is a JSON Schema that the call's arguments must fit for the rule to match.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// AfterCalls lets the rule match only after so many calls of the tool in this run.
	AfterCalls int `json:"after_calls,omitempty"`
	// Otherwise makes the rule match every call that no other rule matches. It belongs to the
	// last rule, and leaves out the runtime's own tools.
	Otherwise bool `json:"otherwise,omitempty"`
	// Reason is shown to the person who is asked, and to the model if the call is refused.
	Reason string `json:"reason,omitempty"`
	// Approvers are the only people whose answer counts; nil means that anybody may answer.
	// They prove who they are with a token.
	Approvers []string `json:"approvers,omitempty"`
	// Confirm makes an approval name the digest of the arguments.
	Confirm string `json:"confirm,omitempty"`
	AnswerTimeouts
}

// AnswerTimeouts is how long a request waits for an answer. Without it, a request waits
// forever.
type AnswerTimeouts struct {
	// Remind is after how long the request shows itself again.
	Remind Duration `json:"remind,omitempty"`
	// Deadline is after how long the default answers the request.
	Deadline Duration `json:"deadline,omitempty"`
	// Default is what the deadline answers: reject or approve for an approval, stop or continue
	// for a limit, a text for a question, of 4096 bytes at most. It needs a deadline. Empty means reject and stop, and tells the model that
	// nobody answered its question.
	Default string `json:"default,omitempty"`
}

// Ruling is what a rule decides.
type Ruling string

// The rulings, the strictest last.
const (
	RulingAllow Ruling = "allow"
	RulingAsk   Ruling = "ask"
	RulingDeny  Ruling = "deny"
)

// ToolClass sorts tools by what they do to the world.
type ToolClass string

// The classes of tools.
const (
	ClassReads  ToolClass = "reads"
	ClassWrites ToolClass = "writes"
)

// ConfirmDigest is a rule's Confirm where the answer has to name the digest.
const ConfirmDigest = "digest"

// Covers reports whether the rule concerns a tool, whatever the arguments. For ask_user,
// await_resumption, wait_for_user, report_progress, show_file and tool_search only a deny rule that
// names them counts. They change nothing, and asking a person whether to ask a person helps nobody. The
// run carries out finish, return_unable and notebook as soon as it has the reply: rules may deny
// them, and nobody is asked.
func (r Rule) Covers(t ToolSpec) bool {
	if r.Otherwise && t.Executor == ExecutorRuntime {
		return false
	}
	if r.Do == RulingAsk && t.Executor == ExecutorRuntime && slices.Contains([]string{FinishTool, ReturnUnableTool, NotebookTool}, t.Name) {
		return false
	}
	if t.Name == AskUserTool || t.Name == AwaitResumptionTool || slices.Contains([]string{ShowFileTool, ToolSearchTool, WaitForUserTool, ReportProgressTool}, t.Name) && t.Executor == ExecutorRuntime {
		return r.Do == RulingDeny && r.Class == "" && glob.MatchesAny(r.Tools, t.Name)
	}
	if r.Class == ClassReads && !t.ReadOnly || r.Class == ClassWrites && t.ReadOnly {
		return false
	}
	return len(r.Tools) == 0 || glob.MatchesAny(r.Tools, t.Name)
}

func (r Rule) check() error {
	switch {
	case r.Do != RulingAllow && r.Do != RulingAsk && r.Do != RulingDeny:
		return Errorf(CodeInvalidInput, "do must be allow, ask or deny, not %q", r.Do).WithPath("do")
	case r.Class != "" && r.Class != ClassReads && r.Class != ClassWrites:
		return Errorf(CodeInvalidInput, "class must be reads or writes, not %q", r.Class).WithPath("class")
	case r.Confirm != "" && r.Confirm != ConfirmDigest:
		return Errorf(CodeInvalidInput, "confirm must be digest, not %q", r.Confirm).WithPath("confirm")
	case r.Approvers != nil && len(r.Approvers) == 0:
		return Errorf(CodeInvalidInput, "approvers is empty: name some, or leave it out, and anybody may approve").WithPath("approvers")
	case r.Do != RulingAsk && (len(r.Approvers) > 0 || r.Confirm != "" || r.AnswerTimeouts != AnswerTimeouts{}):
		return Errorf(CodeInvalidInput, "approvers, confirm, remind, deadline and default belong to a rule that asks, not to one that does %s", r.Do).WithPath("do")
	case r.Default != "" && r.Default != DefaultApprove && r.Default != DefaultReject:
		return Errorf(CodeInvalidInput, "default must be approve or reject, not %q", r.Default).WithPath("default")
	case r.Otherwise && (len(r.Tools) > 0 || r.Class != "" || len(r.Arguments) > 0 || r.AfterCalls != 0):
		return Errorf(CodeInvalidInput, "otherwise is for all that no other rule matches; leave out tools, class, arguments and after_calls").WithPath("otherwise")
	case r.AfterCalls < 0:
		return Errorf(CodeInvalidInput, "after_calls must be positive").WithPath("after_calls")
	case len(r.Arguments) > 0 && !json.Valid(r.Arguments):
		return Errorf(CodeInvalidInput, "arguments is not a JSON Schema").WithPath("arguments")
	}
	for _, p := range r.Tools {
		if _, err := path.Match(p, ""); err != nil {
			return Errorf(CodeInvalidInput, "%q is not a name or a pattern", p).WithPath("tools")
		}
	}
	return r.AnswerTimeouts.check()
}

// ToolApproval asks a person before each call of a tool, whichever agent calls it. Rules can
// make it stricter, and never less strict. The value true (in Go, the zero value) asks anybody.
type ToolApproval struct {
	// Reason is shown to the person who is asked.
	Reason string `json:"reason,omitempty"`
	// Approvers are the only people whose answer counts; nil means that anybody may answer.
	// They prove who they are with a token.
	Approvers []string `json:"approvers,omitempty"`
	// Confirm makes an approval name the digest of the arguments.
	Confirm string `json:"confirm,omitempty"`
	AnswerTimeouts
}

// Rule returns the rule that asks in this way.
func (a ToolApproval) Rule() Rule {
	return Rule{Do: RulingAsk, Reason: a.Reason, Approvers: a.Approvers, Confirm: a.Confirm, AnswerTimeouts: a.AnswerTimeouts}
}

// Check returns a [CodeInvalidInput] error that names the field if a value is invalid.
func (a ToolApproval) Check() error { return a.Rule().check() }

// UnmarshalJSON reads either true or an object.
func (a *ToolApproval) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" {
		*a = ToolApproval{}
		return nil
	}
	type plain ToolApproval
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(a)); err != nil {
		return fmt.Errorf("approval is true, or has reason, approvers, confirm, remind, deadline and default: %w", err)
	}
	return nil
}

// Strictness returns a number that is higher for a stricter rule. Deny is the strictest.
// Among rules that ask, one with approvers comes first, then one with Confirm. The zero
// Rule has 0.
func (r Rule) Strictness() int {
	switch {
	case r.Do == RulingDeny:
		return 5
	case r.Do == RulingAsk && len(r.Approvers) > 0:
		return 4
	case r.Do == RulingAsk && r.Confirm != "":
		return 3
	case r.Do == RulingAsk:
		return 2
	case r.Do == RulingAllow:
		return 1
	}
	return 0
}

func (p AnswerTimeouts) check() error {
	if p.Remind < 0 || p.Deadline < 0 {
		return Errorf(CodeInvalidInput, "remind and deadline must be positive").WithPath("deadline")
	}
	if p.Default != "" && p.Deadline == 0 {
		return Errorf(CodeInvalidInput, "a default is what a deadline decides: set deadline too").WithPath("default")
	}
	if len(p.Default) > maxQuestion {
		return Errorf(CodeInvalidInput, "the default has %d bytes; at most %d are taken", len(p.Default), maxQuestion).WithPath("default")
	}
	return nil
}
