package agent

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
