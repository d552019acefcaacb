package agent

// Node is a run in a tree (docs/wire.md §5). It may be out of date: AsOf says when it was
// true. The run itself knows better.
type Node struct {
	Session    string             `json:"session"`
	Run        string             `json:"run"`
	Parent     string             `json:"parent,omitempty"`
	Agent      string             `json:"agent"`
	Depth      int                `json:"depth"`
	Status     Status             `json:"status"`
	Suspension *SuspensionSummary `json:"suspension,omitempty"`
	AsOf       string             `json:"as_of"` // RFC 3339
	// Progress is how far the model says it is, the first 120 characters.
	Progress string `json:"progress,omitempty"`
	// Workspace says what became of the run's own workspace; empty if it had none or has not ended.
	Workspace WorkspaceResult `json:"workspace,omitempty"`
	// Used is what the run and all runs below it have used, as far as they have reported.
	Used Tally `json:"used,omitzero"`
	// Granted is what the parent has granted, less what was returned. Remaining is what
	// the run may still use, by the grant and by its own limits. Both are nil if nothing
	// limits the run. Remaining is also nil once the run has ended, because the rest went
	// back to the parent.
	Granted   *Budget `json:"granted,omitempty"`
	Remaining *Budget `json:"remaining,omitempty"`
}
