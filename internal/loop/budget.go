package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Budget is the part that knows what the run has used and what its limits allow.
type Budget struct {
	Limits agent.Limits `json:"limits,omitzero"`
	Usage  agent.Usage  `json:"usage"`
	Cost   agent.USD    `json:"cost_usd"`
	// Base is what was used up when a limit was renewed.
	Base agent.Limits `json:"base,omitzero"`
	// Deadline is when the working time is over; zero if it has no limit. It stands
	// still while the run is suspended.
	Deadline time.Time `json:"deadline,omitzero"`
}

// charge adds what a reply used and cost, at the price of the model that gave it.
func (b *Budget) charge(r agent.Reply, own agent.Price) {
	b.Usage = b.Usage.Add(r.Usage)
	if r.Model != "" {
		b.Cost += r.Cost
		return
	}
	b.Cost += own.Of(r.Usage)
}

// allow sets the limits of a run that begins.
func (b *Budget) allow(l agent.Limits) { b.Limits = l }

// starts begins the working time.
func (b *Budget) starts(at time.Time) {
	if b.Limits.WallClock > 0 {
		b.Deadline = at.Add(time.Duration(b.Limits.WallClock))
	}
}

// postpone lets the working time stand still for as long as the run rested.
func (b *Budget) postpone(rested time.Duration) {
	if !b.Deadline.IsZero() {
		b.Deadline = b.Deadline.Add(rested)
	}
}

// renew lets one limit count from now on; turn is how many turns there have been.
func (b *Budget) renew(limit agent.Code, turn int, from time.Time) {
	switch limit {
	case agent.LimitTurns:
		b.Base.Turns = turn
	case agent.LimitTokens:
		b.Base.Tokens = b.Usage.Total()
	case agent.LimitCost:
		b.Base.CostUSD = b.Cost
	case agent.LimitTime:
		b.starts(from)
	}
}

// afresh lets all limits count from now on.
func (b *Budget) afresh(turn int, from time.Time) {
	b.Base = agent.Limits{Turns: turn, Tokens: b.Usage.Total(), CostUSD: b.Cost}
	b.starts(from)
}

// countsFrom lets the limit of turns count from a turn.
func (b *Budget) countsFrom(turn int) { b.Base.Turns = turn }

func (b Budget) turns(turn int) int { return turn - b.Base.Turns }
func (b Budget) tokens() int64      { return b.Usage.Total() - b.Base.Tokens }
func (b Budget) cost() agent.USD    { return b.Cost - b.Base.CostUSD }

// limit is the first limit that stands before the next model call, in this order: turns,
// time, tokens, cost; nil if none does.
func (b Budget) limit(turn int, at time.Time) *agent.Error {
	l := b.Limits
	switch {
	case l.Turns > 0 && b.turns(turn) >= l.Turns:
		return agent.Errorf(agent.LimitTurns, "the run has made the %d model calls that limits.turns allows", l.Turns)
	case reached(b.Deadline, at):
		return b.outOfTime()
	case l.Tokens > 0 && b.tokens() >= l.Tokens:
		return agent.Errorf(agent.LimitTokens, "the run has used %d tokens; limits.tokens allows %d", b.tokens(), l.Tokens)
	case l.CostUSD > 0 && b.cost() >= l.CostUSD:
		return agent.Errorf(agent.LimitCost, "the run has cost %s USD; limits.cost_usd allows %s", b.cost(), l.CostUSD)
	}
	return nil
}

func (b Budget) outOfTime() *agent.Error {
	return agent.Errorf(agent.LimitTime, "the run has worked for the %s that limits.wall_clock allows", b.Limits.WallClock)
}

// used is how much of each limit is used up.
func (b Budget) used(turn int, now time.Time) (u agent.LimitsUsed) {
	l := b.Limits
	if l.Turns > 0 {
		u.Turns = &agent.Used[int]{Used: b.turns(turn), Max: l.Turns}
	}
	if l.Tokens > 0 {
		u.Tokens = &agent.Used[int64]{Used: b.tokens(), Max: l.Tokens}
	}
	if l.CostUSD > 0 {
		u.CostUSD = &agent.Used[agent.USD]{Used: b.cost(), Max: l.CostUSD}
	}
	if l.WallClock > 0 && !b.Deadline.IsZero() {
		left := agent.Duration(b.Deadline.Sub(now).Round(time.Second))
		u.Clock = &agent.Used[agent.Duration]{Used: l.WallClock - left, Max: l.WallClock}
	}
	return u
}

// left is what the limits still allow.
func (b Budget) left(turn int) (l agent.Left) {
	if most := b.Limits.Turns; most > 0 {
		l.Turns = max(0, most-b.turns(turn))
	}
	if most := b.Limits.Tokens; most > 0 {
		l.Tokens = max(0, most-b.tokens())
	}
	if most := b.Limits.CostUSD; most > 0 {
		l.Cost = max(0, most-b.cost())
	}
	return l
}

// limit is the first limit that stands before the next model call.
func (s *step) limit() *agent.Error { return s.Budget.limit(s.Turn.N, s.At) }

// clockRuns reports whether working time passes and its end ends the run: if the limit
// asks, it does so at the turn's end. An idle daemon that sums up has done its work.
func (s *step) clockRuns() bool {
	return !s.Budget.Deadline.IsZero() && !s.Rest.resting() && !s.idling() && s.End.Stopping == nil && (s.Spec == nil || s.Spec.OnLimit != agent.AskOnReached)
}

// clockFrom is when a renewed working time begins: a rest is added when it ends.
func (s *step) clockFrom() time.Time {
	if s.Rest.resting() {
		return s.Rest.Since
	}
	return s.now()
}

// renew renews the limit that asked, and no other.
func (s *step) renew(limit agent.Code) {
	s.Budget.renew(limit, s.Turn.N, s.clockFrom())
	s.record(agent.Event{Type: agent.LimitExtended, Extended: limit})
}

// afresh renews what holds for each wake of a daemon: the limits, and what counts towards
// an end by the model's own fault.
func (s *step) afresh() {
	s.Budget.afresh(s.Turn.N, s.clockFrom())
	s.Turn.absolve()
}
