package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Ledger is the part that shares what limits bound between a run and its sub-agents: what
// was granted to it from above, and what it has granted below. All its numbers are sums
// over a run's life that never fall, and each is written on one side only: what was granted
// by the parent, what was returned and spent by the sub-agent. So a message that comes
// late, twice or not at all makes the parent think that more is reserved than is.
type Ledger struct {
	// Above is the run's account with the parent; nil if no limit above bounds it.
	Above *Share `json:"above,omitempty"`
	// Accounts are those of sub-agents that may still work, and Gone is what the others
	// have used.
	Accounts []Account   `json:"accounts,omitempty"`
	Gone     agent.Tally `json:"gone,omitzero"`
}

// Share is a run's account with its parent, as the run knows it.
type Share struct {
	Granted  agent.Amounts `json:"granted"`
	Returned agent.Amounts `json:"returned,omitzero"`
	// Asked is what the run has asked for and not got: 1 early, 2 when it had nothing left.
	Asked agent.Amounts `json:"asked,omitzero"`
	// Recalled means that the parent wants back what is not used.
	Recalled bool `json:"recalled,omitempty"`
	// Denied means that no more agents are granted.
	Denied bool `json:"denied,omitempty"`
}

// Account is a sub-agent's, as the run above knows it.
type Account struct {
	Session  string        `json:"session"`
	Granted  agent.Amounts `json:"granted"`
	Returned agent.Amounts `json:"returned,omitzero"`
	Spent    agent.Tally   `json:"spent,omitzero"`
	// Wants is what it has asked for and not got; Rests is 1 where somebody rests for it.
	Wants agent.Amounts `json:"wants,omitzero"`
	Rests agent.Amounts `json:"rests,omitzero"`
	// Recalled means that it was asked to return what it does not use, and has not yet.
	Recalled bool `json:"recalled,omitempty"`
}

// Levels of asking.
const (
	askLow = 1 // while something is left, so that the run need not rest
	askDry = 2
)

// maxGrant bounds what is granted or wanted of a resource in all, whoever says so: no sum
// over all accounts and tallies overflows, and every amount of money can be read again. Of
// time, which nobody adds up, it is 146 years.
func maxGrant(r agent.Resource) int64 {
	if r.Shared() {
		return agent.MaxAmount
	}
	return 1 << 62
}

func (l Ledger) clone() Ledger {
	l.Above, l.Accounts = copied(l.Above), slices.Clone(l.Accounts)
	return l
}

func (l Ledger) find(session string) int {
	return slices.IndexFunc(l.Accounts, func(a Account) bool { return a.Session == session })
}

// born takes what a run may use from its birth on; nil if nothing above bounds it.
func (l *Ledger) born(grant *agent.Amounts) {
	if grant == nil {
		return
	}
	l.Above = &Share{}
	for r := range agent.Resources {
		l.Above.Granted[r] = min(max(grant[r], agent.NotBounded), maxGrant(r))
	}
}

// open begins the account of a sub-agent with what it is granted at its birth.
func (l *Ledger) open(session string, granted agent.Amounts) {
	l.Accounts = append(l.Accounts, Account{Session: session, Granted: granted, Spent: agent.Tally{Agents: 1}})
}

// heard takes what a sub-agent says of its account, and reports whether that is news.
// behind means that it wants what it was granted, and has not heard of that: what it wants
// then is not what it will want.
func (l *Ledger) heard(i int, r agent.ShareReport) (news, behind bool) {
	a := &l.Accounts[i]
	was := *a
	for n := range r.Wants {
		behind = behind || r.Wants[n] > 0 && r.Granted[n] < a.Granted[n]
	}
	a.Spent = a.Spent.Latest(r.Spent.Bounded())
	for n := range agent.Resources {
		if a.Granted[n] == agent.NotBounded { // there is nothing to return, nor to want
			continue
		}
		// A run that was reset has forgotten what it granted since.
		a.Granted[n] = max(a.Granted[n], min(r.Granted[n], maxGrant(n)))
		// What was known to be spent before was not there to be returned.
		a.Returned[n] = max(a.Returned[n], min(r.Returned[n], was.returnable(n)))
		if !behind && r.Granted[n] == a.Granted[n] {
			a.Wants[n], a.Rests[n] = min(max(r.Wants[n], 0), maxGrant(n)), min(max(r.Rests[n], 0), 1)
		}
	}
	if a.Returned != was.Returned || a.Spent != was.Spent {
		a.Recalled = false
	}
	return *a != was, behind
}

// grant gives a sub-agent more, or tells it no more agents are granted.
func (l *Ledger) grant(i int, more agent.Amounts) {
	for n := range agent.Resources {
		if more[n] > 0 {
			l.Accounts[i].Granted[n] += min(more[n], maxGrant(n)-l.Accounts[i].Granted[n])
			l.Accounts[i].Wants[n], l.Accounts[i].Rests[n] = 0, 0
		}
	}
}

func (l *Ledger) recall(i int) { l.Accounts[i].Recalled = true }

// deny forgets that a sub-agent wants more agents.
func (l *Ledger) deny(i int) {
	l.Accounts[i].Wants[agent.ResourceAgents], l.Accounts[i].Rests[agent.ResourceAgents] = 0, 0
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
		l.Gone = l.Gone.Add(l.Accounts[i].worst())
	case used.Agents > 0: // else it never was
		l.Gone = l.Gone.Add(l.Accounts[i].Spent.Latest(used.Bounded()))
	}
	if l.Accounts = slices.Delete(l.Accounts, i, i+1); len(l.Accounts) == 0 {
		l.Accounts = nil
	}
}

// worst is the most that all below can have used at the run's end.
func (l Ledger) worst() agent.Tally {
	t := l.Gone
	for _, a := range l.Accounts {
		t = t.Add(a.worst())
	}
	return t
}

// takeGrant takes what the parent says, and reports whether that is news.
func (l *Ledger) takeGrant(o agent.GrantOrder) (news bool) {
	a := l.Above
	was := *a
	for n := range agent.Resources {
		if most := min(o.Granted[n], maxGrant(n)); a.Granted[n] != agent.NotBounded && most > a.Granted[n] {
			a.Granted[n], a.Asked[n] = most, 0
		}
	}
	if a.Granted[agent.ResourceAgents] > was.Granted[agent.ResourceAgents] {
		a.Denied = false
	} else if o.Denied {
		a.Denied, a.Asked[agent.ResourceAgents] = true, 0
	}
	a.Recalled = a.Recalled || o.Recall
	return *a != was
}

// asks remembers what is asked of the parent.
func (l *Ledger) asks(levels agent.Amounts) {
	for n := range levels {
		l.Above.Asked[n] = max(l.Above.Asked[n], levels[n])
	}
}

// gives returns what is not used to the parent; done means that no more will come.
func (l *Ledger) gives(back agent.Amounts, done bool) {
	for n := range back {
		l.Above.Returned[n] += back[n]
	}
	l.Above.Recalled = !done
}

// asksAnew lets a run ask again for what it has asked for: an answer may be lost.
func (l *Ledger) asksAnew() { l.Above.Asked = agent.Amounts{} }

// unspent is how much of a shared resource an account may still use.
func (a Account) unspent(r agent.Resource) int64 {
	if a.Granted[r] == agent.NotBounded || !r.Shared() {
		return 0
	}
	return max(0, a.Granted[r]-a.Returned[r]-a.Spent.Amounts()[r])
}

// unspentAny reports whether it may still use something of any resource.
func (a Account) unspentAny() bool {
	for r := range agent.Resources {
		if a.unspent(r) > 0 {
			return true
		}
	}
	return false
}

// returnable is how much of a resource an account can have given back in all.
func (a Account) returnable(r agent.Resource) int64 { return a.Returned[r] + a.unspent(r) }

// net is what an account was granted, less what it gave back, and room what of that it may
// still use, as far as that was heard.
func (a Account) net() agent.Amounts {
	net := a.Granted
	for r := range net {
		if net[r] != agent.NotBounded {
			net[r] -= a.Returned[r]
		}
	}
	return net
}

func (a Account) room() agent.Amounts {
	room := a.net()
	for r := range agent.Resources {
		if room[r] != agent.NotBounded && r.Shared() {
			room[r] = a.unspent(r)
		}
	}
	return room
}

// dry reports whether it rests until it gets more of a resource.
func (a Account) dry(r agent.Resource) bool { return a.Wants[r] > 0 && a.Rests[r] > 0 }

// rests reports whether it rests for anything.
func (a Account) rests() bool {
	for r := range agent.Resources {
		if a.dry(r) {
			return true
		}
	}
	return false
}

// worst is the most that it can have used.
func (a Account) worst() agent.Tally {
	tokens, cost := a.unspent(agent.ResourceTokens), agent.USD(a.unspent(agent.ResourceCost))
	return a.Spent.Add(agent.Tally{
		Agents: int(a.unspent(agent.ResourceAgents)), Turns: int(a.unspent(agent.ResourceTurns)),
		Usage: agent.Usage{Input: tokens}, Cost: cost, Estimated: agent.Estimate{Tokens: tokens, Cost: cost},
	})
}
