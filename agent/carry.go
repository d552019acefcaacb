package agent

// Carry says what a new run of a session keeps of the conversation so far.
type Carry string

// The values of Carry. The zero value means inherit.
const (
	CarryInherit Carry = "inherit" // the whole conversation
	CarryReset   Carry = "reset"   // nothing; only the session's counters continue
	CarryCompact Carry = "compact" // a summary, which the model writes first
)
