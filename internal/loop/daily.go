package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// DailyAccount is what the workers of a task queue were granted of its daily limits on one
// day. The zero value is an account of no day yet.
type DailyAccount struct {
	Day     string            `json:"day"` // UTC, "2026-11-21"
	Granted agent.DailyLimits `json:"granted"`
	// Settled are the last claims with an id and their answers: one that comes again, since
	// its answer was lost, is answered alike.
	Settled []SettledClaim `json:"settled,omitempty"`
}

// SettledClaim is what a claim was answered.
type SettledClaim struct {
	ID    string          `json:"id"`
	Grant wire.DailyGrant `json:"grant"`
}

// maxSettled is how many claims an account remembers: those of some minutes, and some 40 kB.
const maxSettled = 256

// A worker is granted a part of what is left, so that many can work and one that is lost
// takes little with it, and a thousandth of the limit at least, so that grants stay few.
const (
	grantDivisor    = 50
	minGrantDivisor = 1000
)

// Claim returns the account after a claim, and what it grants. Amounts of an earlier day
// are forgotten: a new day begins with the whole limit.
func (a DailyAccount) Claim(now time.Time, c wire.DailyClaim) (DailyAccount, wire.DailyGrant) {
	a = a.on(now)
	if i := slices.IndexFunc(a.Settled, func(s SettledClaim) bool { return s.ID == c.ID }); i >= 0 && c.ID != "" {
		return a, a.Settled[i].Grant
	}
	a, grant := a.claim(c)
	if c.ID != "" {
		a.Settled = append(slices.Clone(a.Settled[max(0, len(a.Settled)-maxSettled+1):]), SettledClaim{c.ID, grant})
	}
	return a, grant
}

// on is the account of a day. A clock that goes back does not begin the day anew, unless it
// was wrong by more than a day: else no day would begin until then.
func (a DailyAccount) on(now time.Time) DailyAccount {
	day, next := now.UTC().Format(time.DateOnly), now.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	if a.Day < day || a.Day > next {
		return DailyAccount{Day: day}
	}
	return a
}

func (a DailyAccount) claim(c wire.DailyClaim) (DailyAccount, wire.DailyGrant) {
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

// dailyShare is what one claim is granted of an amount; zero if nothing bounds it.
func dailyShare[T int64 | agent.USD](left, limit T) T {
	if limit <= 0 {
		return 0
	}
	return min(left, max(left/grantDivisor, limit/minGrantDivisor, 1))
}
