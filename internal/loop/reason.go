package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A reason keeps the run from its next turn or call. What the run waits for is a view of all
// its reasons. So is who lets it continue, when it continues by itself, and how listings find it.
type reason struct {
	kind    agent.SuspensionKind
	owner   agent.Owner
	expires time.Time // zero: never by itself
	finds   []string  // what listings find it by
}

// reasons are a run's reasons to wait, in this order: requests, a park, holds, a missing grant,
// children. The first one names the suspension.
type reasons []reason

// reasons returns all that keeps the run from its next turn or call.
func (s *State) reasons() (all reasons) {
	if s.isFlow() {
		return s.flowReasons()
	}
	all = slices.Concat(s.Requests.reasons(), s.Park.reasons(), s.Holds.reasons(), s.budgetReasons())
	// Only if nothing else keeps the run: what it waits for itself is more to the point.
	if len(all) == 0 && s.onlyAwaitsSuspendedChildren() {
		all = append(all, reason{kind: agent.SuspensionAwaitingChildren, owner: agent.OwnerRuntime, finds: []string{"children"}})
	}
	return all
}

// kind returns the suspension's kind.
func (rs reasons) kind() agent.SuspensionKind {
	if len(rs) == 0 {
		return agent.SuspensionAwaitingChildren
	}
	return rs[0].kind
}

// owner returns who lets the run continue. A hold comes first: nothing but its removal lets a
// held run continue.
func (rs reasons) owner() agent.Owner {
	for _, r := range rs {
		if r.kind == agent.SuspensionHeld {
			return r.owner
		}
	}
	if len(rs) == 0 {
		return agent.OwnerRuntime
	}
	return rs[0].owner
}

// expires returns when the suspension ends by itself: the earliest time of the reasons that
// have its kind.
func (rs reasons) expires() (at time.Time) {
	for _, r := range rs {
		if r.kind == rs[0].kind {
			at = earlier(at, r.expires)
		}
	}
	return at
}

// earlier returns the earlier of two times. A zero time counts as none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
