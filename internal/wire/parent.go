package wire

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// ChildStart is what a parent passes to a child run that it starts: the second argument of the
// workflow fermata.run. The workflow accepts it only from a parent workflow.
type ChildStart struct {
	Parent Parent `json:"parent"`
	// Depth counts the runs above this one; the root's is zero.
	Depth int `json:"depth"`
	// Background means that the parent does not wait for the result.
	Background bool `json:"background,omitempty"`
	// Outlives means that the server does not cancel the run when an execution of the parent
	// closes: the parent may continue as new while it waits. So the run checks itself whether its
	// parent lives. A background run does so, too.
	Outlives bool `json:"outlives,omitempty"`
	// Ceilings bound the run's tools, with one list of tools for each ancestor that has one. A
	// tool must fit all of them. Rules are the ancestors' rules, which hold for the run, too.
	Ceilings [][]string   `json:"ceilings,omitempty"`
	Rules    []agent.Rule `json:"rules,omitempty"`
	// Labels are the root's. A policy may select runs by them.
	Labels map[string]string `json:"labels,omitempty"`
	// Principal is who started the root, if the run or one below it may have the tool memory.
	Principal string `json:"principal,omitempty"`
	// Reminders are those that the run has from the agents above.
	Reminders []agent.InheritedReminder `json:"reminders,omitempty"`
	// Output is a JSON Schema for the answer; empty means the agent's own schema.
	Output []byte `json:"output,omitempty"`
	// KnownHolds are the holds that the parent knows of, also removed ones. Holds are those that
	// hold the parent now: the run begins under them.
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	Holds      []agent.Hold    `json:"holds,omitempty"`
	// Grant is what the run and all runs below it may use at first; nil if no ancestor has a
	// limit. MaxDepth is how many levels of runs may be below the run.
	Grant    *Amounts `json:"grant,omitempty"`
	MaxDepth int      `json:"max_depth,omitempty"`
	// ParkUntil is until when the run's model may park it: the run works for a check, itself or by way of
	// those above it. Zero means no bound.
	ParkUntil time.Time `json:"park_until,omitzero"`
	// Workspace says where the run works; nil means the worker's workspace.
	Workspace *ChildWorkspace `json:"workspace,omitempty"`
}

// Place is where the calls of a run work.
type Place struct {
	// Dir is the name of a directory below the worker's directory for such workspaces; empty means the
	// worker's workspace itself.
	Dir string `json:"dir,omitempty"`
	// Env are environment variables of commands. They are no secrets.
	Env map[string]string `json:"env,omitempty"`
}

// ChildWorkspace says where a child works: at its parent's place, with the child's variables. With Own
// it first makes a workspace of its own, which is a copy of that place or empty.
type ChildWorkspace struct {
	Place
	Own *agent.OwnWorkspace `json:"own,omitempty"`
}

// Parent names the run that started a run, and the call that asked for it.
type Parent struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// Call is the parent's tool call.
	Call string `json:"call,omitempty"`
}

// ParentOrder is a verb that a run sends to a child (docs/wire.md §10).
type ParentOrder struct {
	Run  string `json:"run"`  // the receiver's
	From string `json:"from"` // the sender's run
	// Verb is pause, interrupt, resume, stop or cancel.
	Verb agent.Verb `json:"verb"`
	// Own means that the parent's model addresses this child only. Otherwise Holds are all holds
	// of the receiver's ancestors now, and replace those of earlier orders. KnownHolds are the
	// holds that the sender knows of: a hold that the sender does not know yet stays.
	Own        bool            `json:"own,omitempty"`
	Holds      []agent.Hold    `json:"holds,omitempty"`
	KnownHolds []agent.HoldRef `json:"known_holds,omitempty"`
	Grace      agent.Duration  `json:"grace,omitempty"`
	Deadline   agent.Duration  `json:"deadline,omitempty"`
	By         string          `json:"by,omitempty"`
	// Reason says why. In a resume it is a message to the receiver's model.
	Reason string `json:"reason,omitempty"`
	// Files, in a resume, come with the message: parts with files of the receiver's session, to which
	// the sender has copied them.
	Files []agent.Part `json:"files,omitempty"`
	// FromSummary, in a resume, lets the receiver's next turn begin from a summary.
	FromSummary bool `json:"from_summary,omitempty"`
	// Again, in a cancel, means that the sender was cancelled a second time: the receiver ends
	// without a grace.
	Again bool `json:"again,omitempty" since:"2"`
	// ReportEnd asks the receiver to report its end by a signal. The sender continues as new
	// while it waits for the receiver: Temporal delivers the result to no later execution.
	ReportEnd bool `json:"report_end,omitempty"`
}

// ChildReport is what a run reports to its parent (docs/wire.md §10). It does not have the run's
// outcome: a report may be forged, so the parent asks Temporal.
type ChildReport struct {
	Run     string       `json:"run"` // the receiver's
	Session string       `json:"session"`
	From    string       `json:"from"` // the sender's run
	Seq     int64        `json:"seq"`  // grows with the sender's log; zero if only Budget is reported
	Status  agent.Status `json:"status"`
	// MetHold is an ancestor's hold that stopped an activity of the sender before an order from
	// the parent told the sender of it.
	MetHold *agent.HoldRef `json:"met_hold,omitempty"`
	// Budget is what the sender uses and needs; nil if it reports nothing of that.
	Budget *BudgetReport `json:"budget,omitempty"`
	// Suspension is set if the sender is suspended.
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
}
