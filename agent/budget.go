package agent

import "github.com/fermata-agents/fermata/internal/amount"

// Tally is what one run, or a run with all below it, has used over its life.
type Tally struct {
	// Agents counts runs, the first included.
	Agents int   `json:"agents,omitempty"`
	Turns  int   `json:"turns,omitempty"` // model calls
	Usage  Usage `json:"usage,omitzero"`
	Cost   USD   `json:"cost_usd,omitempty"`
	// Estimated is how much of Usage and Cost nobody has told: that of calls which broke
	// off, and of runs that ended without a report. Estimates err on the high side.
	Estimated Estimate `json:"estimated,omitzero"`
}

// Estimate is the part of a [Tally] that is estimated.
type Estimate struct {
	Tokens int64 `json:"tokens,omitempty"`
	Cost   USD   `json:"cost_usd,omitempty"`
}

// Add returns the sum. Each number of it stays within 0 and 2^52.
func (e Estimate) Add(o Estimate) Estimate {
	return Estimate{amount.Add(e.Tokens, o.Tokens), amount.Add(e.Cost, o.Cost)}
}

// Add returns the sum. Each number of it stays within 0 and 2^52.
func (t Tally) Add(o Tally) Tally {
	return Tally{
		amount.Add(t.Agents, o.Agents), amount.Add(t.Turns, o.Turns), t.Usage.Add(o.Usage), amount.Add(t.Cost, o.Cost),
		t.Estimated.Add(o.Estimated),
	}
}

// Charge is what some attempts at a model call have used, beside the one whose reply was
// taken.
type Charge struct {
	// Model is the fallback that was asked, and Cost what its tokens cost; empty for the
	// Spec's model, whose price the Spec has.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
	Cost  USD    `json:"cost_usd,omitempty"`
	// Estimated means that the provider did not say: the input is about what the request
	// has, and the output what had come. An estimate of no usage stands for a call of which
	// nothing is known.
	Estimated bool `json:"estimated,omitempty"`
}

// Budget is a quantity of each thing that limits count; a nil field is not bounded.
type Budget struct {
	Turns     *int      `json:"turns,omitempty"`
	Tokens    *int64    `json:"tokens,omitempty"`
	CostUSD   *USD      `json:"cost_usd,omitempty"`
	Agents    *int      `json:"agents,omitempty"`
	WallClock *Duration `json:"wall_clock,omitempty"`
}
