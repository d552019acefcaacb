package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// This file decides what a run does about grants: who lacks something (missingBudget), who gets
// the next grant (nextGrant), what the run asks of its parent (requestFromParent), and what it
// recalls from its sub-agents (nextRecall).
//
// # Why no runs wait for each other in a circle
//
// Let a run X be suspended because nothing is left of a resource (missingBudget). X reports it,
// and X's account at its parent P is blocked on the resource (Account.blockedOn). P accepts the
// report in every phase, also while it waits for X. Then one of these cases applies to P, for
// each resource that X lacks:
//
//  1. P has something left (budgetView.remaining is positive). It grants it to X (nextGrant), and
//     X continues.
//  2. P's own limit binds (ownRemaining is zero or less), and all of it is used (exhausted). P
//     stops at the limit (limitExhaustedForChild): it fails, which ends X, or it asks a person.
//  3. P's own limit binds, and a part of it is not used. Then other sub-agents have that part
//     (unused), and P recalls it (nextRecall). A sub-agent returns what it has left at once, or
//     after its model call (mustGiveBack), and recalls from its own sub-agents. What comes back
//     is left at P: case 1. What was used meanwhile leads to case 2.
//  4. P's own grant binds (grantRemaining is zero or less, ownRemaining is positive). P asks its
//     own parent, as urgently as X asks (requestFromParent), and the cases apply there. The root
//     has no parent, so it is in case 1, 2 or 3. If P waits for X and for nothing that works, it
//     is suspended, too (onlyAwaitsGrantBelow): else the one that asks a person would wait for P.
//
// So always a rule applies, a message is under way, a model call is in flight, or a person is
// asked. If P is held, cases 2 and 3 wait until the hold is removed: X is held, too. If P ends, X
// is cancelled. A lost report does not end this: a suspended run checks its parent from time to
// time, and then asks again (Ledger.askAgain).
//
// # Why runs do not take from each other without end
//
// A recall takes from one sub-agent what another gets. Two that are both suspended could pass it
// to and fro. These conditions prevent that:
//
//   - A suspended run gets something of every resource that it lacks, or nothing (suffices).
//     Something of each is enough for a model call, so no two runs keep what the other lacks.
//   - A run that could not use a grant lacks nothing (cannotUseGrant). It does not recall for
//     itself what it would keep through a hold or a question.
//   - A run recalls nothing for a sub-agent that could not continue with it (recallsFor).
//   - The rules put the run's own next turn before its grants: what is left is used or granted,
//     and not kept.
//   - A run asks for nothing early while its parent recalls (requestFromParent).
//   - A report that was sent before its run received the last grant changes no request (behind in
//     Ledger.report). Otherwise the parts of one grant could go back and forth with recalls.
//
// So after each grant some run makes a model call or starts an agent, and both are limited.

// budgetView returns the ledger together with what the run has used and may use.
func (s *State) budgetView() budgetView {
	own := wire.UsedAmounts(s.tally())
	own[wire.ResourceTime] = int64(s.Budget.Worked)
	return budgetView{Ledger: s.Ledger, own: own, allowance: s.Budget.allowance()}
}

// missingBudget returns what the run needs for its next model call, check or sub-agent and has not, if no
// limit of its own is used up. It is zero for each resource that is not missing.
func (s *State) missingBudget() (short wire.Amounts) {
	switch {
	case s.cannotUseGrant():
	case s.Turn.Phase == TurnReady && s.Checks.Proposal != nil: // the answer is there: its checks need no turn
		short = s.missingForCheck()
	case s.Turn.Phase == TurnReady && s.exhaustedLimit() == nil:
		k := s.budgetView()
		for _, r := range limitOrder {
			// As long as something is left, the run makes its call, and may use more than that:
			// nobody knows before a reply what it will use.
			if k.remaining(r) <= 0 {
				short[r] = max(1, s.Budget.LastTurn[r])
			}
		}
	// A flow may always have a step open, and never come to a turn that begins from ready.
	case s.isFlow() && s.Turn.Phase == TurnWorking && s.Flow.News && s.grantExhausted() && s.exhaustedLimit() == nil:
		short = s.exceededGrant()
	case s.Turn.Phase == TurnWorking && s.pendingDelegations() > 0 && !s.mayDelegate():
		short[wire.ResourceAgents] = 1
	}
	return short
}

// cannotUseGrant reports whether the run would not continue after a grant: it is held, parked or
// ending, or it asks a person. Such a run lacks nothing: it would only keep the grant from others.
func (s *State) cannotUseGrant() bool {
	lives := s.Phase == RunActive || s.Phase == RunContinuing
	// A flow's other steps go on beside its questions.
	asks := len(s.Requests.Open) > 0 && !s.isFlow() || s.Requests.asks(agent.RequestLimit)
	return !lives || s.End.Stopping != nil || s.Park != nil || s.Holds.any() || asks
}

// lacksBudget reports whether any resource is missing.
func (s *State) lacksBudget() bool { return s.missingBudget() != wire.Amounts{} }

// requestFromParent returns what the run asks of its parent, for itself and for its sub-agents, and
// how urgently (askEarly, askUrgent). It asks only if its grant binds: if its own limits bind, the
// parent cannot help.
func (s *step) requestFromParent() (wants, level wire.Amounts) {
	if s.Ledger.FromParent == nil || s.outcomeDecided() || s.End.Stopping != nil {
		return wants, level
	}
	k, short := s.budgetView(), s.missingBudget()
	want := func(r wire.Resource, n, how int64) {
		if how == askEarly && k.FromParent.Recalled {
			return // the grant would be recalled at once
		}
		if n > 0 && k.grantRemaining(r) < n && k.ownRemaining(r) > 0 {
			wants[r], level[r] = max(wants[r], n), max(level[r], how)
		}
	}
	for r := range wire.Resources {
		want(r, short[r], askUrgent) // for its own next call
		for _, a := range k.Accounts {
			if k.remaining(r) > 0 {
				break // the sub-agents get their grants from that
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
	if s.Ledger.FromParent.Denied { // a denial is final until a grant of agents comes after all
		wants[wire.ResourceAgents], level[wire.ResourceAgents] = 0, 0
	}
	return wants, level
}

// asksEarly reports whether the run asks now, during this turn, for what its next turn needs of a
// resource: then it need not be suspended. It asks for agents only when it has a call for one.
func (s *step) asksEarly(r wire.Resource) bool {
	return r.Shared() && r != wire.ResourceAgents && (s.Turn.inFlight() || s.awaitsCalls())
}

// mustAskParent reports whether the run has a request that it has not sent yet, or not as urgently.
func (s *step) mustAskParent() bool {
	_, level := s.requestFromParent()
	for r := range level {
		if level[r] > 0 && level[r] > s.Ledger.FromParent.Requested[r] {
			return true
		}
	}
	return false
}

// nextGrant returns the index of the account that gets a grant now, and the grant; -1 if none can be
// made. Blocked accounts come first. Each gets something of every resource that it lacks, or
// nothing: else two could each keep what the other lacks. Accounts that only ask early wait for them.
func (s *step) nextGrant() (i int, more wire.Amounts) {
	if len(s.Ledger.Accounts) == 0 {
		return -1, more
	}
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

// nextDenial returns the index of an account that asks for agents though no more can be granted; -1
// if there is none.
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

// nextRecall returns the index of an account that has something which is missing here or above, and
// that was not asked yet to return it; -1 if there is none.
func (s *step) nextRecall() int {
	if s.outcomeDecided() || len(s.Ledger.Accounts) == 0 {
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

// mustRecall reports whether sub-agents have to return what they do not use of a resource. That is
// so if the parent recalls; or if it is missing here, and sub-agents have what is left of the
// run's own limit.
func (s *step) mustRecall(k budgetView, r wire.Resource) bool {
	switch {
	case k.FromParent != nil && k.FromParent.Recalled:
		return true
	case !k.recallable(r):
		return false
	}
	return s.missingBudget()[r] > 0 || slices.ContainsFunc(k.Accounts, func(a Account) bool { return s.recallsFor(k, a, r) })
}

// recallsFor reports whether the run recalls a resource from the others because an account is
// blocked on it. Under a hold nobody would use it. It would also be useless if the account lacks
// another resource too, and the run's own limit of that one is used up.
func (s *step) recallsFor(k budgetView, a Account, r wire.Resource) bool {
	return a.blockedOn(r) && !k.hopeless(a) && !s.Holds.any()
}

// mayRecall reports whether an account has something of a resource, and was not asked yet to return
// it. A sub-agent that has not begun cannot be asked.
func (s *step) mayRecall(a Account, r wire.Resource) bool {
	return !a.Recalled && a.unused(r) > 0 && s.accountStarted(a)
}

// mustGiveBack reports whether the run returns now what it does not use: the parent recalls, and no
// model call is in flight, which may still use it.
func (s *step) mustGiveBack() bool {
	a := s.Ledger.FromParent
	if a == nil || !a.Recalled || s.outcomeDecided() || s.Turn.inFlight() {
		return false
	}
	// With nothing to return and no returns to wait for, giveBack still runs once: it clears Recalled.
	return s.budgetView().returnable() != wire.Amounts{} || !s.awaitsReturns()
}

// awaitsReturns reports whether sub-agents still have to return what they do not use. A sub-agent
// that has not begun counts, too: the parent recalls only once, so the recall stays open for it.
func (s *step) awaitsReturns() bool {
	return slices.ContainsFunc(s.Ledger.Accounts, func(a Account) bool {
		return a.Recalled || !s.accountStarted(a) && a.anyUnused()
	})
}

// accountStarted reports whether an account's sub-agent has started, so that it can get orders.
func (s *step) accountStarted(a Account) bool {
	return s.Children.List[s.Children.find(a.Session)].Started
}

// limitExhaustedForChild returns the error of an own limit that is used up and for which a sub-agent
// is suspended. It returns nil if there is none, or a person is asked already. It also waits for
// the run's own calls in flight, because they are paid already.
func (s *step) limitExhaustedForChild() *agent.Error {
	if s.Phase != RunActive || s.End.Stopping != nil || s.Holds.any() || s.inFlight() || s.Requests.asks(agent.RequestLimit) || len(s.Ledger.Accounts) == 0 {
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

// budgetView is a ledger together with what only its run knows: what the run itself has used (own),
// and how much its own limits allow its tree (allowance). Both count from the run's start.
type budgetView struct {
	Ledger
	own, allowance wire.Amounts
}

// used returns what the run and all runs below it are known to have used.
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

// unused returns what sub-agents were granted and have not used, as far as is known.
func (k budgetView) unused(r wire.Resource) (n int64) {
	for _, a := range k.Accounts {
		n += a.unused(r)
	}
	return n
}

// ownRemaining returns what the run's own limits leave, and grantRemaining what its grant leaves.
// Both count what sub-agents were granted as used. remaining returns the smaller one. All three
// return unlimited if nothing binds, and may be negative: a reply can use more than was left.
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

// exhausted reports whether the run's own limit of a resource is used up: what sub-agents could
// still return does not count as used.
func (k budgetView) exhausted(r wire.Resource) bool {
	return k.allowance[r] != wire.Unlimited && k.used(r) >= k.allowance[r]
}

// grantShare returns what a sub-agent that asks would get now. Half of what is left is shared
// equally by all that ask. If a sub-agent needs more than its share, it gets that, or all that is
// left.
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
		if r.Shared() { // time is not: giving all of it takes it from nobody
			more[r] = max(left/(2*asking), min(left, want))
		}
	}
	return more
}

// suffices reports whether something is left of every resource that an account is blocked on.
// hopeless reports whether the run's own limit of one of them is used up.
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

// recallable reports whether the run's own limit binds, and sub-agents have what is left of it.
func (k budgetView) recallable(r wire.Resource) bool {
	return k.ownRemaining(r) <= 0 && !k.exhausted(r) && k.unused(r) > 0
}

// returnable returns what the run can give back to its parent. Time is never given back.
func (k budgetView) returnable() (back wire.Amounts) {
	for r := range wire.Resources {
		if left := k.grantRemaining(r); r.Shared() && left != unlimited {
			back[r] = max(0, left)
		}
	}
	return back
}
