package agent

// ChildStart is what a run is told by the run that gives it work. Nobody outside of a
// workflow can set it: it is an argument of its own of the workflow fermata.run.
type ChildStart struct {
	Parent Parent `json:"parent"`
	// Depth counts the runs above this one; the root's is zero.
	Depth int `json:"depth"`
	// Background means that the parent does not wait for the result.
	Background bool `json:"background,omitempty"`
	// Ceilings are the bounds that the run's tools have to fit, one for each
	// ancestor that has one, and Rules the ancestors' own, which hold here too.
	Ceilings [][]string `json:"ceilings,omitempty"`
	Rules    []Rule     `json:"rules,omitempty"`
	// Labels are those of the root, by which a policy may bind what is said to the run.
	Labels map[string]string `json:"labels,omitempty"`
	// Output is a JSON Schema for the answer; empty means the agent's own.
	Output []byte `json:"output,omitempty"`
	// KnownHolds are the holds that the parent has heard of, and Held the ones that
	// hold it: the run is born under them.
	KnownHolds []HoldRef `json:"known_holds,omitempty"`
	Holds      []Hold    `json:"holds,omitempty"`
	// Grant is what the run and all below it may use of what limits above bound; nil
	// where they bound nothing. Levels is how many runs may stand below it.
	Grant    *Amounts `json:"grant,omitempty"`
	MaxDepth int      `json:"max_depth,omitempty"`
}

// Parent is the parent.
type Parent struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	// Call is the call that gave the work.
	Call string `json:"call,omitempty"`
}

// ParentOrder passes a verb on from a run to one below it (docs/wire.md §10).
type ParentOrder struct {
	Run  string `json:"run"`  // the receiver's
	From string `json:"from"` // the sender's run
	// Verb is pause, interrupt, resume, stop or cancel.
	Verb Verb `json:"verb"`
	// Own means that the parent's model means this run alone; else Held are all the
	// holds above the receiver, whatever came before, and Heard the holds that the
	// sender knows of: one that it does not know of yet is not lifted.
	Own        bool      `json:"own,omitempty"`
	Holds      []Hold    `json:"holds,omitempty"`
	KnownHolds []HoldRef `json:"known_holds,omitempty"`
	Grace      Duration  `json:"grace,omitempty"`
	Deadline   Duration  `json:"deadline,omitempty"`
	By         string    `json:"by,omitempty"`
	// Reason is why; under resume it is what is said to the receiver's model first.
	Reason string `json:"reason,omitempty"`
	// FromSummary is for resume: the receiver goes on from a summary.
	FromSummary bool `json:"from_summary,omitempty"`
}

// ChildReport is what a run tells the one above it (docs/wire.md §10). How it ended is not in it: the
// run above asks Temporal.
type ChildReport struct {
	Run     string `json:"run"` // the receiver's
	Session string `json:"session"`
	From    string `json:"from"` // the sender's run
	Seq     int64  `json:"seq"`  // zero if it tells of Share alone
	Status  Status `json:"status"`
	// MetHold is a hold above that the sender met and was not told of.
	MetHold *HoldRef `json:"met_hold,omitempty"`
	// Budget is what the sender uses of what limits bound.
	Budget *BudgetReport `json:"budget,omitempty"`
	// Suspension is set where the sender rests.
	Suspension *SuspensionSummary `json:"suspension,omitempty"`
}

// Node is a run in a tree (docs/wire.md §5). Its truth is in its own run: Heard says how
// old this is.
type Node struct {
	Session    string             `json:"session"`
	Run        string             `json:"run"`
	Parent     string             `json:"parent,omitempty"`
	Agent      string             `json:"agent"`
	Depth      int                `json:"depth"`
	Status     Status             `json:"status"`
	Suspension *SuspensionSummary `json:"suspension,omitempty"`
	AsOf       string             `json:"as_of"` // RFC 3339
	// Used is what the run and all below it have used, as far as that was heard.
	Used Tally `json:"used,omitzero"`
	// Granted is what the one above has granted it, less what it gave back; Remaining is what
	// it may still use, by that and by its own limits. Both are nil where nothing bounds it;
	// Left also at the run's end, when what was left has gone back to the parent.
	Granted   *Budget `json:"granted,omitempty"`
	Remaining *Budget `json:"remaining,omitempty"`
}
