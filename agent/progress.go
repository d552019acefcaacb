package agent

// Tools with which a model speaks to the people who follow it. An agent has them if its tools name
// them, and the run itself carries them out.
const (
	ReportProgressTool = "report_progress" // says how far the model is
	WaitForUserTool    = "wait_for_user"   // waits for the user's next message
)

// Progress is how far a model says it is, with the tool [ReportProgressTool]. It is the model's own
// claim: nothing is decided by it.
type Progress struct {
	// Message is what the model does at the moment, in at most 500 bytes of JSON.
	Message string `json:"message,omitempty"`
	// Entries are the parts of its work; at most 32, each with at most 200 bytes of JSON.
	Entries []TodoItem `json:"entries,omitempty"`
	// Replace means that the report superseded the one before. Else it was added to it: Message and
	// Entries are what both come to.
	Replace bool `json:"replace"`
}

// IsZero reports whether nothing was reported.
func (p Progress) IsZero() bool { return p.Message == "" && len(p.Entries) == 0 }

// Line returns what the model is at, for a listing: the message or, without one, the first entry that is in
// progress.
func (p Progress) Line() string {
	if p.Message != "" {
		return p.Message
	}
	for _, e := range p.Entries {
		if e.State == TodoInProgress {
			return e.Text
		}
	}
	return ""
}

// Done returns how many entries are done.
func (p Progress) Done() (n int) {
	for _, e := range p.Entries {
		if e.State == TodoDone {
			n++
		}
	}
	return n
}

func (p Progress) size() int {
	n := len(p.Message)
	for _, e := range p.Entries {
		n += 48 + len(e.Text)
	}
	return n
}
