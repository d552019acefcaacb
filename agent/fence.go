package agent

import "cmp"

// Fence orders the writes of a session's runs in a store. The write with the higher fence
// wins, whenever it arrives: a store that has seen it refuses a lower one. So a late
// write of a run that was replaced changes nothing. The zero value is lower than every
// other fence.
type Fence struct {
	// Chain numbers a run together with the executions that continue it as new. It is the
	// time at which the run began, in microseconds since 1970. If clocks disagree, it is
	// one more than the chain before it in the session.
	Chain int64 `json:"chain"`
	// N counts the writes of the chain, from 1.
	N int64 `json:"n"`
	// By names the decision to write. All attempts at one write have the same name. A
	// decision of a workflow task that was lost may have the same number, but has another
	// name.
	By string `json:"by,omitempty"`
}

// Compare compares the fences' numbers, as cmp.Compare does. By does not count, so two
// decisions with the same numbers are equal.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Chain, g.Chain), cmp.Compare(f.N, g.N))
}

// After returns the first fence of a chain that follows f. began is the time at which the
// chain begins, in microseconds since 1970. The chain has written nothing yet, so N is
// zero.
func (f Fence) After(began int64) Fence { return Fence{Chain: max(f.Chain+1, began)} }
