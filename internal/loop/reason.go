package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A reason keeps a run from its next step. What the run waits for, who lets it go on,
// when it does so by itself and how listings find it are views of all its reasons.
type reason struct {
	kind    agent.SuspensionKind
	owner   agent.Owner
	expires time.Time // zero: never by itself
	finds   []string  // what listings find it by
}

// reasons are in the order in which one names the suspension: what is asked comes before
// what is waited for, and that before a hold.
type reasons []reason

// reasons lists all that keeps the run from its next step.
func (s *State) reasons() (all reasons) {
	all = slices.Concat(s.Requests.reasons(), s.Park.reasons(), s.Holds.reasons(s.Suspensions.by()), s.budgetReasons())
	if len(all) == 0 && s.onlyAwaitsSuspendedChildren() {
		all = append(all, reason{kind: agent.SuspensionAwaitingChildren, owner: agent.OwnerRuntime, finds: []string{"children"}})
	}
	return all
}

// kind is the suspension's kind.
func (rs reasons) kind() agent.SuspensionKind {
	if len(rs) == 0 {
		return agent.SuspensionAwaitingChildren
	}
	return rs[0].kind
}

// owner is who lets the run go on: exactly one at a time. A hold comes first, since
// nothing else lets a held run go on.
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

// expires is the earliest time at which what names the suspension ends by itself.
func (rs reasons) expires() (at time.Time) {
	for _, r := range rs {
		if r.kind == rs[0].kind {
			at = earlier(at, r.expires)
		}
	}
	return at
}

// earlier is the earlier of two times; a zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
