package agent

import "github.com/fermata-agents/fermata/internal/amount"

// Tally is what a run has used over its life, alone or with all runs below it.
type Tally struct {
	// Agents counts runs, the run itself included.
	Agents int   `json:"agents,omitempty"`
	Turns  int   `json:"turns,omitempty"` // model calls
	Usage  Usage `json:"usage,omitzero"`
	Cost   USD   `json:"cost_usd,omitempty"`
	// Estimated is the part of Usage and Cost that no provider reported: of calls that
	// broke off, and of runs that ended without a report. Estimates err on the high side.
	Estimated Estimate `json:"estimated,omitzero"`
}

// Estimate is the part of a [Tally] that is estimated.
type Estimate struct {
	Tokens int64 `json:"tokens,omitempty"`
	Cost   USD   `json:"cost_usd,omitempty"`
}

// Add returns the sum. Each number stays within 0 and 2^52.
func (e Estimate) Add(o Estimate) Estimate {
	return Estimate{amount.Add(e.Tokens, o.Tokens), amount.Add(e.Cost, o.Cost)}
}

// Add returns the sum. Each number stays within 0 and 2^52.
func (t Tally) Add(o Tally) Tally {
	return Tally{
		amount.Add(t.Agents, o.Agents), amount.Add(t.Turns, o.Turns), t.Usage.Add(o.Usage), amount.Add(t.Cost, o.Cost),
		t.Estimated.Add(o.Estimated),
	}
}

// Charge is what the failed attempts at a model call have used. The attempt whose reply
// was used is not in it.
type Charge struct {
	// Model is the fallback that was called, and Cost is what its tokens cost. Both are
	// empty for the Spec's own model, since the Spec has its price.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
	Cost  USD    `json:"cost_usd,omitempty"`
	// Estimated means that the provider reported no usage. The input is then about the
	// size of the request, and the output is what had arrived. An estimate with no usage
	// stands for a call about which nothing is known.
	Estimated bool `json:"estimated,omitempty"`
}

// Budget is an amount of everything that limits count. A nil field has no limit.
type Budget struct {
	Turns     *int      `json:"turns,omitempty"`
	Tokens    *int64    `json:"tokens,omitempty"`
	CostUSD   *USD      `json:"cost_usd,omitempty"`
	Agents    *int      `json:"agents,omitempty"`
	WallClock *Duration `json:"wall_clock,omitempty"`
}
