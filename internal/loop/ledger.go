package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Ledger is the part that shares what limits bound between a run and its sub-agents: what
// was granted to it from above, and what it has granted below. All its numbers are sums
// over a run's life that never fall, and each is written on one side only: what was granted
// by the parent, what was returned and spent by the sub-agent. So a message that comes
// late, twice or not at all makes the parent think that more is reserved than is.
type Ledger struct {
	// FromParent is the run's account with the parent; nil if no limit above bounds it.
	FromParent *ParentAccount `json:"from_parent,omitempty"`
	// Accounts are those of sub-agents that may still work, and Gone is what the others
	// have used.
	Accounts   []Account   `json:"accounts,omitempty"`
	EndedUsage agent.Tally `json:"ended_usage,omitzero"`
}

// ParentAccount is a run's account with its parent, as the run knows it.
type ParentAccount struct {
	Granted  wire.Amounts `json:"granted"`
	Returned wire.Amounts `json:"returned,omitzero"`
	// Requested is what the run has asked for and not got: 1 early, 2 when it had nothing left.
	Requested wire.Amounts `json:"requested,omitzero"`
	// Recalled means that the parent wants back what is not used.
	Recalled bool `json:"recalled,omitempty"`
	// Denied means that no more agents are granted.
	Denied bool `json:"denied,omitempty"`
}

// Account is a sub-agent's, as the parent knows it.
type Account struct {
	Session  string       `json:"session"`
	Granted  wire.Amounts `json:"granted"`
	Returned wire.Amounts `json:"returned,omitzero"`
	Used     agent.Tally  `json:"used,omitzero"`
	// Requested is what it has asked for and not got; Blocked is 1 if somebody is suspended for it.
	Requested wire.Amounts `json:"requested,omitzero"`
	Blocked   wire.Amounts `json:"blocked,omitzero"`
	// Recalled means that it was asked to return what it does not use, and has not yet.
	Recalled bool `json:"recalled,omitempty"`
}

// Levels of asking.
const (
	askEarly  = 1 // while something is left, so that the run need not rest
	askUrgent = 2
)

// maxGrant bounds what is granted or wanted of a resource in all, whoever says so: no sum
// over all accounts and tallies overflows, and every amount of money can be read again. Of
// time, which nobody adds up, it is 146 years.
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

// start takes what a run may use from its birth on; nil if nothing above bounds it.
func (l *Ledger) start(grant *wire.Amounts) {
	if grant == nil {
		return
	}
	l.FromParent = &ParentAccount{}
	for r := range wire.Resources {
		l.FromParent.Granted[r] = min(max(grant[r], wire.Unlimited), maxGrant(r))
	}
}

// open begins the account of a sub-agent with what it is granted at its birth.
func (l *Ledger) open(session string, granted wire.Amounts) {
	l.Accounts = append(l.Accounts, Account{Session: session, Granted: granted, Used: agent.Tally{Agents: 1}})
}

// report takes what a sub-agent says of its account, and reports whether that is news.
// behind means that it wants what it was granted, and has not heard of that: what it wants
// then is not what it will want.
func (l *Ledger) report(i int, r wire.BudgetReport) (news, behind bool) {
	a := &l.Accounts[i]
	was := *a
	for n := range r.Requested {
		behind = behind || r.Requested[n] > 0 && r.Granted[n] < a.Granted[n]
	}
	a.Used = latest(a.Used, r.Used.Bounded())
	for n := range wire.Resources {
		if a.Granted[n] == wire.Unlimited { // there is nothing to return, nor to want
			continue
		}
		// A run that was reset has forgotten what it granted since.
		a.Granted[n] = max(a.Granted[n], min(r.Granted[n], maxGrant(n)))
		// What was known to be spent before was not there to be returned.
		a.Returned[n] = max(a.Returned[n], min(r.Returned[n], was.returnable(n)))
		if !behind && r.Granted[n] == a.Granted[n] {
			a.Requested[n], a.Blocked[n] = min(max(r.Requested[n], 0), maxGrant(n)), min(max(r.Blocked[n], 0), 1)
		}
	}
	if a.Returned != was.Returned || a.Used != was.Used {
		a.Recalled = false
	}
	return *a != was, behind
}

// grant gives a sub-agent more, or tells it no more agents are granted.
func (l *Ledger) grant(i int, more wire.Amounts) {
	for n := range wire.Resources {
		if more[n] > 0 {
			l.Accounts[i].Granted[n] += min(more[n], maxGrant(n)-l.Accounts[i].Granted[n])
			l.Accounts[i].Requested[n], l.Accounts[i].Blocked[n] = 0, 0
		}
	}
}

func (l *Ledger) recall(i int) { l.Accounts[i].Recalled = true }

// deny forgets that a sub-agent wants more agents.
func (l *Ledger) deny(i int) {
	l.Accounts[i].Requested[wire.ResourceAgents], l.Accounts[i].Blocked[wire.ResourceAgents] = 0, 0
}

// close ends an account. A sub-agent that did not say what it has used (nil) is charged
// all that it was granted: those below it may still be using it.
func (l *Ledger) close(session string, used *agent.Tally) {
	i := l.find(session)
	if i < 0 {
		return
	}
	switch {
	case used == nil:
		l.EndedUsage = l.EndedUsage.Add(l.Accounts[i].maxUsed())
	case used.Agents > 0: // else it never was
		l.EndedUsage = l.EndedUsage.Add(latest(l.Accounts[i].Used, used.Bounded()))
	}
	if l.Accounts = slices.Delete(l.Accounts, i, i+1); len(l.Accounts) == 0 {
		l.Accounts = nil
	}
}

// maxUsed is the most that all below can have used at the run's end.
func (l Ledger) maxUsed() agent.Tally {
	t := l.EndedUsage
	for _, a := range l.Accounts {
		t = t.Add(a.maxUsed())
	}
	return t
}

// takeGrant takes what the parent says, and reports whether that is news.
func (l *Ledger) takeGrant(o wire.GrantOrder) (news bool) {
	a := l.FromParent
	was := *a
	for n := range wire.Resources {
		if most := min(o.Granted[n], maxGrant(n)); a.Granted[n] != wire.Unlimited && most > a.Granted[n] {
			a.Granted[n], a.Requested[n] = most, 0
		}
	}
	if a.Granted[wire.ResourceAgents] > was.Granted[wire.ResourceAgents] {
		a.Denied = false
	} else if o.Denied {
		a.Denied, a.Requested[wire.ResourceAgents] = true, 0
	}
	a.Recalled = a.Recalled || o.Recall
	return *a != was
}

// setRequested remembers what is asked of the parent.
func (l *Ledger) setRequested(levels wire.Amounts) {
	for n := range levels {
		l.FromParent.Requested[n] = max(l.FromParent.Requested[n], levels[n])
	}
}

// giveBack returns what is not used to the parent; done means that no more will come.
func (l *Ledger) giveBack(back wire.Amounts, done bool) {
	for n := range back {
		l.FromParent.Returned[n] += back[n]
	}
	l.FromParent.Recalled = !done
}

// askAgain lets a run ask again for what it has asked for: an answer may be lost.
func (l *Ledger) askAgain() { l.FromParent.Requested = wire.Amounts{} }

// unused is how much of a shared resource an account may still use.
func (a Account) unused(r wire.Resource) int64 {
	if a.Granted[r] == wire.Unlimited || !r.Shared() {
		return 0
	}
	return max(0, a.Granted[r]-a.Returned[r]-wire.UsedAmounts(a.Used)[r])
}

// anyUnused reports whether it may still use something of any resource.
func (a Account) anyUnused() bool {
	for r := range wire.Resources {
		if a.unused(r) > 0 {
			return true
		}
	}
	return false
}

// returnable is how much of a resource an account can have given back in all.
func (a Account) returnable(r wire.Resource) int64 { return a.Returned[r] + a.unused(r) }

// net is what an account was granted, less what it gave back, and room what of that it may
// still use, as far as that was heard.
func (a Account) net() wire.Amounts {
	net := a.Granted
	for r := range net {
		if net[r] != wire.Unlimited {
			net[r] -= a.Returned[r]
		}
	}
	return net
}

func (a Account) remaining() wire.Amounts {
	room := a.net()
	for r := range wire.Resources {
		if room[r] != wire.Unlimited && r.Shared() {
			room[r] = a.unused(r)
		}
	}
	return room
}

// blockedOn reports whether it rests until it gets more of a resource.
func (a Account) blockedOn(r wire.Resource) bool { return a.Requested[r] > 0 && a.Blocked[r] > 0 }

// blocked reports whether it rests for anything.
func (a Account) blocked() bool {
	for r := range wire.Resources {
		if a.blockedOn(r) {
			return true
		}
	}
	return false
}

// maxUsed is the most that it can have used.
func (a Account) maxUsed() agent.Tally {
	tokens, cost := a.unused(wire.ResourceTokens), agent.USD(a.unused(wire.ResourceCost))
	return a.Used.Add(agent.Tally{
		Agents: int(a.unused(wire.ResourceAgents)), Turns: int(a.unused(wire.ResourceTurns)),
		Usage: agent.Usage{Input: tokens}, Cost: cost, Estimated: agent.Estimate{Tokens: tokens, Cost: cost},
	})
}

// latest returns the later of two tallies of one run: none of its numbers ever falls.
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
