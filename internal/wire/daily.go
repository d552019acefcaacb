package wire

import "github.com/fermata-agents/fermata/agent"

// DailyClaim is a worker's request to the account of its task queue. It claims a part of the
// daily limits, and returns what the worker did not use of its last grant.
type DailyClaim struct {
	// ID makes a second arrival harmless: it gets the first one's answer. It may be empty.
	ID     string            `json:"id,omitempty"`
	Limits agent.DailyLimits `json:"limits"`
	// Day is the day of the last grant in UTC, such as "2026-11-21"; empty if there was none.
	Day string `json:"day,omitempty"`
	// Remaining is what is left of that grant. It is negative if calls used more.
	Remaining agent.DailyLimits `json:"remaining,omitzero"`
	// Closing means that the worker claims nothing more.
	Closing bool `json:"closing,omitempty"`
}

// DailyGrant answers a [DailyClaim].
type DailyGrant struct {
	Day     string            `json:"day"` // UTC
	Granted agent.DailyLimits `json:"granted,omitzero"`
	// UsedUp is [agent.CodeLimitTokens] or [agent.CodeLimitCost] if nothing is granted because
	// that limit is used up, otherwise empty.
	UsedUp agent.Code `json:"used_up,omitempty"`
}
