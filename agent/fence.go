package agent

import "cmp"

// Fence orders the writes that runs decide for their session in a store. Of two writes
// the one with the higher fence is right, whenever they arrive: a store that has seen
// it never takes the lower one again. Its zero value is below every other.
type Fence struct {
	// Chain is the chain of executions that decided: a run and the executions that it
	// is carried over into. It is when the chain began, in microseconds since 1970, or
	// one more than the chain before it in the session where clocks disagree.
	Chain int64 `json:"chain"`
	// N counts what the chain has decided to write, from 1.
	N int64 `json:"n"`
	// By names the decision: all attempts at one write have it, and no other write of
	// the same number, as one that was decided within a workflow task that was lost.
	By string `json:"by,omitempty"`
}

// Compare orders fences by their numbers: -1 where f is lower than g, and 0 where they
// have the same numbers, also if they name different decisions.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Chain, g.Chain), cmp.Compare(f.N, g.N))
}

// After is the fence of a chain that begins behind another one's writes: at a time in
// microseconds since 1970, as the one who begins it knows it. It has written nothing.
func (f Fence) After(began int64) Fence { return Fence{Chain: max(f.Chain+1, began)} }
