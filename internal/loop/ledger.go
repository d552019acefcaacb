package loop

import (
	"math"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// unlimited is what is left of a resource that has no limit.
const unlimited = math.MaxInt64

// Ledger is the part that shares limits between a run and its sub-agents: what the parent
// granted to the run, and what the run granted to them. All its numbers are sums over a
// run's life and never fall. Only one side writes each: the parent what it granted, the
// sub-agent what it returned and used. So a late, repeated or lost message can only make the
// parent reserve too much.
type Ledger struct {
	// FromParent is the run's account with its parent; nil if no ancestor's limit bounds the
	// run.
	FromParent *ParentAccount `json:"from_parent,omitempty"`
	// Accounts are the accounts of sub-agents that have not ended. EndedUsage is what the
	// others have used.
	Accounts   []Account   `json:"accounts,omitempty"`
	EndedUsage agent.Tally `json:"ended_usage,omitzero"`
}

// ParentAccount is a run's account with its parent, as the run knows it.
type ParentAccount struct {
	Granted  wire.Amounts `json:"granted"`
	Returned wire.Amounts `json:"returned,omitzero"`
	// Requested says how urgently the run has asked for more of a resource and not received
	// it: askEarly, askUrgent, or 0.
	Requested wire.Amounts `json:"requested,omitzero"`
	// Recalled means that the parent has recalled what the run does not use.
	Recalled bool `json:"recalled,omitempty"`
	// Denied means that the parent grants no more agents.
	Denied bool `json:"denied,omitempty"`
}

// Account is a sub-agent's account as its parent knows it.
type Account struct {
	Session  string       `json:"session"`
	Granted  wire.Amounts `json:"granted"`
	Returned wire.Amounts `json:"returned,omitzero"`
	Used     agent.Tally  `json:"used,omitzero"`
	// Requested is how much more the sub-agent has asked for and not received. Blocked is 1
	// where it, or a run below it, is suspended until it gets more.
	Requested wire.Amounts `json:"requested,omitzero"`
	Blocked   wire.Amounts `json:"blocked,omitzero"`
	// Recalled means that the run has recalled what the sub-agent does not use. It ends with
	// the next report of a return or of more usage.
	Recalled bool `json:"recalled,omitempty"`
}

// How urgently a run asks its parent.
const (
	askEarly  = 1 // something is left: with an answer in time, the run need not be suspended
	askUrgent = 2 // nothing is left
)

// maxGrant returns the most of a resource that is granted or requested in all. Reports and
// orders may be forged, so without a bound the sums over all accounts could overflow. Nobody
// adds up time: its bound is 146 years.
func maxGrant(r wire.Resource) int64 {
	if r.Shared() {
		return amount.Max
	}
	return 1 << 62
}

func (l Ledger) clone() Ledger {
	l.FromParent, l.Accounts = copied(l.FromParent), slices.Clone(l.Accounts)
	return l
}

func (l Ledger) find(session string) int {
	return slices.IndexFunc(l.Accounts, func(a Account) bool { return a.Session == session })
}

// start opens the run's account with what the parent granted at the run's start. A nil grant
// means that no ancestor's limit bounds the run.
func (l *Ledger) start(grant *wire.Amounts) {
	if grant == nil {
		return
	}
	l.FromParent = &ParentAccount{}
	for r := range wire.Resources {
		l.FromParent.Granted[r] = min(max(grant[r], wire.Unlimited), maxGrant(r))
	}
}

// open opens the account of a sub-agent with what it is granted at its start.
func (l *Ledger) open(session string, granted wire.Amounts) {
	l.Accounts = append(l.Accounts, Account{Session: session, Granted: granted, Used: agent.Tally{Agents: 1}})
}

// report records what a sub-agent reports of its account. news means that the account has
// changed. behind means that the sub-agent asked before it received the last grant. Such a
// request is ignored: the grant may be all that it needs.
func (l *Ledger) report(i int, r wire.BudgetReport) (news, behind bool) {
	a := &l.Accounts[i]
	was := *a
	for n := range r.Requested {
		behind = behind || r.Requested[n] > 0 && r.Granted[n] < a.Granted[n]
	}
	a.Used = latest(a.Used, r.Used.Bounded())
	for n := range wire.Resources {
		if a.Granted[n] == wire.Unlimited { // nothing to return or to request
			continue
		}
		// After a reset this run does not know the grants that it made since. The report
		// does.
		a.Granted[n] = max(a.Granted[n], min(r.Granted[n], maxGrant(n)))
		// What was used before this report cannot be returned: bound a wrong or forged sum.
		a.Returned[n] = max(a.Returned[n], min(r.Returned[n], was.returnable(n)))
		// Equal sums show that the sub-agent has received all grants, so its request is up
		// to date.
		if !behind && r.Granted[n] == a.Granted[n] {
			a.Requested[n], a.Blocked[n] = min(max(r.Requested[n], 0), maxGrant(n)), min(max(r.Blocked[n], 0), 1)
		}
	}
	// New numbers answer the recall. If something is unused still, nextRecall recalls it
	// again.
	if a.Returned != was.Returned || a.Used != was.Used {
		a.Recalled = false
	}
	return *a != was, behind
}

// grant adds to what a sub-agent is granted, and ends its request for these resources.
func (l *Ledger) grant(i int, more wire.Amounts) {
	for n := range wire.Resources {
		if more[n] > 0 {
			l.Accounts[i].Granted[n] += min(more[n], maxGrant(n)-l.Accounts[i].Granted[n])
			l.Accounts[i].Requested[n], l.Accounts[i].Blocked[n] = 0, 0
		}
	}
}

func (l *Ledger) recall(i int) { l.Accounts[i].Recalled = true }

// deny drops a sub-agent's request for more agents.
func (l *Ledger) deny(i int) {
	l.Accounts[i].Requested[wire.ResourceAgents], l.Accounts[i].Blocked[wire.ResourceAgents] = 0, 0
}

// close ends an account. A sub-agent that did not report what it used (nil) is charged all
// that it was granted: runs below it may still be using it.
func (l *Ledger) close(session string, used *agent.Tally) {
	i := l.find(session)
	if i < 0 {
		return
	}
	switch {
	case used == nil:
		l.EndedUsage = l.EndedUsage.Add(l.Accounts[i].maxUsed())
	case used.Agents > 0: // else the sub-agent never began
		l.EndedUsage = l.EndedUsage.Add(latest(l.Accounts[i].Used, used.Bounded()))
	}
	if l.Accounts = slices.Delete(l.Accounts, i, i+1); len(l.Accounts) == 0 {
		l.Accounts = nil
	}
}

// maxUsed returns the most that all sub-agents can have used. Those that have not ended
// count with all that they may still use.
func (l Ledger) maxUsed() agent.Tally {
	t := l.EndedUsage
	for _, a := range l.Accounts {
		t = t.Add(a.maxUsed())
	}
	return t
}

// takeGrant records a grant, a recall or a denial of the parent, and reports whether it is
// news.
func (l *Ledger) takeGrant(o wire.GrantOrder) (news bool) {
	a := l.FromParent
	was := *a
	for n := range wire.Resources {
		// A sum that is not higher is old: the order came late or twice.
		if most := min(o.Granted[n], maxGrant(n)); a.Granted[n] != wire.Unlimited && most > a.Granted[n] {
			a.Granted[n], a.Requested[n] = most, 0
		}
	}
	// More agents overrule a denial, also one that came in the same order.
	if a.Granted[wire.ResourceAgents] > was.Granted[wire.ResourceAgents] {
		a.Denied = false
	} else if o.Denied {
		a.Denied, a.Requested[wire.ResourceAgents] = true, 0
	}
	// Only giveBack answers a recall; a later grant does not take it back.
	a.Recalled = a.Recalled || o.Recall
	return *a != was
}

// setRequested remembers what the run asks of its parent. An early request does not replace
// an urgent one.
func (l *Ledger) setRequested(levels wire.Amounts) {
	for n := range levels {
		l.FromParent.Requested[n] = max(l.FromParent.Requested[n], levels[n])
	}
}

// giveBack adds to what the run has returned to its parent. done means that no sub-agent has
// yet to return something.
func (l *Ledger) giveBack(back wire.Amounts, done bool) {
	for n := range back {
		l.FromParent.Returned[n] += back[n]
	}
	l.FromParent.Recalled = !done
}

// askAgain lets the run repeat its requests: one of them, or its answer, may be lost.
func (l *Ledger) askAgain() { l.FromParent.Requested = wire.Amounts{} }

// unused returns how much of a shared resource a sub-agent may still use, by its last
// report. It returns 0 for a resource without a limit, and for time.
func (a Account) unused(r wire.Resource) int64 {
	if a.Granted[r] == wire.Unlimited || !r.Shared() {
		return 0
	}
	return max(0, a.Granted[r]-a.Returned[r]-wire.UsedAmounts(a.Used)[r])
}

// anyUnused reports whether the sub-agent may still use some of any shared resource.
func (a Account) anyUnused() bool {
	for r := range wire.Resources {
		if a.unused(r) > 0 {
			return true
		}
	}
	return false
}

// returnable returns the most that a sub-agent can have returned in all.
func (a Account) returnable(r wire.Resource) int64 { return a.Returned[r] + a.unused(r) }

// net returns what a sub-agent was granted, less what it returned.
func (a Account) net() wire.Amounts {
	net := a.Granted
	for r := range net {
		if net[r] != wire.Unlimited {
			net[r] -= a.Returned[r]
		}
	}
	return net
}

// remaining returns what a sub-agent may still use, by its last report.
func (a Account) remaining() wire.Amounts {
	room := a.net()
	for r := range wire.Resources {
		if room[r] != wire.Unlimited && r.Shared() {
			room[r] = a.unused(r)
		}
	}
	return room
}

// blockedOn reports whether the sub-agent, or a run below it, is suspended until it gets
// more of a resource.
func (a Account) blockedOn(r wire.Resource) bool { return a.Requested[r] > 0 && a.Blocked[r] > 0 }

// blocked reports whether the sub-agent is blocked on any resource.
func (a Account) blocked() bool {
	for r := range wire.Resources {
		if a.blockedOn(r) {
			return true
		}
	}
	return false
}

// maxUsed returns the most that a sub-agent can have used.
func (a Account) maxUsed() agent.Tally {
	// The kind of the tokens that may be used is unknown: they count as estimated input.
	tokens, cost := a.unused(wire.ResourceTokens), agent.USD(a.unused(wire.ResourceCost))
	return a.Used.Add(agent.Tally{
		Agents: int(a.unused(wire.ResourceAgents)), Turns: int(a.unused(wire.ResourceTurns)),
		Usage: agent.Usage{Input: tokens}, Cost: cost, Estimated: agent.Estimate{Tokens: tokens, Cost: cost},
	})
}

// latest returns the later of two tallies of one run. No number of a tally ever falls, so it
// is the higher of each.
func latest(t, o agent.Tally) agent.Tally {
	u, v := t.Usage, o.Usage
	return agent.Tally{
		Agents: max(t.Agents, o.Agents), Turns: max(t.Turns, o.Turns),
		Usage: agent.Usage{
			Input: max(u.Input, v.Input), Output: max(u.Output, v.Output), CacheRead: max(u.CacheRead, v.CacheRead), CacheWrite: max(u.CacheWrite, v.CacheWrite),
			Reasoning: max(u.Reasoning, v.Reasoning), Searches: max(u.Searches, v.Searches),
		},
		Cost:      max(t.Cost, o.Cost),
		Estimated: agent.Estimate{Tokens: max(t.Estimated.Tokens, o.Estimated.Tokens), Cost: max(t.Estimated.Cost, o.Estimated.Cost)},
	}
}
