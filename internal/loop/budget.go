package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Budget is the part that knows what the run itself has used and what its own limits
// allow. [Ledger] has what its sub-agents use, and what the parent has granted.
type Budget struct {
	Limits agent.Limits `json:"limits,omitzero"`
	Usage  agent.Usage  `json:"usage"`
	Cost   agent.USD    `json:"cost_usd"`
	// Estimated is the part of Usage and Cost that no provider has reported.
	Estimated agent.Estimate `json:"estimated,omitzero"`
	// ForkTurn is the session's last turn before the run. Limits count from there.
	ForkTurn int `json:"fork_turn,omitempty"`
	// UsedAtRenewal is what the tree had used when a limit was last renewed, and OwnTurnsAtRenewal
	// the run's own turns then.
	UsedAtRenewal     wire.Amounts `json:"used_at_renewal,omitzero"`
	OwnTurnsAtRenewal int          `json:"own_turns_at_renewal,omitempty"`
	// LastTurn is what the last turn used: an estimate of what the next one needs.
	LastTurn wire.Amounts `json:"last_turn,omitzero"`
	// RequestTokens is the size of the last answered request in tokens, as the provider counted
	// it. BytesSince counts the bytes of messages since then.
	RequestTokens int64 `json:"request_tokens,omitempty"`
	// Counted is RequestTokens if it is of this turn, otherwise zero.
	Counted    int64 `json:"counted,omitempty"`
	BytesSince int   `json:"bytes_since,omitempty"`
	// Charged means that the model call in flight is charged already. EstimatedCharge is what was
	// charged for a cancelled call, whose usage was not known yet.
	Charged         bool        `json:"charged,omitempty"`
	EstimatedCharge agent.Usage `json:"estimated_charge,omitzero"`
	// Worked is the working time up to the last input. RunningSince is the time of that input, or
	// zero while the clock stands still.
	Worked       time.Duration `json:"worked,omitempty"`
	RunningSince time.Time     `json:"running_since,omitzero"`
}

// bytesPerToken is lower than in English texts, so that an estimate is rather too high.
const bytesPerToken = 3

// setLimits sets the limits of a run that begins.
func (b *Budget) setLimits(l agent.Limits) { b.Limits = l }

// startClock begins the working time.
func (b *Budget) startClock(at time.Time) { b.RunningSince = at }

// advanceClock adds the time since the last input to the working time.
func (b *Budget) advanceClock(at time.Time) {
	if !b.RunningSince.IsZero() && at.After(b.RunningSince) { // clocks of servers may go back
		b.Worked, b.RunningSince = b.Worked+at.Sub(b.RunningSince), at
	}
}

// setClock starts or stops the clock of the working time.
func (b *Budget) setClock(passes bool, at time.Time) {
	switch {
	case !passes:
		b.RunningSince = time.Time{}
	case b.RunningSince.IsZero():
		b.RunningSince = at
	}
}

// setForkTurn sets the last turn before the run, from where its limits count.
func (b *Budget) setForkTurn(turn int) { b.ForkTurn = turn }

// renew renews one limit. It counts again from what the tree has used (spent), and from the run's own
// turns (own).
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

// renewAll renews all limits.
func (b *Budget) renewAll(spent wire.Amounts, own int) {
	// allowance counts the run itself as one agent. It is not started again: without this, the
	// renewed limit would allow one agent more.
	spent[wire.ResourceAgents]--
	b.UsedAtRenewal, b.OwnTurnsAtRenewal = spent, own
}

// charge adds what one attempt at a model call has used.
func (b *Budget) charge(c agent.Charge, own agent.Price) {
	if c.Model == "" { // the Spec's own model: the machine has its price, so no activity reports the cost
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

// modelCalled records that a model call begins: nothing of it is charged yet.
func (b *Budget) modelCalled() { b.Charged, b.EstimatedCharge = false, agent.Usage{} }

// setCharged records that the call is charged; blind is the part that was only estimated.
func (b *Budget) setCharged(blind agent.Usage) { b.Charged, b.EstimatedCharge = true, blind }

// startTurn begins to count what the turn uses.
func (b *Budget) startTurn() {
	b.LastTurn, b.Counted = wire.Amounts{wire.ResourceTurns: 1, wire.ResourceAgents: 1}, 0
}

// setRequestTokens records the size of a request, as the provider counted it.
func (b *Budget) setRequestTokens(u agent.Usage) {
	if u.Input > 0 {
		n := amount.Clamp(u.Input)
		b.RequestTokens, b.Counted, b.BytesSince = n, n, 0
	}
}

// addBytes counts bytes that the next request has and the last one did not.
func (b *Budget) addBytes(bytes int) { b.BytesSince += bytes }

// estimatedCharge returns the estimated charge of a call whose usage is not known: its request as
// last counted, and what was added since.
func (b Budget) estimatedCharge() agent.Charge {
	return agent.Charge{Usage: agent.Usage{Input: b.RequestTokens + int64(b.BytesSince+bytesPerToken-1)/bytesPerToken}, Estimated: true}
}

// allowance returns how much the run's own limits allow the tree, counted from the run's start.
func (b Budget) allowance() wire.Amounts {
	c := wire.LimitAmounts(b.Limits)
	for r := range wire.Resources {
		if c[r] != wire.Unlimited {
			// Add the usage at the last renewal, so that it can be compared with sums over the
			// whole run. The bound before that keeps the sum from overflowing.
			c[r] = min(c[r], maxGrant(r)) + b.UsedAtRenewal[r]
		}
	}
	return c
}

// workedAt returns the working time at a time.
func (b Budget) workedAt(now time.Time) time.Duration {
	b.advanceClock(now)
	return b.Worked
}

// deadline returns when the run's own limit of working time ends; zero if it has none, or while
// the clock stands still.
func (b Budget) deadline() time.Time {
	if b.Limits.WallClock == 0 || b.RunningSince.IsZero() {
		return time.Time{}
	}
	return b.RunningSince.Add(time.Duration(b.allowance()[wire.ResourceTime]) - b.Worked)
}

// ownTurns returns how many turns the run itself has started.
func (s *State) ownTurns() int { return s.Turn.N - s.Budget.ForkTurn }

// tally returns what the run itself has used.
func (s *State) tally() agent.Tally {
	b := s.Budget
	return agent.Tally{Agents: 1, Turns: s.ownTurns(), Usage: b.Usage, Cost: b.Cost, Estimated: b.Estimated}
}

// treeTally returns what the run and all runs below it have used, as far as reports say.
func (s *State) treeTally() agent.Tally {
	t := s.tally().Add(s.Ledger.EndedUsage)
	for _, a := range s.Ledger.Accounts {
		t = t.Add(a.Used)
	}
	return t
}

// usedAmounts returns what the tree has used of each resource.
func (s *State) usedAmounts() (spent wire.Amounts) {
	k := s.budgetView()
	for r := range wire.Resources {
		spent[r] = k.used(r)
	}
	return spent
}

// limitOrder is the order in which limits are checked before a model call.
var limitOrder = []wire.Resource{wire.ResourceTurns, wire.ResourceTime, wire.ResourceTokens, wire.ResourceCost}

// exhaustedLimit returns the error of the first of the run's own limits that is used up; nil if
// none is. It is asked before each turn.
func (s *State) exhaustedLimit() *agent.Error {
	if most := s.Budget.Limits.OwnTurns; most > 0 && s.ownTurns()-s.Budget.OwnTurnsAtRenewal >= most {
		if s.isFlow() {
			return flowLimitError(most)
		}
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

// limitError returns the error of a limit that is used up.
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

// workingTimePasses reports whether working time passes: the run works, or a sub-agent does. A held
// run's sub-agents are held, too, so they don't count.
func (s *step) workingTimePasses() bool {
	began := s.Phase != RunNew && s.Phase != RunOpening && s.Phase != RunImporting
	return began && !s.outcomeDecided() && (!s.Suspensions.atRest() || !s.Holds.any() && s.Children.anyWorking())
}

// chargeReply charges a model call, with its failed attempts.
func (s *step) chargeReply(r wire.Reply) {
	s.Budget.setCharged(agent.Usage{})
	s.chargeAll(r.Charges, s.Budget.estimatedCharge())
	s.Budget.charge(agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost}, s.Spec.Price)
	s.Budget.setRequestTokens(r.Usage)
}

// chargeAll charges attempts. estimate is the charge of an attempt of which nothing is known: only the
// machine can estimate it.
func (s *step) chargeAll(spent []agent.Charge, estimate agent.Charge) {
	for _, c := range spent {
		s.Budget.charge(s.known(c, estimate), s.Spec.Price)
	}
}

// known returns a charge with what the machine knows of it beside the activity: the estimate, and the
// model of a flow's call, which an attempt that was lost did not name.
func (s *State) known(c, estimate agent.Charge) agent.Charge {
	switch {
	case c.Estimated && c.Usage == (agent.Usage{}):
		return estimate
	case c.Model == "" && estimate.Model != "":
		c.Model, c.Cost = estimate.Model, s.modelPrice(estimate.Model).Of(c.Usage)
	}
	return c
}

// chargeEstimate charges an estimate for a model call in flight that the run no longer waits for.
// If its reply comes late, chargeLateReply charges the rest.
func (s *step) chargeEstimate() {
	if s.Turn.inFlight() && !s.Budget.Charged {
		c := s.Budget.estimatedCharge()
		s.Budget.setCharged(c.Usage)
		s.Budget.charge(c, s.Spec.Price)
	}
}

// chargeLateReply charges what a cancelled call has used beyond the estimate. An answer that says
// nothing of that is refused: the estimate stays for the one that does.
func (s *step) chargeLateReply(ask int64, r wire.Reply) error {
	silent := len(r.Charges) == 0 && r.Usage == (agent.Usage{})
	if silent || s.Phase == RunEnded || s.Turn.inFlight() || ask != s.Turn.AskSeq || s.Budget.EstimatedCharge == (agent.Usage{}) {
		return s.refuse("the model call of event %d is not waited for in phase %q", ask, s.phaseName())
	}
	s.chargeBeyond(agent.Charge{Usage: s.Budget.EstimatedCharge, Estimated: true}, append(slices.Clip(r.Charges), agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost}))
	s.Budget.setCharged(agent.Usage{}) // no estimate is left, so a second late reply is refused above
	return nil
}

// chargeBeyond charges attempts, less the estimate that was charged for their call. Each part of the
// estimate is subtracted once, over all attempts: tokens, and what they cost.
func (s *step) chargeBeyond(estimate agent.Charge, all []agent.Charge) {
	price := s.Spec.Price
	if estimate.Model != "" {
		price = s.modelPrice(estimate.Model)
	}
	left := estimate.Usage.Bounded()
	for _, c := range all {
		// First: an attempt of which nothing is known is the one that was estimated.
		c = s.known(c, estimate)
		u := c.Usage.Bounded()
		rest := usageBeyond(left, u)
		c.Usage, c.Cost = usageBeyond(u, left), max(0, amount.Clamp(c.Cost)-price.Of(usageBeyond(left, rest)))
		left = rest
		s.Budget.charge(c, s.Spec.Price)
	}
}

// usageBeyond returns what u has more than guessed, and zero where it has less.
func usageBeyond(u, guessed agent.Usage) agent.Usage {
	return agent.Usage{
		Input: max(0, u.Input-guessed.Input), Output: max(0, u.Output-guessed.Output), CacheRead: max(0, u.CacheRead-guessed.CacheRead),
		CacheWrite: max(0, u.CacheWrite-guessed.CacheWrite), Reasoning: max(0, u.Reasoning-guessed.Reasoning),
		Searches: max(0, u.Searches-guessed.Searches),
	}
}

// renew renews the limit that a person has extended, and no other.
func (s *step) renew(limit agent.Code) {
	s.Budget.renew(limit, s.usedAmounts(), s.ownTurns())
	if limit == agent.CodeLimitTurns {
		s.Adaptive.renew()
	}
	s.record(agent.Event{Type: agent.EventLimitExtended, Extended: limit})
}

// renewAllLimits renews what a daemon has for each wake: its limits, and the counts of the model's
// faults, such as repairs and repeated calls.
func (s *step) renewAllLimits() {
	s.Budget.renewAll(s.usedAmounts(), s.ownTurns())
	s.Turn.resetCounts()
	s.Recovery.resetAll()
	s.Loops.reset()
	s.Adaptive.renew()
}

// limitsUsed returns how much the run's tree has used of each of the run's own limits.
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
	// Only once there was a sub-agent. used counts the run itself; limits.agents does not.
	if l.Agents > 0 && len(s.Ledger.Accounts)+s.Ledger.EndedUsage.Agents > 0 {
		u.Agents = &agent.Used[int]{Used: int(k.used(wire.ResourceAgents)-base[wire.ResourceAgents]) - 1, Max: l.Agents}
	}
	return u
}

// remainingBudget returns what the run may still use by all limits, with own_turns among them.
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

// netGrant returns what the parent has granted, less what the run has given back.
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

// remaining returns what a handoff says of the remaining budget: zero, too, if there is no limit.
func (s *State) remaining() agent.Remaining {
	room := s.remainingBudget()
	some := func(r wire.Resource) int64 { return max(0, room[r]) }
	return agent.Remaining{Turns: int(some(wire.ResourceTurns)), Tokens: some(wire.ResourceTokens), Cost: agent.USD(some(wire.ResourceCost))}
}
