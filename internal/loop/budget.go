package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Budget is the part that knows what the run itself has used and what its own limits
// allow. What its sub-agents use, and what the parent allows, is in [Ledger].
type Budget struct {
	Limits agent.Limits `json:"limits,omitzero"`
	Usage  agent.Usage  `json:"usage"`
	Cost   agent.USD    `json:"cost_usd"`
	// Estimated is the part of that which nobody has told.
	Estimated agent.Estimate `json:"estimated,omitzero"`
	// ForkTurn is the turn behind which the run began.
	ForkTurn int `json:"fork_turn,omitempty"`
	// UsedAtRenewal is what the tree had used when a limit was renewed, and OwnBase the run's own
	// turns then.
	UsedAtRenewal     wire.Amounts `json:"used_at_renewal,omitzero"`
	OwnTurnsAtRenewal int          `json:"own_turns_at_renewal,omitempty"`
	// LastTurn is what the last turn used: about what the next one needs.
	LastTurn wire.Amounts `json:"last_turn,omitzero"`
	// RequestTokens is how many tokens the last request had that the model answered, as it
	// counted them, and Since how many bytes were said since.
	RequestTokens int64 `json:"request_tokens,omitempty"`
	// Counted is that number if it is of this turn, else zero.
	Counted    int64 `json:"counted,omitempty"`
	BytesSince int   `json:"bytes_since,omitempty"`
	// Charged means that the model call in flight is charged, and Blind is what was charged
	// for one that was given up and of which nothing was known.
	Charged         bool        `json:"charged,omitempty"`
	EstimatedCharge agent.Usage `json:"estimated_charge,omitzero"`
	// Worked is how long the run has worked, and Runs since when it is at work again; zero
	// while the clock stands still.
	Worked       time.Duration `json:"worked,omitempty"`
	RunningSince time.Time     `json:"running_since,omitzero"`
}

// bytesPerToken is less than texts in English have, so that an estimate is rather high.
const bytesPerToken = 3

// setLimits sets the limits of a run that begins.
func (b *Budget) setLimits(l agent.Limits) { b.Limits = l }

// startClock begins the working time.
func (b *Budget) startClock(at time.Time) { b.RunningSince = at }

// advanceClock takes that time has passed.
func (b *Budget) advanceClock(at time.Time) {
	if !b.RunningSince.IsZero() && at.After(b.RunningSince) {
		b.Worked, b.RunningSince = b.Worked+at.Sub(b.RunningSince), at
	}
}

// setClock lets the working time pass or stand still from now on.
func (b *Budget) setClock(passes bool, at time.Time) {
	switch {
	case !passes:
		b.RunningSince = time.Time{}
	case b.RunningSince.IsZero():
		b.RunningSince = at
	}
}

// setForkTurn sets the turn behind which the run began: the limits are new.
func (b *Budget) setForkTurn(turn int) { b.ForkTurn = turn }

// renew lets one limit count from now on; spent is what the tree has used.
func (b *Budget) renew(limit agent.Code, spent wire.Amounts, own int) {
	for r := range wire.Resources {
		if r.Code() == limit {
			b.UsedAtRenewal[r] = spent[r]
		}
	}
	if limit == agent.CodeLimitTurns {
		b.OwnTurnsAtRenewal = own
	}
}

// renewAll lets all limits count from now on.
func (b *Budget) renewAll(spent wire.Amounts, own int) {
	spent[wire.ResourceAgents]-- // the run itself is not started again
	b.UsedAtRenewal, b.OwnTurnsAtRenewal = spent, own
}

// charge adds what one attempt at a model call has used.
func (b *Budget) charge(c agent.Charge, own agent.Price) {
	if c.Model == "" {
		c.Cost = own.Of(c.Usage)
	}
	tokens := c.Usage.Bounded().Total()
	b.Usage, b.Cost = b.Usage.Add(c.Usage), amount.Add(b.Cost, c.Cost)
	b.LastTurn[wire.ResourceTokens] = amount.Add(b.LastTurn[wire.ResourceTokens], tokens)
	b.LastTurn[wire.ResourceCost] = amount.Add(b.LastTurn[wire.ResourceCost], int64(c.Cost))
	if c.Estimated {
		b.Estimated = b.Estimated.Add(agent.Estimate{Tokens: tokens, Cost: c.Cost})
	}
}

// modelCalled takes that the model is asked.
func (b *Budget) modelCalled() { b.Charged, b.EstimatedCharge = false, agent.Usage{} }

// setCharged takes that the call is charged, blindly with what was guessed.
func (b *Budget) setCharged(blind agent.Usage) { b.Charged, b.EstimatedCharge = true, blind }

// startTurn begins to count what a turn needs.
func (b *Budget) startTurn() {
	b.LastTurn, b.Counted = wire.Amounts{wire.ResourceTurns: 1, wire.ResourceAgents: 1}, 0
}

// setRequestTokens takes how many tokens the model has counted in a request.
func (b *Budget) setRequestTokens(u agent.Usage) {
	if u.Input > 0 {
		n := amount.Clamp(u.Input)
		b.RequestTokens, b.Counted, b.BytesSince = n, n, 0
	}
}

// addBytes counts what will be in the next request.
func (b *Budget) addBytes(bytes int) { b.BytesSince += bytes }

// estimatedCharge is the charge of a call of which nothing is known.
func (b Budget) estimatedCharge() agent.Charge {
	return agent.Charge{Usage: agent.Usage{Input: b.RequestTokens + int64(b.BytesSince+bytesPerToken-1)/bytesPerToken}, Estimated: true}
}

// allowance is how much the run's own limits allow the tree in all, counted from its birth.
func (b Budget) allowance() wire.Amounts {
	c := wire.LimitAmounts(b.Limits)
	for r := range wire.Resources {
		if c[r] != wire.Unlimited {
			c[r] = min(c[r], maxGrant(r)) + b.UsedAtRenewal[r]
		}
	}
	return c
}

// workedAt is how long the run has worked until a time.
func (b Budget) workedAt(now time.Time) time.Duration {
	b.advanceClock(now)
	return b.Worked
}

// deadline is when the working time of the run's own limit is over; zero if it has none,
// or while the clock stands still.
func (b Budget) deadline() time.Time {
	if b.Limits.WallClock == 0 || b.RunningSince.IsZero() {
		return time.Time{}
	}
	return b.RunningSince.Add(time.Duration(b.allowance()[wire.ResourceTime]) - b.Worked)
}

// ownTurns is how many model calls the run itself has made of those that it may.
func (s *State) ownTurns() int { return s.Turn.N - s.Budget.ForkTurn }

// tally is what the run itself has used.
func (s *State) tally() agent.Tally {
	b := s.Budget
	return agent.Tally{Agents: 1, Turns: s.ownTurns(), Usage: b.Usage, Cost: b.Cost, Estimated: b.Estimated}
}

// treeTally is what the run and all below it have used, as far as that was heard.
func (s *State) treeTally() agent.Tally {
	t := s.tally().Add(s.Ledger.EndedUsage)
	for _, a := range s.Ledger.Accounts {
		t = t.Add(a.Used)
	}
	return t
}

// usedAmounts is what the tree has used of each resource.
func (s *State) usedAmounts() (spent wire.Amounts) {
	k := s.budgetView()
	for r := range wire.Resources {
		spent[r] = k.used(r)
	}
	return spent
}

// limitOrder is the order in which limits are looked at before a model call.
var limitOrder = []wire.Resource{wire.ResourceTurns, wire.ResourceTime, wire.ResourceTokens, wire.ResourceCost}

// exhaustedLimit is the first of the run's own limits that is used up before a model call; nil if
// none is.
func (s *State) exhaustedLimit() *agent.Error {
	if most := s.Budget.Limits.OwnTurns; most > 0 && s.ownTurns()-s.Budget.OwnTurnsAtRenewal >= most {
		return agent.Errorf(agent.CodeLimitTurns, "the run has made the %d model calls that limits.own_turns allows", most)
	}
	k := s.budgetView()
	for _, r := range limitOrder {
		if k.exhausted(r) {
			return s.limitError(r, k)
		}
	}
	return nil
}

// limitError is the error of a limit that is used up.
func (s *State) limitError(r wire.Resource, k budgetView) *agent.Error {
	who := "the run has"
	if len(k.Accounts) > 0 || k.EndedUsage.Agents > 0 {
		who = "the run and the agents below it have"
	}
	l, n := s.Budget.Limits, k.used(r)-s.Budget.UsedAtRenewal[r]
	switch r {
	case wire.ResourceTurns:
		return agent.Errorf(agent.CodeLimitTurns, "%s made the %d model calls that limits.turns allows", who, l.Turns)
	case wire.ResourceTime:
		return s.Budget.timeLimitError()
	case wire.ResourceTokens:
		return agent.Errorf(agent.CodeLimitTokens, "%s used %d tokens; limits.tokens allows %d", who, n, l.Tokens)
	default:
		return agent.Errorf(agent.CodeLimitCost, "%s cost %s USD; limits.cost_usd allows %s", who, agent.USD(n), l.CostUSD)
	}
}

func (b Budget) timeLimitError() *agent.Error {
	return agent.Errorf(agent.CodeLimitTime, "the run has worked for the %s that limits.wall_clock allows", b.Limits.WallClock)
}

// workingTimePasses reports whether working time passes: the run is at work, or a sub-agent is.
// Those of a held run are held too.
func (s *step) workingTimePasses() bool {
	began := s.Phase != RunNew && s.Phase != RunOpening && s.Phase != RunImporting
	return began && !s.decided() && (!s.Suspensions.atRest() || !s.Holds.any() && s.Children.anyWorking())
}

// timeLimitEndsRun reports whether the end of the working time ends the run: if the limit asks,
// it does so at the turn's end. An idle daemon that sums up has done its work.
func (s *step) timeLimitEndsRun() bool {
	return !s.Budget.deadline().IsZero() && !s.idling() && s.End.Stopping == nil && (s.Spec == nil || s.Spec.OnLimit != agent.LimitActionAsk)
}

// chargeReply takes what a model call has used, also in attempts that failed.
func (s *step) chargeReply(r wire.Reply) {
	s.Budget.setCharged(agent.Usage{})
	s.chargeAll(r.Charges)
	s.Budget.charge(agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost}, s.Spec.Price)
	s.Budget.setRequestTokens(r.Usage)
}

func (s *step) chargeAll(spent []agent.Charge) {
	for _, c := range spent {
		if c.Estimated && c.Usage == (agent.Usage{}) {
			c = s.Budget.estimatedCharge()
		}
		s.Budget.charge(c, s.Spec.Price)
	}
}

// chargeEstimate takes that a model call is given up whose result nobody waits for: what it
// has used will not be told.
func (s *step) chargeEstimate() {
	if s.Turn.inFlight() && !s.Budget.Charged {
		c := s.Budget.estimatedCharge()
		s.Budget.setCharged(c.Usage)
		s.Budget.charge(c, s.Spec.Price)
	}
}

// chargeLateReply charges what a call that was given up has used beyond what was guessed.
func (s *step) chargeLateReply(ask int64, r wire.Reply) error {
	if s.Phase == RunEnded || s.Turn.inFlight() || ask != s.Turn.AskSeq || s.Budget.EstimatedCharge == (agent.Usage{}) {
		return s.refuse("the model call of event %d is not waited for in phase %q", ask, s.phaseName())
	}
	guessed := s.Budget.EstimatedCharge
	all := append(slices.Clip(r.Charges), agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost})
	for i, c := range all {
		u := c.Usage.Bounded()
		all[i].Usage, guessed = usageBeyond(u, guessed), usageBeyond(guessed, u)
	}
	s.Budget.setCharged(agent.Usage{})
	s.chargeAll(all)
	return nil
}

// usageBeyond is what one usage has more than another.
func usageBeyond(u, guessed agent.Usage) agent.Usage {
	return agent.Usage{
		Input: max(0, u.Input-guessed.Input), Output: max(0, u.Output-guessed.Output), CacheRead: max(0, u.CacheRead-guessed.CacheRead),
		CacheWrite: max(0, u.CacheWrite-guessed.CacheWrite), Reasoning: max(0, u.Reasoning-guessed.Reasoning),
		Searches: max(0, u.Searches-guessed.Searches),
	}
}

// renew renews the limit that asked, and no other.
func (s *step) renew(limit agent.Code) {
	s.Budget.renew(limit, s.usedAmounts(), s.ownTurns())
	s.record(agent.Event{Type: agent.EventLimitExtended, Extended: limit})
}

// renewAllLimits renews what holds for each wake of a daemon: the limits, and what counts towards
// an end by the model's own fault.
func (s *step) renewAllLimits() {
	s.Budget.renewAll(s.usedAmounts(), s.ownTurns())
	s.Turn.resetCounts()
}

// limitsUsed is how much of each of its own limits the run's tree has used up.
func (s *State) limitsUsed(now time.Time) (u agent.LimitsUsed) {
	l, base, k := s.Budget.Limits, s.Budget.UsedAtRenewal, s.budgetView()
	if l.Turns > 0 {
		u.Turns = &agent.Used[int]{Used: int(k.used(wire.ResourceTurns) - base[wire.ResourceTurns]), Max: l.Turns}
	}
	if l.OwnTurns > 0 {
		u.OwnTurns = &agent.Used[int]{Used: s.ownTurns() - s.Budget.OwnTurnsAtRenewal, Max: l.OwnTurns}
	}
	if l.Tokens > 0 {
		u.Tokens = &agent.Used[int64]{Used: k.used(wire.ResourceTokens) - base[wire.ResourceTokens], Max: l.Tokens}
	}
	if l.CostUSD > 0 {
		u.CostUSD = &agent.Used[agent.USD]{Used: agent.USD(k.used(wire.ResourceCost) - base[wire.ResourceCost]), Max: l.CostUSD}
	}
	if l.WallClock > 0 {
		worked := agent.Duration(s.Budget.workedAt(now)) - agent.Duration(base[wire.ResourceTime])
		u.WallClock = &agent.Used[agent.Duration]{Used: agent.Duration(time.Duration(worked).Round(time.Second)), Max: l.WallClock}
	}
	if l.Agents > 0 && len(s.Ledger.Accounts)+s.Ledger.EndedUsage.Agents > 0 {
		u.Agents = &agent.Used[int]{Used: int(k.used(wire.ResourceAgents)-base[wire.ResourceAgents]) - 1, Max: l.Agents}
	}
	return u
}

// remainingBudget is what the run may still use, by all limits.
func (s *State) remainingBudget() (remainingBudget wire.Amounts) {
	k := s.budgetView()
	for r := range wire.Resources {
		left := k.remaining(r)
		if most := s.Budget.Limits.OwnTurns; r == wire.ResourceTurns && most > 0 {
			left = min(left, int64(most-s.ownTurns()+s.Budget.OwnTurnsAtRenewal))
		}
		if remainingBudget[r] = max(0, left); left == unlimited {
			remainingBudget[r] = wire.Unlimited
		}
	}
	return remainingBudget
}

// netGrant is what the parent has granted, less what was given back.
func (s *State) netGrant() wire.Amounts {
	net := wire.LimitAmounts(agent.Limits{})
	if a := s.Ledger.FromParent; a != nil {
		net = a.Granted
		for r := range net {
			if net[r] != wire.Unlimited {
				net[r] -= a.Returned[r]
			}
		}
	}
	return net
}

// remaining is what a handoff says of what the limits still allow.
func (s *State) remaining() agent.Remaining {
	room := s.remainingBudget()
	some := func(r wire.Resource) int64 { return max(0, room[r]) }
	return agent.Remaining{Turns: int(some(wire.ResourceTurns)), Tokens: some(wire.ResourceTokens), Cost: agent.USD(some(wire.ResourceCost))}
}
