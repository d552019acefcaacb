package agent

import (
	"encoding/json"
	"path"
)

// Rule decides about tool calls before they are made. Of all rules that match a
// call the strictest wins: deny over ask over allow. A call that no rule matches
// is made (catalogue HA-112).
type Rule struct {
	Do Ruling `json:"do"`
	// Tools are names or patterns ("fs_*"); empty means every tool.
	Tools []string `json:"tools,omitempty"`
	// Class narrows the rule to tools that only read, or that change something.
	Class ToolClass `json:"class,omitempty"`
	// Arguments is a JSON Schema that the call's arguments must fit for the rule to match.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Over lets the rule match only after so many calls of the tool in this run.
	Over int `json:"over,omitempty"`
	// Reason is shown to whoever is asked, and to the model where it is denied.
	Reason string `json:"reason,omitempty"`
	// Approvers are the only ones whose answer counts; they prove it with a token.
	Approvers []string `json:"approvers,omitempty"`
	// Confirm is "digest" where the answer has to name the arguments' digest.
	Confirm string `json:"confirm,omitempty"`
	Patience
}

// Patience is how long a request waits; zero values wait for ever.
type Patience struct {
	// Remind makes the request show itself again after so long.
	Remind Duration `json:"remind,omitempty"`
	// Deadline decides the request by its Default after so long.
	Deadline Duration `json:"deadline,omitempty"`
	// Default is what the deadline decides. For an approval: reject (where it is
	// empty) or approve; for a limit: stop (where empty) or continue; for a
	// question: the answer, where empty the model is told that nobody answered.
	Default string `json:"default,omitempty"`
}

// Ruling is what a rule decides.
type Ruling string

// The rulings, the strictest last.
const (
	Allow Ruling = "allow"
	Ask   Ruling = "ask"
	Deny  Ruling = "deny"
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

// Covers reports whether the rule is about a tool, whatever the arguments. The runtime's
// tools that ask a person or park a run are covered by rules that deny them by name alone:
// they change nothing, and to ask about a question helps nobody.
func (r Rule) Covers(t ToolSpec) bool {
	if t.Name == AskUserTool || t.Name == ParkTool {
		return r.Do == Deny && r.Class == "" && MatchesAny(r.Tools, t.Name)
	}
	if r.Class == ClassReads && !t.ReadOnly || r.Class == ClassWrites && t.ReadOnly {
		return false
	}
	return len(r.Tools) == 0 || MatchesAny(r.Tools, t.Name)
}

// MatchesAny reports whether a name is one of some names or fits one of some
// patterns, of which "*" is the only sign.
func MatchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

func (r Rule) check() error {
	switch {
	case r.Do != Allow && r.Do != Ask && r.Do != Deny:
		return Errorf(InvalidInput, "do must be allow, ask or deny, not %q", r.Do).At("do")
	case r.Class != "" && r.Class != ClassReads && r.Class != ClassWrites:
		return Errorf(InvalidInput, "class must be reads or writes, not %q", r.Class).At("class")
	case r.Confirm != "" && r.Confirm != ConfirmDigest:
		return Errorf(InvalidInput, "confirm must be digest, not %q", r.Confirm).At("confirm")
	case r.Do != Ask && (len(r.Approvers) > 0 || r.Confirm != "" || r.Patience != Patience{}):
		return Errorf(InvalidInput, "approvers, confirm, remind, deadline and default belong to a rule that asks, not to one that does %s", r.Do).At("do")
	case r.Default != "" && r.Default != DefaultApprove && r.Default != DefaultReject:
		return Errorf(InvalidInput, "default must be approve or reject, not %q", r.Default).At("default")
	case r.Over < 0:
		return Errorf(InvalidInput, "over must be positive").At("over")
	case len(r.Arguments) > 0 && !json.Valid(r.Arguments):
		return Errorf(InvalidInput, "arguments is not a JSON Schema").At("arguments")
	}
	for _, p := range r.Tools {
		if _, err := path.Match(p, ""); err != nil {
			return Errorf(InvalidInput, "%q is not a name or a pattern", p).At("tools")
		}
	}
	return r.Patience.check()
}

func (p Patience) check() error {
	if p.Remind < 0 || p.Deadline < 0 {
		return Errorf(InvalidInput, "remind and deadline must be positive").At("deadline")
	}
	if p.Default != "" && p.Deadline == 0 {
		return Errorf(InvalidInput, "a default is what a deadline decides: set deadline too").At("default")
	}
	return nil
}
