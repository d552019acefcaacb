package agent

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/internal/amount"
)

// Resource is one of the things that the limits of a tree of runs count.
type Resource int

// The resources. A run shares the first four with the runs below it: what one uses, no
// other can. Time passes for all of them alike.
const (
	ResourceTurns  Resource = iota // model calls
	ResourceTokens                 // input and output
	ResourceCost                   // micro-dollars
	ResourceAgents                 // runs that were started, each itself included
	ResourceTime                   // working time, in nanoseconds
	Resources
)

var resourceNames = [Resources]string{"turns", "tokens", "cost_usd", "agents", "wall_clock"}

// String is the name of the resource's field in [Limits].
func (r Resource) String() string { return resourceNames[r] }

// Shared reports whether runs use the resource up for each other.
func (r Resource) Shared() bool { return r != ResourceTime }

// Code is the code of a run that fails because the resource is used up. It is empty for
// agents: a run that may start no more of them goes on without.
func (r Resource) Code() Code {
	return [Resources]Code{CodeLimitTurns, CodeLimitTokens, CodeLimitCost, "", CodeLimitTime}[r]
}

// Unlimited stands in [Amounts] for a resource that no limit bounds.
const Unlimited = -1

// Amounts has one number for each resource. Runs tell each other sums over a run's whole
// life, so a message that comes twice or late changes nothing.
type Amounts [Resources]int64

// MarshalJSON writes an object with the resources that are not zero.
func (a Amounts) MarshalJSON() ([]byte, error) {
	named := map[string]int64{}
	for r, n := range a {
		if n != 0 {
			named[resourceNames[r]] = n
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON reads such an object.
func (a *Amounts) UnmarshalJSON(b []byte) error {
	var named map[string]int64
	if err := json.Unmarshal(b, &named); err != nil {
		return err
	}
	*a = Amounts{}
	for r, name := range resourceNames {
		a[r] = named[name]
	}
	return nil
}

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

// Latest returns the later of two tallies of one run: none of its numbers ever falls.
func (t Tally) Latest(o Tally) Tally {
	u, v := t.Usage, o.Usage
	return Tally{
		max(t.Agents, o.Agents), max(t.Turns, o.Turns),
		Usage{max(u.Input, v.Input), max(u.Output, v.Output), max(u.CacheRead, v.CacheRead), max(u.CacheWrite, v.CacheWrite), max(u.Reasoning, v.Reasoning), max(u.Searches, v.Searches)},
		max(t.Cost, o.Cost),
		Estimate{max(t.Estimated.Tokens, o.Estimated.Tokens), max(t.Estimated.Cost, o.Estimated.Cost)},
	}
}

// Amounts is what the tally says of the resources that runs share.
func (t Tally) Amounts() Amounts {
	return Amounts{int64(t.Turns), t.Usage.Total(), int64(t.Cost), int64(t.Agents)}
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

// BudgetReport is what a run tells the one above it of what it uses (docs/wire.md §10).
type BudgetReport struct {
	// Used is what the run and all below it have used.
	Used Tally `json:"used"`
	// Granted is what the run has heard to be granted, and Returned what it has given
	// back of that; both are sums over its life.
	Granted  Amounts `json:"granted,omitzero"`
	Returned Amounts `json:"returned,omitzero"`
	// Requested is how much more it would use soon; zero if it has enough.
	Requested Amounts `json:"requested,omitzero"`
	// Blocked is 1 where the run, or one below it, rests until it gets what it wants.
	Blocked Amounts `json:"blocked,omitzero"`
}

// GrantOrder is what a run tells one below it of what that may use (docs/wire.md §10).
type GrantOrder struct {
	Run  string `json:"run,omitempty"`  // the receiver's
	From string `json:"from,omitempty"` // the sender's run
	// Granted is all that was ever granted; [Unlimited] where no limit above counts.
	Granted Amounts `json:"granted"`
	// Recall asks for what was not used.
	Recall bool `json:"recall,omitempty"`
	// Denied means that no further agents can be granted.
	Denied bool `json:"denied,omitempty"`
}

// Budget is a quantity of each thing that limits count; a nil field is not bounded.
type Budget struct {
	Turns     *int      `json:"turns,omitempty"`
	Tokens    *int64    `json:"tokens,omitempty"`
	CostUSD   *USD      `json:"cost_usd,omitempty"`
	Agents    *int      `json:"agents,omitempty"`
	WallClock *Duration `json:"wall_clock,omitempty"`
}

// BudgetOf makes amounts readable; nil if nothing is bounded.
func BudgetOf(a Amounts) *Budget {
	if a == (Amounts{Unlimited, Unlimited, Unlimited, Unlimited, Unlimited}) {
		return nil
	}
	return &Budget{
		Turns: bounded[int](a[ResourceTurns]), Tokens: bounded[int64](a[ResourceTokens]), CostUSD: bounded[USD](a[ResourceCost]),
		Agents: bounded[int](a[ResourceAgents]), WallClock: bounded[Duration](a[ResourceTime]),
	}
}

func bounded[T ~int | ~int64](n int64) *T {
	if n == Unlimited {
		return nil
	}
	v := T(n)
	return &v
}
