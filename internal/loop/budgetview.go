package loop

import (
	"math"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// What a run does for its grants and those of its sub-agents: who lacks something, who is
// served, what is asked above, and what is recalled.
//
// # Why nobody waits in a circle
//
// Let a run X rest since it has nothing left of a resource (lacks). Its report says so: its
// account at the parent, P, is dry. P takes the report whatever P is at, also while it
// waits for X. One of these applies to P, for each resource that X misses:
//
//  1. P has something left. It grants it to X (served), and X goes on.
//  2. P's own limit is what bounds it (leftOwn is 0), and all of it is spent (exhausted).
//     P stops at the limit: it fails, which ends X, or asks a person (limitBelow).
//  3. P's own limit is what bounds it, and some of it is not spent. So other sub-agents
//     have that part (unspent), and P recalls it (recalled). A sub-agent returns at once
//     what it has left, or when its model call is over (givesBack), and asks those below
//     it to do the same. What comes back is left at P: see 1. What was spent meanwhile
//     leads to 2.
//  4. What bounds P is its own grant (leftAbove is 0, and leftOwn is not). P asks the run
//     above it, as urgently as X does (wantsAbove), and the same holds there. The root has
//     nobody above it, so it is in 1, 2 or 3.
//
// In each case a rule applies, a message is under way, a model call is in flight, or a
// person is asked. If P is held, 2 and 3 wait for the end of the hold: X is under it, too.
// If P ends, X is cancelled. A report that is lost does not end this: a run that rests looks
// for its parent again and again, and then asks anew (asksAnew).
//
// # Why they do not take from each other without end
//
// A recall takes what one sub-agent has and gives it to another, so two that both rest
// could pass it to and fro. These conditions prevent that:
//
//   - A run that rests is granted all that it misses, or nothing (suffices). So no two keep
//     what the other misses: one of them makes its model call.
//   - A run that could not use a grant lacks nothing (couldUseNothing). It does not recall
//     for itself what it would keep through a hold or a question.
//   - Nothing is recalled for a sub-agent that could not go on with it (recallsFor).
//   - The rules put the run's own next turn before grants below: what is left is used, or
//     granted, and not kept.
//   - A run asks for nothing early while it gives back (wantsAbove).
//   - Of what it misses, nothing is granted on the word of a report that was sent before it
//     heard of a part (heard): one part after the other would meet a recall each time.
//
// So after each grant somebody makes a model call or starts an agent, and both have bounds.

// unlimited is what is left of a resource that nothing bounds.
const unlimited = math.MaxInt64

// budgetView puts the ledger beside what the run has used and may use.
func (s *State) budgetView() budgetView {
	own := wire.UsedAmounts(s.tally())
	own[wire.ResourceTime] = int64(s.Budget.Worked)
	return budgetView{Ledger: s.Ledger, own: own, allowance: s.Budget.allowance()}
}

// missingBudget is all that keeps the run from its next step, though its own limit is not used up;
// zero where it lacks nothing.
func (s *State) missingBudget() (short wire.Amounts) {
	if s.cannotUseGrant() {
		return short
	}
	switch {
	case s.Turn.Phase == TurnReady && s.exhaustedLimit() == nil:
		k := s.budgetView()
		for _, r := range limitOrder {
			if k.remaining(r) <= 0 {
				short[r] = max(1, s.Budget.LastTurn[r])
			}
		}
	case s.Turn.Phase == TurnWorking && s.pendingDelegations() > 0 && !s.mayDelegate():
		short[wire.ResourceAgents] = 1
	}
	return short
}

// cannotUseGrant reports whether the run would not go on with a grant: it is held, parked,
// asks somebody, or is at its end. It lacks nothing then, or it would keep from others what
// it does not use.
func (s *State) cannotUseGrant() bool {
	lives := s.Phase == RunActive || s.Phase == RunContinuing
	return !lives || s.End.Stopping != nil || s.Park != nil || s.Holds.any() || len(s.Requests.Open) > 0
}

// lacksBudget reports whether the run lacks something.
func (s *State) lacksBudget() bool { return s.missingBudget() != wire.Amounts{} }

// requestFromParent is what the run would have from its parent for itself and for its sub-agents, and
// how urgently (askLow, askDry). It wants only what its grant bounds: the parent can't give
// what the run's own limits bound.
func (s *step) requestFromParent() (wants, level wire.Amounts) {
	if s.Ledger.FromParent == nil || s.decided() || s.End.Stopping != nil {
		return wants, level
	}
	k, short := s.budgetView(), s.missingBudget()
	want := func(r wire.Resource, n, how int64) {
		if how == askEarly && k.FromParent.Recalled {
			return // it would come, and be given back
		}
		if n > 0 && k.grantRemaining(r) < n && k.ownRemaining(r) > 0 {
			wants[r], level[r] = max(wants[r], n), max(level[r], how)
		}
	}
	for r := range wire.Resources {
		want(r, short[r], askUrgent) // for its own next step
		for _, a := range k.Accounts {
			if k.remaining(r) > 0 {
				break // they are granted from that
			}
			how := int64(askEarly)
			if a.blockedOn(r) {
				how = askUrgent
			}
			want(r, a.Requested[r], how)
		}
		if s.asksEarly(r) { // for its own next turn
			want(r, s.Budget.LastTurn[r], askEarly)
		}
	}
	if s.Ledger.FromParent.Denied {
		wants[wire.ResourceAgents], level[wire.ResourceAgents] = 0, 0
	}
	return wants, level
}

// asksEarly reports whether the run asks for its next turn's part of a resource while this
// turn lasts, so that it need not rest. For agents it asks when it has a call for one.
func (s *step) asksEarly(r wire.Resource) bool {
	return r.Shared() && r != wire.ResourceAgents && (s.Turn.inFlight() || s.awaitsCalls())
}

// mustAskParent reports whether the run has something to ask for that it has not asked for
// yet, or not as urgently.
func (s *step) mustAskParent() bool {
	_, level := s.requestFromParent()
	for r := range level {
		if level[r] > 0 && level[r] > s.Ledger.FromParent.Requested[r] {
			return true
		}
	}
	return false
}

// nextGrant is the account that is granted something now, and what; -1 if nothing can be
// granted. Those that have nothing left come first: one is granted all that it misses, or
// nothing, so that no two hold what the other misses. Who only asks early waits for them.
func (s *step) nextGrant() (i int, more wire.Amounts) {
	k, waits := s.budgetView(), false
	for i, a := range k.Accounts {
		if !a.blocked() {
			continue
		}
		waits = true
		if more := k.grantShare(i); k.suffices(a) && more != (wire.Amounts{}) {
			return i, more
		}
	}
	for i, a := range k.Accounts {
		if waits || a.Requested == (wire.Amounts{}) {
			continue
		}
		if more := k.grantShare(i); more != (wire.Amounts{}) {
			return i, more
		}
	}
	return -1, more
}

// nextDenial is the account that has asked for agents in vain; -1 if none has.
func (s *step) nextDenial() int {
	if k := s.budgetView(); s.noMoreAgents(k) {
		for i, a := range k.Accounts {
			if a.Requested[wire.ResourceAgents] > 0 && k.remaining(wire.ResourceAgents) <= 0 {
				return i
			}
		}
	}
	return -1
}

// nextRecall is an account that has something which is missed here or above, and was not
// asked for it yet; -1 if there is none.
func (s *step) nextRecall() int {
	if s.decided() {
		return -1
	}
	k := s.budgetView()
	for r := range wire.Resources {
		if !s.mustRecall(k, r) {
			continue
		}
		for i, a := range k.Accounts {
			if s.mayRecall(a, r) {
				return i
			}
		}
	}
	return -1
}

// mustRecall reports whether sub-agents are to return what they do not use of a resource: the
// run above recalls it; or it is missed here, and sub-agents have what is left of the run's
// own limit.
func (s *step) mustRecall(k budgetView, r wire.Resource) bool {
	switch {
	case k.FromParent != nil && k.FromParent.Recalled:
		return true
	case !k.recallable(r):
		return false
	}
	return s.missingBudget()[r] > 0 || slices.ContainsFunc(k.Accounts, func(a Account) bool { return s.recallsFor(k, a, r) })
}

// recallsFor reports whether what an account rests for is recalled from the others. Under a
// hold nobody would use it; and where the run's own limit of something else that the account
// misses is used up, it would not go on with it.
func (s *step) recallsFor(k budgetView, a Account, r wire.Resource) bool {
	return a.blockedOn(r) && !k.hopeless(a) && !s.Holds.any()
}

// mayRecall reports whether an account has something of a resource and was not told yet to
// return it. A sub-agent that has not begun hears of nothing.
func (s *step) mayRecall(a Account, r wire.Resource) bool {
	return !a.Recalled && a.unused(r) > 0 && s.accountStarted(a)
}

// mustGiveBack reports whether the run returns what it does not use: the parent has asked,
// and no model call is under way, which would use it.
func (s *step) mustGiveBack() bool {
	a := s.Ledger.FromParent
	if a == nil || !a.Recalled || s.decided() || s.Turn.inFlight() {
		return false
	}
	return s.budgetView().returnable() != wire.Amounts{} || !s.awaitsReturns()
}

// awaitsReturns reports whether sub-agents have yet to return what they do not use. One that
// is being started is told when it has begun: the parent recalls only once.
func (s *step) awaitsReturns() bool {
	return slices.ContainsFunc(s.Ledger.Accounts, func(a Account) bool {
		return a.Recalled || !s.accountStarted(a) && a.anyUnused()
	})
}

// accountStarted reports whether an account's sub-agent has begun, and so can be told something.
func (s *step) accountStarted(a Account) bool {
	return s.Children.List[s.Children.find(a.Session)].Started
}

// limitExhaustedForChild is the limit of this run that is used up, and for which a sub-agent rests; nil if
// there is none, or somebody is asked already. What the run itself is at comes to its end
// first: it was paid.
func (s *step) limitExhaustedForChild() *agent.Error {
	if s.Phase != RunActive || s.End.Stopping != nil || s.Holds.any() || s.inFlight() || s.Requests.asks(agent.RequestLimit) {
		return nil
	}
	k := s.budgetView()
	for _, r := range limitOrder {
		if !k.exhausted(r) {
			continue
		}
		for _, a := range k.Accounts {
			if a.blockedOn(r) {
				return s.limitError(r, k)
			}
		}
	}
	return nil
}

// budgetView is a ledger with what only its run knows: what the run itself has used, and
// how much its own limits allow it and all below it, counted from its birth.
type budgetView struct {
	Ledger
	own, allowance wire.Amounts
}

// used is what the run and all below it are known to have used.
func (k budgetView) used(r wire.Resource) int64 {
	n := k.own[r]
	if !r.Shared() {
		return n
	}
	n += wire.UsedAmounts(k.EndedUsage)[r]
	for _, a := range k.Accounts {
		n += wire.UsedAmounts(a.Used)[r]
	}
	return n
}

// unused is what sub-agents may still use.
func (k budgetView) unused(r wire.Resource) (n int64) {
	for _, a := range k.Accounts {
		n += a.unused(r)
	}
	return n
}

// ownRemaining is what the run's own limits leave, and leftAbove what its grant leaves. What the
// sub-agents were granted and have not used counts as gone from both.
func (k budgetView) ownRemaining(r wire.Resource) int64 {
	if k.allowance[r] == wire.Unlimited {
		return unlimited
	}
	return k.allowance[r] - k.used(r) - k.unused(r)
}

func (k budgetView) grantRemaining(r wire.Resource) int64 {
	if k.FromParent == nil || k.FromParent.Granted[r] == wire.Unlimited {
		return unlimited
	}
	return k.FromParent.Granted[r] - k.FromParent.Returned[r] - k.used(r) - k.unused(r)
}

func (k budgetView) remaining(r wire.Resource) int64 {
	return min(k.ownRemaining(r), k.grantRemaining(r))
}

// exhausted reports whether the run's own limit of a resource is used up for sure.
func (k budgetView) exhausted(r wire.Resource) bool {
	return k.allowance[r] != wire.Unlimited && k.used(r) >= k.allowance[r]
}

// grantShare is what a sub-agent that asks is granted now: half of what is left shared among
// all who ask, but what it needs if there is as much.
func (k budgetView) grantShare(i int) (more wire.Amounts) {
	for r := range wire.Resources {
		left, asking := k.remaining(r), int64(0)
		for _, a := range k.Accounts {
			if a.Requested[r] > 0 {
				asking++
			}
		}
		want := k.Accounts[i].Requested[r]
		if want <= 0 || left <= 0 || left == unlimited {
			continue
		}
		more[r] = left
		if r.Shared() {
			more[r] = max(left/(2*asking), min(left, want))
		}
	}
	return more
}

// suffices reports whether something is left of all that an account misses, and hopeless
// whether the run's own limit of some of it is used up.
func (k budgetView) suffices(a Account) bool {
	for r := range wire.Resources {
		if a.blockedOn(r) && k.remaining(r) <= 0 {
			return false
		}
	}
	return true
}

func (k budgetView) hopeless(a Account) bool {
	for r := range wire.Resources {
		if a.blockedOn(r) && k.exhausted(r) {
			return true
		}
	}
	return false
}

// recallable reports whether what is missing of a resource is held by sub-agents.
func (k budgetView) recallable(r wire.Resource) bool {
	return k.ownRemaining(r) <= 0 && !k.exhausted(r) && k.unused(r) > 0
}

// returnable is what the run can give back to the parent.
func (k budgetView) returnable() (back wire.Amounts) {
	for r := range wire.Resources {
		if left := k.grantRemaining(r); r.Shared() && left != unlimited {
			back[r] = max(0, left)
		}
	}
	return back
}
