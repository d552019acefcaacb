package agent

// DailyLimits is what all runs of a task queue may use together in one day, from midnight to
// midnight UTC. Zero means no limit.
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
