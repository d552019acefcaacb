package loop

import (
	"math"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// What a run does for its grants and those of its sub-agents: who lacks something, who is
// served, what is asked above, and what is recalled.
//
// # Why nobody waits in a circle
//
// Let a run X rest since it has nothing left of a resource (lacks). Its report says so: its
// account at the run above, P, is dry. P takes the report whatever P is at, also while it
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

// plenty is what is left of a resource that nothing bounds.
const plenty = math.MaxInt64

// reckon puts the ledger beside what the run has used and may use.
func (s *State) reckon() reckoning {
	own := s.tally().Amounts()
	own[agent.ResourceTime] = int64(s.Budget.Worked)
	return reckoning{Ledger: s.Ledger, own: own, allowance: s.Budget.allowance()}
}

// lacks is all that keeps the run from its next step, though its own limit is not used up;
// zero where it lacks nothing.
func (s *State) lacks() (short agent.Amounts) {
	if s.couldUseNothing() {
		return short
	}
	switch {
	case s.Turn.Phase == Ready && s.limit() == nil:
		k := s.reckon()
		for _, r := range limitOrder {
			if k.left(r) <= 0 {
				short[r] = max(1, s.Budget.Last[r])
			}
		}
	case s.Turn.Phase == Working && s.delegates() > 0 && !s.mayDelegate():
		short[agent.ResourceAgents] = 1
	}
	return short
}

// couldUseNothing reports whether the run would not go on with a grant: it is held, parked,
// asks somebody, or is at its end. It lacks nothing then, or it would keep from others what
// it does not use.
func (s *State) couldUseNothing() bool {
	lives := s.Life == Live || s.Life == Carrying
	return !lives || s.End.Stopping != nil || s.Park != nil || s.Holds.any() || len(s.Requests.Open) > 0
}

// short reports whether the run lacks something.
func (s *State) short() bool { return s.lacks() != agent.Amounts{} }

// wantsAbove is what the run would have from its parent for itself and for its sub-agents, and
// how urgently (askLow, askDry). It wants only what its grant bounds: the parent can't give
// what the run's own limits bound.
func (s *step) wantsAbove() (wants, level agent.Amounts) {
	if s.Ledger.Above == nil || s.over() || s.End.Stopping != nil {
		return wants, level
	}
	k, short := s.reckon(), s.lacks()
	want := func(r agent.Resource, n, how int64) {
		if how == askLow && k.Above.Recalled {
			return // it would come, and be given back
		}
		if n > 0 && k.leftAbove(r) < n && k.leftOwn(r) > 0 {
			wants[r], level[r] = max(wants[r], n), max(level[r], how)
		}
	}
	for r := range agent.Resources {
		want(r, short[r], askDry) // for its own next step
		for _, a := range k.Accounts {
			if k.left(r) > 0 {
				break // they are granted from that
			}
			how := int64(askLow)
			if a.dry(r) {
				how = askDry
			}
			want(r, a.Wants[r], how)
		}
		if s.asksAhead(r) { // for its own next turn
			want(r, s.Budget.Last[r], askLow)
		}
	}
	if s.Ledger.Above.Denied {
		wants[agent.ResourceAgents], level[agent.ResourceAgents] = 0, 0
	}
	return wants, level
}

// asksAhead reports whether the run asks for its next turn's part of a resource while this
// turn lasts, so that it need not rest. For agents it asks when it has a call for one.
func (s *step) asksAhead(r agent.Resource) bool {
	return r.Shared() && r != agent.ResourceAgents && (s.Turn.inFlight() || s.works())
}

// asksAbove reports whether the run has something to ask for that it has not asked for
// yet, or not as urgently.
func (s *step) asksAbove() bool {
	_, level := s.wantsAbove()
	for r := range level {
		if level[r] > 0 && level[r] > s.Ledger.Above.Asked[r] {
			return true
		}
	}
	return false
}

// served is the account that is granted something now, and what; -1 if nothing can be
// granted. Those that have nothing left come first: one is granted all that it misses, or
// nothing, so that no two hold what the other misses. Who only asks early waits for them.
func (s *step) served() (i int, more agent.Amounts) {
	k, waits := s.reckon(), false
	for i, a := range k.Accounts {
		if !a.rests() {
			continue
		}
		waits = true
		if more := k.serves(i); k.suffices(a) && more != (agent.Amounts{}) {
			return i, more
		}
	}
	for i, a := range k.Accounts {
		if waits || a.Wants == (agent.Amounts{}) {
			continue
		}
		if more := k.serves(i); more != (agent.Amounts{}) {
			return i, more
		}
	}
	return -1, more
}

// denied is the account that has asked for agents in vain; -1 if none has.
func (s *step) denied() int {
	if k := s.reckon(); s.noMoreAgents(k) {
		for i, a := range k.Accounts {
			if a.Wants[agent.ResourceAgents] > 0 && k.left(agent.ResourceAgents) <= 0 {
				return i
			}
		}
	}
	return -1
}

// recalled is an account that has something which is missed here or above, and was not
// asked for it yet; -1 if there is none.
func (s *step) recalled() int {
	if s.over() {
		return -1
	}
	k := s.reckon()
	for r := range agent.Resources {
		if !s.recalls(k, r) {
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

// recalls reports whether sub-agents are to return what they do not use of a resource: the
// run above recalls it; or it is missed here, and sub-agents have what is left of the run's
// own limit.
func (s *step) recalls(k reckoning, r agent.Resource) bool {
	switch {
	case k.Above != nil && k.Above.Recalled:
		return true
	case !k.recallable(r):
		return false
	}
	return s.lacks()[r] > 0 || slices.ContainsFunc(k.Accounts, func(a Account) bool { return s.recallsFor(k, a, r) })
}

// recallsFor reports whether what an account rests for is recalled from the others. Under a
// hold nobody would use it; and where the run's own limit of something else that the account
// misses is used up, it would not go on with it.
func (s *step) recallsFor(k reckoning, a Account, r agent.Resource) bool {
	return a.dry(r) && !k.hopeless(a) && !s.Holds.any()
}

// mayRecall reports whether an account has something of a resource and was not told yet to
// return it. A sub-agent that has not begun hears of nothing.
func (s *step) mayRecall(a Account, r agent.Resource) bool {
	return !a.Recalled && a.unspent(r) > 0 && s.begunBelow(a)
}

// givesBack reports whether the run returns what it does not use: the parent has asked,
// and no model call is under way, which would use it.
func (s *step) givesBack() bool {
	a := s.Ledger.Above
	if a == nil || !a.Recalled || s.over() || s.Turn.inFlight() {
		return false
	}
	return s.reckon().returnable() != agent.Amounts{} || !s.awaitsReturns()
}

// awaitsReturns reports whether sub-agents have yet to return what they do not use. One that
// is being started is told when it has begun: the parent recalls only once.
func (s *step) awaitsReturns() bool {
	return slices.ContainsFunc(s.Ledger.Accounts, func(a Account) bool {
		return a.Recalled || !s.begunBelow(a) && a.unspentAny()
	})
}

// begunBelow reports whether an account's sub-agent has begun, and so can be told something.
func (s *step) begunBelow(a Account) bool {
	return s.Children.List[s.Children.find(a.Session)].Started
}

// limitBelow is the limit of this run that is used up, and for which a sub-agent rests; nil if
// there is none, or somebody is asked already. What the run itself is at comes to its end
// first: it was paid.
func (s *step) limitBelow() *agent.Error {
	if s.Life != Live || s.End.Stopping != nil || s.Holds.any() || s.inFlight() || s.Requests.asks(agent.LimitAsk) {
		return nil
	}
	k := s.reckon()
	for _, r := range limitOrder {
		if !k.exhausted(r) {
			continue
		}
		for _, a := range k.Accounts {
			if a.dry(r) {
				return s.used(r, k)
			}
		}
	}
	return nil
}

// reckoning is a ledger with what only its run knows: what the run itself has used, and
// how much its own limits allow it and all below it, counted from its birth.
type reckoning struct {
	Ledger
	own, allowance agent.Amounts
}

// spent is what the run and all below it are known to have used.
func (k reckoning) spent(r agent.Resource) int64 {
	n := k.own[r]
	if !r.Shared() {
		return n
	}
	n += k.Gone.Amounts()[r]
	for _, a := range k.Accounts {
		n += a.Spent.Amounts()[r]
	}
	return n
}

// unspent is what sub-agents may still use.
func (k reckoning) unspent(r agent.Resource) (n int64) {
	for _, a := range k.Accounts {
		n += a.unspent(r)
	}
	return n
}

// leftOwn is what the run's own limits leave, and leftAbove what its grant leaves. What the
// sub-agents were granted and have not used counts as gone from both.
func (k reckoning) leftOwn(r agent.Resource) int64 {
	if k.allowance[r] == agent.NotBounded {
		return plenty
	}
	return k.allowance[r] - k.spent(r) - k.unspent(r)
}

func (k reckoning) leftAbove(r agent.Resource) int64 {
	if k.Above == nil || k.Above.Granted[r] == agent.NotBounded {
		return plenty
	}
	return k.Above.Granted[r] - k.Above.Returned[r] - k.spent(r) - k.unspent(r)
}

func (k reckoning) left(r agent.Resource) int64 { return min(k.leftOwn(r), k.leftAbove(r)) }

// exhausted reports whether the run's own limit of a resource is used up for sure.
func (k reckoning) exhausted(r agent.Resource) bool {
	return k.allowance[r] != agent.NotBounded && k.spent(r) >= k.allowance[r]
}

// serves is what a sub-agent that asks is granted now: half of what is left shared among
// all who ask, but what it needs if there is as much.
func (k reckoning) serves(i int) (more agent.Amounts) {
	for r := range agent.Resources {
		left, asking := k.left(r), int64(0)
		for _, a := range k.Accounts {
			if a.Wants[r] > 0 {
				asking++
			}
		}
		want := k.Accounts[i].Wants[r]
		if want <= 0 || left <= 0 || left == plenty {
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
func (k reckoning) suffices(a Account) bool {
	for r := range agent.Resources {
		if a.dry(r) && k.left(r) <= 0 {
			return false
		}
	}
	return true
}

func (k reckoning) hopeless(a Account) bool {
	for r := range agent.Resources {
		if a.dry(r) && k.exhausted(r) {
			return true
		}
	}
	return false
}

// recallable reports whether what is missing of a resource is held by sub-agents.
func (k reckoning) recallable(r agent.Resource) bool {
	return k.leftOwn(r) <= 0 && !k.exhausted(r) && k.unspent(r) > 0
}

// returnable is what the run can give back to the parent.
func (k reckoning) returnable() (back agent.Amounts) {
	for r := range agent.Resources {
		if left := k.leftAbove(r); r.Shared() && left != plenty {
			back[r] = max(0, left)
		}
	}
	return back
}
