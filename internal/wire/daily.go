package wire

import "github.com/fermata-agents/fermata/agent"

// DailyClaim is what a worker says to the account of a task queue: what it claims of the
// daily limits, and what it does not need of its last grant.
type DailyClaim struct {
	// ID makes a second arrival harmless: it is answered as the first. Empty means that there
	// is none.
	ID     string            `json:"id,omitempty"`
	Limits agent.DailyLimits `json:"limits"`
	// Day is that of the last grant, "2026-11-21"; empty without one.
	Day string `json:"day,omitempty"`
	// Remaining is what is left of that grant. It is negative where calls used more.
	Remaining agent.DailyLimits `json:"remaining,omitzero"`
	// Closing means that the worker claims nothing more.
	Closing bool `json:"closing,omitempty"`
}

// DailyGrant answers a [DailyClaim].
type DailyGrant struct {
	Day     string            `json:"day"`
	Granted agent.DailyLimits `json:"granted,omitzero"`
	// UsedUp is [agent.CodeLimitTokens] or [agent.CodeLimitCost] where nothing is granted since that limit is
	// used up; empty else.
	UsedUp agent.Code `json:"used_up,omitempty"`
}
