package wire

import "github.com/fermata-agents/fermata/agent"

// ChildStart is what a parent starts a child run with. It is the second argument of the workflow
// fermata.run, which only a workflow can give.
type ChildStart struct {
	Parent Parent `json:"parent"`
	// Depth counts the runs above this one; the root's is zero.
	Depth int `json:"depth"`
	// Background means that the parent does not wait for the result.
	Background bool `json:"background,omitempty"`
	// Ceilings are the bounds that the run's tools have to fit, one for each
	// ancestor that has one, and Rules the ancestors' own, which hold here too.
	Ceilings [][]string   `json:"ceilings,omitempty"`
	Rules    []agent.Rule `json:"rules,omitempty"`
	// Labels are those of the root, by which a policy may bind what is said to the run.
	Labels map[string]string `json:"labels,omitempty"`
	// Output is a JSON Schema for the answer; empty means the agent's own.
	Output []byte `json:"output,omitempty"`
	// KnownHolds are the holds that the parent knows of. Holds are those that hold the parent: the
	// run begins under them.
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	Holds      []agent.Hold    `json:"holds,omitempty"`
	// Grant is what the run and all runs below it may use of what the ancestors' limits bound; nil
	// if they bound nothing. MaxDepth is how many levels of runs may be below the run.
	Grant    *Amounts `json:"grant,omitempty"`
	MaxDepth int      `json:"max_depth,omitempty"`
}

// Parent names the run that gave a run its work.
type Parent struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// Call is the call that gave the work.
	Call string `json:"call,omitempty"`
}

// ParentOrder passes a verb on from a run to a child (docs/wire.md §10).
type ParentOrder struct {
	Run  string `json:"run"`  // the receiver's
	From string `json:"from"` // the sender's run
	// Verb is pause, interrupt, resume, stop or cancel.
	Verb agent.Verb `json:"verb"`
	// Own means that the parent's model means this run alone. Else Holds are all the holds above
	// the receiver, whatever came before, and KnownHolds those that the sender knows of: a hold
	// that the sender does not know of yet stays.
	Own        bool            `json:"own,omitempty"`
	Holds      []agent.Hold    `json:"holds,omitempty"`
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	Grace      agent.Duration  `json:"grace,omitempty"`
	Deadline   agent.Duration  `json:"deadline,omitempty"`
	By         string          `json:"by,omitempty"`
	// Reason is why; under resume it is what is said to the receiver's model first.
	Reason string `json:"reason,omitempty"`
	// FromSummary is for resume: the receiver goes on from a summary.
	FromSummary bool `json:"from_summary,omitempty"`
}

// ChildReport is what a run reports to its parent (docs/wire.md §10). How the run ended is not in
// it: the parent asks Temporal.
type ChildReport struct {
	Run     string       `json:"run"` // the receiver's
	Session string       `json:"session"`
	From    string       `json:"from"` // the sender's run
	Seq     int64        `json:"seq"`  // zero if only Budget is reported
	Status  agent.Status `json:"status"`
	// MetHold is an ancestor's hold that stopped an activity of the sender, which had not been told
	// of it.
	MetHold *agent.HoldRef `json:"met_hold,omitempty"`
	// Budget is what the sender uses of what limits bound.
	Budget *BudgetReport `json:"budget,omitempty"`
	// Suspension is set if the sender is suspended.
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
}
