package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Budget is the part that knows what the run itself has used and what its own limits
// allow. What its sub-agents use, and what the parent allows, is in [Ledger].
type Budget struct {
	Limits agent.Limits `json:"limits,omitzero"`
	Usage  agent.Usage  `json:"usage"`
	Cost   agent.USD    `json:"cost_usd"`
	// Estimated is the part of that which nobody has told.
	Estimated agent.Estimate `json:"estimated,omitzero"`
	// From is the turn behind which the run began.
	From int `json:"from,omitempty"`
	// Base is what the tree had used when a limit was renewed, and OwnBase the run's own
	// turns then.
	Base    agent.Amounts `json:"base,omitzero"`
	OwnBase int           `json:"own_base,omitempty"`
	// Last is what the last turn used: about what the next one needs.
	Last agent.Amounts `json:"last,omitzero"`
	// Request is how many tokens the last request had that the model answered, as it
	// counted them, and Since how many bytes were said since.
	Request int64 `json:"request,omitempty"`
	// Counted is that number if it is of this turn, else zero.
	Counted int64 `json:"counted,omitempty"`
	Since   int   `json:"since,omitempty"`
	// Paid means that the model call in flight is charged, and Blind is what was charged
	// for one that was given up and of which nothing was known.
	Paid  bool        `json:"paid,omitempty"`
	Blind agent.Usage `json:"blind,omitzero"`
	// Worked is how long the run has worked, and Runs since when it is at work again; zero
	// while the clock stands still.
	Worked time.Duration `json:"worked,omitempty"`
	Runs   time.Time     `json:"runs,omitzero"`
}

// bytesPerToken is less than texts in English have, so that an estimate is rather high.
const bytesPerToken = 3

// allow sets the limits of a run that begins.
func (b *Budget) allow(l agent.Limits) { b.Limits = l }

// starts begins the working time.
func (b *Budget) starts(at time.Time) { b.Runs = at }

// tick takes that time has passed.
func (b *Budget) tick(at time.Time) {
	if !b.Runs.IsZero() && at.After(b.Runs) {
		b.Worked, b.Runs = b.Worked+at.Sub(b.Runs), at
	}
}

// clock lets the working time pass or stand still from now on.
func (b *Budget) clock(passes bool, at time.Time) {
	switch {
	case !passes:
		b.Runs = time.Time{}
	case b.Runs.IsZero():
		b.Runs = at
	}
}

// began sets the turn behind which the run began: the limits are new.
func (b *Budget) began(turn int) { b.From = turn }

// renew lets one limit count from now on; spent is what the tree has used.
func (b *Budget) renew(limit agent.Code, spent agent.Amounts, own int) {
	for r := range agent.Resources {
		if r.Code() == limit {
			b.Base[r] = spent[r]
		}
	}
	if limit == agent.LimitTurns {
		b.OwnBase = own
	}
}

// afresh lets all limits count from now on.
func (b *Budget) afresh(spent agent.Amounts, own int) {
	spent[agent.ResourceAgents]-- // the run itself is not started again
	b.Base, b.OwnBase = spent, own
}

// charge adds what one attempt at a model call has used.
func (b *Budget) charge(c agent.Charge, own agent.Price) {
	if c.Model == "" {
		c.Cost = own.Of(c.Usage)
	}
	tokens := c.Usage.Bounded().Total()
	b.Usage, b.Cost = b.Usage.Add(c.Usage), agent.Sum(b.Cost, c.Cost)
	b.Last[agent.ResourceTokens] = agent.Sum(b.Last[agent.ResourceTokens], tokens)
	b.Last[agent.ResourceCost] = agent.Sum(b.Last[agent.ResourceCost], int64(c.Cost))
	if c.Estimated {
		b.Estimated = b.Estimated.Add(agent.Estimate{Tokens: tokens, Cost: c.Cost})
	}
}

// calls takes that the model is asked.
func (b *Budget) calls() { b.Paid, b.Blind = false, agent.Usage{} }

// pays takes that the call is charged, blindly with what was guessed.
func (b *Budget) pays(blind agent.Usage) { b.Paid, b.Blind = true, blind }

// turn begins to count what a turn needs.
func (b *Budget) turn() {
	b.Last, b.Counted = agent.Amounts{agent.ResourceTurns: 1, agent.ResourceAgents: 1}, 0
}

// counted takes how many tokens the model has counted in a request.
func (b *Budget) counted(u agent.Usage) {
	if u.Input > 0 {
		n := agent.Amount(u.Input)
		b.Request, b.Counted, b.Since = n, n, 0
	}
}

// said counts what will be in the next request.
func (b *Budget) said(bytes int) { b.Since += bytes }

// blind is the charge of a call of which nothing is known.
func (b Budget) blind() agent.Charge {
	return agent.Charge{Usage: agent.Usage{Input: b.Request + int64(b.Since+bytesPerToken-1)/bytesPerToken}, Estimated: true}
}

// allowance is how much the run's own limits allow the tree in all, counted from its birth.
func (b Budget) allowance() agent.Amounts {
	c := b.Limits.Amounts()
	for r := range agent.Resources {
		if c[r] != agent.NotBounded {
			c[r] = min(c[r], maxGrant(r)) + b.Base[r]
		}
	}
	return c
}

// workedAt is how long the run has worked until a time.
func (b Budget) workedAt(now time.Time) time.Duration {
	b.tick(now)
	return b.Worked
}

// deadline is when the working time of the run's own limit is over; zero if it has none,
// or while the clock stands still.
func (b Budget) deadline() time.Time {
	if b.Limits.WallClock == 0 || b.Runs.IsZero() {
		return time.Time{}
	}
	return b.Runs.Add(time.Duration(b.allowance()[agent.ResourceTime]) - b.Worked)
}

// ownTurns is how many model calls the run itself has made of those that it may.
func (s *State) ownTurns() int { return s.Turn.N - s.Budget.From }

// tally is what the run itself has used.
func (s *State) tally() agent.Tally {
	b := s.Budget
	return agent.Tally{Agents: 1, Turns: s.ownTurns(), Usage: b.Usage, Cost: b.Cost, Estimated: b.Estimated}
}

// treeTally is what the run and all below it have used, as far as that was heard.
func (s *State) treeTally() agent.Tally {
	t := s.tally().Add(s.Ledger.Gone)
	for _, a := range s.Ledger.Accounts {
		t = t.Add(a.Spent)
	}
	return t
}

// spentAmounts is what the tree has used of each resource.
func (s *State) spentAmounts() (spent agent.Amounts) {
	k := s.reckon()
	for r := range agent.Resources {
		spent[r] = k.spent(r)
	}
	return spent
}

// limitOrder is the order in which limits are looked at before a model call.
var limitOrder = []agent.Resource{agent.ResourceTurns, agent.ResourceTime, agent.ResourceTokens, agent.ResourceCost}

// limit is the first of the run's own limits that is used up before a model call; nil if
// none is.
func (s *State) limit() *agent.Error {
	if most := s.Budget.Limits.OwnTurns; most > 0 && s.ownTurns()-s.Budget.OwnBase >= most {
		return agent.Errorf(agent.LimitTurns, "the run has made the %d model calls that limits.own_turns allows", most)
	}
	k := s.reckon()
	for _, r := range limitOrder {
		if k.exhausted(r) {
			return s.used(r, k)
		}
	}
	return nil
}

// used is the error of a limit that is used up.
func (s *State) used(r agent.Resource, k reckoning) *agent.Error {
	who := "the run has"
	if len(k.Accounts) > 0 || k.Gone.Agents > 0 {
		who = "the run and the agents below it have"
	}
	l, n := s.Budget.Limits, k.spent(r)-s.Budget.Base[r]
	switch r {
	case agent.ResourceTurns:
		return agent.Errorf(agent.LimitTurns, "%s made the %d model calls that limits.turns allows", who, l.Turns)
	case agent.ResourceTime:
		return s.Budget.outOfTime()
	case agent.ResourceTokens:
		return agent.Errorf(agent.LimitTokens, "%s used %d tokens; limits.tokens allows %d", who, n, l.Tokens)
	default:
		return agent.Errorf(agent.LimitCost, "%s cost %s USD; limits.cost_usd allows %s", who, agent.USD(n), l.CostUSD)
	}
}

func (b Budget) outOfTime() *agent.Error {
	return agent.Errorf(agent.LimitTime, "the run has worked for the %s that limits.wall_clock allows", b.Limits.WallClock)
}

// clockPasses reports whether working time passes: the run is at work, or a sub-agent is.
// Those of a held run are held too.
func (s *step) clockPasses() bool {
	began := s.Life != New && s.Life != Opening && s.Life != Importing
	return began && !s.over() && (!s.Rest.resting() || !s.Holds.any() && s.Children.anyBusy())
}

// clockRuns reports whether the end of the working time ends the run: if the limit asks,
// it does so at the turn's end. An idle daemon that sums up has done its work.
func (s *step) clockRuns() bool {
	return !s.Budget.deadline().IsZero() && !s.idling() && s.End.Stopping == nil && (s.Spec == nil || s.Spec.OnLimit != agent.AskOnReached)
}

// chargeReply takes what a model call has used, also in attempts that failed.
func (s *step) chargeReply(r agent.Reply) {
	s.Budget.pays(agent.Usage{})
	s.chargeAll(r.Spent)
	s.Budget.charge(agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost}, s.Spec.Price)
	s.Budget.counted(r.Usage)
}

func (s *step) chargeAll(spent []agent.Charge) {
	for _, c := range spent {
		if c.Estimated && c.Usage == (agent.Usage{}) {
			c = s.Budget.blind()
		}
		s.Budget.charge(c, s.Spec.Price)
	}
}

// chargeBlind takes that a model call is given up whose result nobody waits for: what it
// has used will not be told.
func (s *step) chargeBlind() {
	if s.Turn.inFlight() && !s.Budget.Paid {
		c := s.Budget.blind()
		s.Budget.pays(c.Usage)
		s.Budget.charge(c, s.Spec.Price)
	}
}

// late charges what a call that was given up has used beyond what was guessed.
func (s *step) late(ask int64, r agent.Reply) error {
	if s.Life == Ended || s.Turn.inFlight() || ask != s.Turn.Ask || s.Budget.Blind == (agent.Usage{}) {
		return s.refuse("the model call of event %d is not waited for in phase %q", ask, s.at())
	}
	guessed := s.Budget.Blind
	all := append(slices.Clip(r.Spent), agent.Charge{Model: r.Model, Usage: r.Usage, Cost: r.Cost})
	for i, c := range all {
		u := c.Usage.Bounded()
		all[i].Usage, guessed = beyond(u, guessed), beyond(guessed, u)
	}
	s.Budget.pays(agent.Usage{})
	s.chargeAll(all)
	return nil
}

// beyond is what one usage has more than another.
func beyond(u, guessed agent.Usage) agent.Usage {
	return agent.Usage{
		Input: max(0, u.Input-guessed.Input), Output: max(0, u.Output-guessed.Output), CacheRead: max(0, u.CacheRead-guessed.CacheRead),
		CacheWrite: max(0, u.CacheWrite-guessed.CacheWrite), Reasoning: max(0, u.Reasoning-guessed.Reasoning),
		Searches: max(0, u.Searches-guessed.Searches),
	}
}

// renew renews the limit that asked, and no other.
func (s *step) renew(limit agent.Code) {
	s.Budget.renew(limit, s.spentAmounts(), s.ownTurns())
	s.record(agent.Event{Type: agent.LimitExtended, Extended: limit})
}

// afresh renews what holds for each wake of a daemon: the limits, and what counts towards
// an end by the model's own fault.
func (s *step) afresh() {
	s.Budget.afresh(s.spentAmounts(), s.ownTurns())
	s.Turn.absolve()
}

// usedOfLimits is how much of each of its own limits the run's tree has used up.
func (s *State) usedOfLimits(now time.Time) (u agent.LimitsUsed) {
	l, base, k := s.Budget.Limits, s.Budget.Base, s.reckon()
	if l.Turns > 0 {
		u.Turns = &agent.Used[int]{Used: int(k.spent(agent.ResourceTurns) - base[agent.ResourceTurns]), Max: l.Turns}
	}
	if l.OwnTurns > 0 {
		u.OwnTurns = &agent.Used[int]{Used: s.ownTurns() - s.Budget.OwnBase, Max: l.OwnTurns}
	}
	if l.Tokens > 0 {
		u.Tokens = &agent.Used[int64]{Used: k.spent(agent.ResourceTokens) - base[agent.ResourceTokens], Max: l.Tokens}
	}
	if l.CostUSD > 0 {
		u.CostUSD = &agent.Used[agent.USD]{Used: agent.USD(k.spent(agent.ResourceCost) - base[agent.ResourceCost]), Max: l.CostUSD}
	}
	if l.WallClock > 0 {
		worked := agent.Duration(s.Budget.workedAt(now)) - agent.Duration(base[agent.ResourceTime])
		u.Clock = &agent.Used[agent.Duration]{Used: agent.Duration(time.Duration(worked).Round(time.Second)), Max: l.WallClock}
	}
	if l.Agents > 0 && len(s.Ledger.Accounts)+s.Ledger.Gone.Agents > 0 {
		u.Agents = &agent.Used[int]{Used: int(k.spent(agent.ResourceAgents)-base[agent.ResourceAgents]) - 1, Max: l.Agents}
	}
	return u
}

// room is what the run may still use, by all limits.
func (s *State) room() (room agent.Amounts) {
	k := s.reckon()
	for r := range agent.Resources {
		left := k.left(r)
		if most := s.Budget.Limits.OwnTurns; r == agent.ResourceTurns && most > 0 {
			left = min(left, int64(most-s.ownTurns()+s.Budget.OwnBase))
		}
		if room[r] = max(0, left); left == plenty {
			room[r] = agent.NotBounded
		}
	}
	return room
}

// netGrant is what the parent has granted, less what was given back.
func (s *State) netGrant() agent.Amounts {
	net := agent.Limits{}.Amounts()
	if a := s.Ledger.Above; a != nil {
		net = a.Granted
		for r := range net {
			if net[r] != agent.NotBounded {
				net[r] -= a.Returned[r]
			}
		}
	}
	return net
}

// left is what a handoff says of what the limits still allow.
func (s *State) left() agent.Left {
	room := s.room()
	some := func(r agent.Resource) int64 { return max(0, room[r]) }
	return agent.Left{Turns: int(some(agent.ResourceTurns)), Tokens: some(agent.ResourceTokens), Cost: agent.USD(some(agent.ResourceCost))}
}
