package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// DailyAccount is the account of a task queue's daily limits on one day. The zero value is an
// account without a day.
type DailyAccount struct {
	Day     string            `json:"day"` // UTC, "2026-11-21"
	Granted agent.DailyLimits `json:"granted"`
	// Settled are the last claims with an id, and their answers. A worker repeats a claim whose
	// answer was lost, and gets the same answer.
	Settled []SettledClaim `json:"settled,omitempty"`
}

// SettledClaim is a claim's id and its answer.
type SettledClaim struct {
	ID    string          `json:"id"`
	Grant wire.DailyGrant `json:"grant"`
}

// maxSettled is how many claims an account remembers: a few minutes' claims, about 40 kB.
const maxSettled = 256

// A grant is a fiftieth of what is left: many workers can work, and a lost worker takes little with
// it. It is at least a thousandth of the limit, so that there are few grants.
const (
	grantDivisor    = 50
	minGrantDivisor = 1000
)

// Claim returns the account after a claim, and the answer. A new day begins with the whole limit: the
// amounts of an earlier day are forgotten. A second claim with the same id changes nothing.
func (a DailyAccount) Claim(now time.Time, c wire.DailyClaim) (DailyAccount, wire.DailyGrant) {
	a = a.on(now)
	if i := slices.IndexFunc(a.Settled, func(s SettledClaim) bool { return s.ID == c.ID }); i >= 0 && c.ID != "" {
		return a, a.Settled[i].Grant
	}
	a, grant := a.claim(c)
	if c.ID != "" {
		// A new slice: a itself shares the old one.
		a.Settled = append(slices.Clone(a.Settled[max(0, len(a.Settled)-maxSettled+1):]), SettledClaim{c.ID, grant})
	}
	return a, grant
}

// on returns the account on the day of now. A clock that goes back by up to a day keeps the account:
// the limit must not begin twice. If it goes back further, the account's day was wrong, and waiting
// for it would stop all new days until then.
func (a DailyAccount) on(now time.Time) DailyAccount {
	day, next := now.UTC().Format(time.DateOnly), now.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	if a.Day < day || a.Day > next {
		return DailyAccount{Day: day}
	}
	return a
}

func (a DailyAccount) claim(c wire.DailyClaim) (DailyAccount, wire.DailyGrant) {
	// What the worker returns of another day is worth nothing today. Remaining may be negative: then
	// the overuse counts.
	if c.Day == a.Day {
		a.Granted.Tokens = max(0, a.Granted.Tokens-c.Remaining.Tokens)
		a.Granted.CostUSD = max(0, a.Granted.CostUSD-c.Remaining.CostUSD)
	}
	grant := wire.DailyGrant{Day: a.Day}
	left := agent.DailyLimits{Tokens: c.Limits.Tokens - a.Granted.Tokens, CostUSD: c.Limits.CostUSD - a.Granted.CostUSD}
	switch {
	case c.Closing:
		return a, grant
	case c.Limits.Tokens > 0 && left.Tokens <= 0:
		grant.UsedUp = agent.CodeLimitTokens
		return a, grant
	case c.Limits.CostUSD > 0 && left.CostUSD <= 0:
		grant.UsedUp = agent.CodeLimitCost
		return a, grant
	}
	grant.Granted = agent.DailyLimits{Tokens: dailyShare(left.Tokens, c.Limits.Tokens), CostUSD: dailyShare(left.CostUSD, c.Limits.CostUSD)}
	a.Granted.Tokens += grant.Granted.Tokens
	a.Granted.CostUSD += grant.Granted.CostUSD
	return a, grant
}

// dailyShare returns what one claim is granted of an amount; zero if it has no limit.
func dailyShare[T int64 | agent.USD](left, limit T) T {
	if limit <= 0 {
		return 0
	}
	return min(left, max(left/grantDivisor, limit/minGrantDivisor, 1))
}
