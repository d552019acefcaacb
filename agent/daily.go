package agent

// DailyLimits is what all runs of a task queue may use together in one day, from midnight to
// midnight UTC. A zero amount is no limit.
type DailyLimits struct {
	// Tokens is how many input and output tokens all runs may use in a day.
	Tokens int64 `json:"tokens,omitempty"`
	// CostUSD is what the model calls of all runs may cost in a day, in US dollars.
	CostUSD USD `json:"cost_usd,omitempty"`
}

// Check refuses amounts below zero with [CodeInvalidInput].
func (d DailyLimits) Check() error {
	switch {
	case d.Tokens < 0:
		return Errorf(CodeInvalidInput, "daily.tokens: %d is not a positive number", d.Tokens).WithPath("daily.tokens")
	case d.CostUSD < 0:
		return Errorf(CodeInvalidInput, "daily.cost_usd: %s is not a positive amount", d.CostUSD).WithPath("daily.cost_usd")
	}
	return nil
}

// DailyClaim is what a worker says to the account of a task queue: what it claims of the
// daily limits, and what it does not need of its last grant.
type DailyClaim struct {
	// ID makes a second arrival harmless: it is answered as the first. Empty means that there
	// is none.
	ID     string      `json:"id,omitempty"`
	Limits DailyLimits `json:"limits"`
	// Day is that of the last grant, "2026-11-21"; empty without one.
	Day string `json:"day,omitempty"`
	// Remaining is what is left of that grant. It is negative where calls used more.
	Remaining DailyLimits `json:"remaining,omitzero"`
	// Closing means that the worker claims nothing more.
	Closing bool `json:"closing,omitempty"`
}

// DailyGrant answers a [DailyClaim].
type DailyGrant struct {
	Day     string      `json:"day"`
	Granted DailyLimits `json:"granted,omitzero"`
	// UsedUp is [CodeLimitTokens] or [CodeLimitCost] where nothing is granted since that limit is
	// used up; empty else.
	UsedUp Code `json:"used_up,omitempty"`
}
