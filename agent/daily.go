package agent

// Daily is what all runs of a task queue may use together in one day, from midnight to
// midnight UTC. A zero amount bounds nothing.
type Daily struct {
	// Tokens counts input and output, as [Limits.Tokens] does.
	Tokens  int64 `json:"tokens,omitempty"`
	CostUSD USD   `json:"cost_usd,omitempty"`
}

// Check refuses amounts below zero with [InvalidInput].
func (d Daily) Check() error {
	switch {
	case d.Tokens < 0:
		return Errorf(InvalidInput, "daily.tokens: %d is not a positive number", d.Tokens).At("daily.tokens")
	case d.CostUSD < 0:
		return Errorf(InvalidInput, "daily.cost_usd: %s is not a positive amount", d.CostUSD).At("daily.cost_usd")
	}
	return nil
}

// DailyClaim is what a worker says to the account of a task queue: what it claims of the
// daily limits, and what it does not need of its last grant.
type DailyClaim struct {
	// ID makes a second arrival harmless: it is answered as the first. Empty means that there
	// is none.
	ID     string `json:"id,omitempty"`
	Limits Daily  `json:"limits"`
	// Day is that of the last grant, "2026-11-21"; empty without one.
	Day string `json:"day,omitempty"`
	// Left is what is left of that grant. It is negative where calls used more.
	Left Daily `json:"left,omitzero"`
	// Closing means that the worker claims nothing more.
	Closing bool `json:"closing,omitempty"`
}

// DailyGrant answers a [DailyClaim].
type DailyGrant struct {
	Day     string `json:"day"`
	Granted Daily  `json:"granted,omitzero"`
	// UsedUp is [LimitTokens] or [LimitCost] where nothing is granted since that limit is
	// used up; empty else.
	UsedUp Code `json:"used_up,omitempty"`
}
