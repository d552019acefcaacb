package wire

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Resource is one of the things that limits count.
type Resource int

// The resources. A run shares the first four with the runs below it: what one run uses, no other
// can use. Time passes for all runs alike.
const (
	ResourceTurns  Resource = iota // model calls
	ResourceTokens                 // input and output
	ResourceCost                   // micro-dollars
	ResourceAgents                 // runs that were started, each itself included
	ResourceTime                   // working time, in nanoseconds
	Resources
)

var resourceNames = [Resources]string{"turns", "tokens", "cost_usd", "agents", "wall_clock"}

// String returns the name of the resource's field in [agent.Limits].
func (r Resource) String() string { return resourceNames[r] }

// Shared reports whether runs use the resource up for each other.
func (r Resource) Shared() bool { return r != ResourceTime }

// Code returns the code of a run that fails because the resource is used up. It is empty for
// agents: a run that may start no more of them goes on.
func (r Resource) Code() agent.Code {
	return [Resources]agent.Code{agent.CodeLimitTurns, agent.CodeLimitTokens, agent.CodeLimitCost, "", agent.CodeLimitTime}[r]
}

// Unlimited stands in [Amounts] for a resource without a limit.
const Unlimited = -1

// Amounts has one number for each resource. Runs report sums over a run's whole life, so a
// message that comes twice or late changes nothing.
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

// LimitAmounts returns how much of each resource some limits allow. Agents count the run itself.
func LimitAmounts(l agent.Limits) Amounts {
	a := Amounts{int64(l.Turns), l.Tokens, int64(l.CostUSD), int64(l.Agents), int64(l.WallClock)}
	for r := range a {
		if a[r] == 0 {
			a[r] = Unlimited
		}
	}
	if l.Agents > 0 {
		a[ResourceAgents]++
	}
	return a
}

// UsedAmounts returns what a tally has of the resources that runs share.
func UsedAmounts(t agent.Tally) Amounts {
	return Amounts{int64(t.Turns), t.Usage.Total(), int64(t.Cost), int64(t.Agents)}
}

// BudgetReport is what a run reports to its parent of what it uses (docs/wire.md §10).
type BudgetReport struct {
	// Used is what the run and all below it have used.
	Used agent.Tally `json:"used"`
	// Granted is what the run knows to be granted, and Returned what it has given back of that.
	// Both are sums over its life.
	Granted  Amounts `json:"granted,omitzero"`
	Returned Amounts `json:"returned,omitzero"`
	// Requested is how much more the run would use soon; zero if it has enough.
	Requested Amounts `json:"requested,omitzero"`
	// Blocked is 1 where the run, or a run below it, is suspended until it gets what it wants.
	Blocked Amounts `json:"blocked,omitzero"`
}

// GrantOrder is what a run tells a child of what the child may use (docs/wire.md §10).
type GrantOrder struct {
	Run  string `json:"run,omitempty"`  // the receiver's
	From string `json:"from,omitempty"` // the sender's run
	// Granted is all that was ever granted; [Unlimited] where no ancestor has a limit.
	Granted Amounts `json:"granted"`
	// Recall asks for what was not used.
	Recall bool `json:"recall,omitempty"`
	// Denied means that no further agents can be granted.
	Denied bool `json:"denied,omitempty"`
}

// BudgetOf returns amounts as people read them; nil if nothing is bounded.
func BudgetOf(a Amounts) *agent.Budget {
	if a == (Amounts{Unlimited, Unlimited, Unlimited, Unlimited, Unlimited}) {
		return nil
	}
	return &agent.Budget{
		Turns: bounded[int](a[ResourceTurns]), Tokens: bounded[int64](a[ResourceTokens]), CostUSD: bounded[agent.USD](a[ResourceCost]),
		Agents: bounded[int](a[ResourceAgents]), WallClock: bounded[agent.Duration](a[ResourceTime]),
	}
}

func bounded[T ~int | ~int64](n int64) *T {
	if n == Unlimited {
		return nil
	}
	v := T(n)
	return &v
}
