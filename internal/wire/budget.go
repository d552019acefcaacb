package wire

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Resource is something that limits count, such as turns or tokens.
type Resource int

// The resources. A run shares the first four with the runs below it: what one of them uses, the
// others can't use. Time is not shared: it passes for all runs alike.
const (
	ResourceTurns  Resource = iota // model calls
	ResourceTokens                 // input and output
	ResourceCost                   // micro-dollars
	ResourceAgents                 // started runs; a run counts itself, too
	ResourceTime                   // working time, in nanoseconds
	Resources
)

var resourceNames = [Resources]string{"turns", "tokens", "cost_usd", "agents", "wall_clock"}

// String returns the name of the resource's field in [agent.Limits].
func (r Resource) String() string { return resourceNames[r] }

// Shared reports whether one run's use leaves less for the others.
func (r Resource) Shared() bool { return r != ResourceTime }

// Code returns the code of a run that fails because the resource is used up. It is empty for
// [ResourceAgents]: a run that may start no more agents continues.
func (r Resource) Code() agent.Code {
	return [Resources]agent.Code{agent.CodeLimitTurns, agent.CodeLimitTokens, agent.CodeLimitCost, "", agent.CodeLimitTime}[r]
}

// Unlimited is the value in [Amounts] of a resource without a limit.
const Unlimited = -1

// Amounts has one number for each resource. Messages between runs carry sums over a run's whole
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

// UnmarshalJSON reads an object that MarshalJSON wrote. A missing resource is zero, and an unknown
// one is ignored.
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

// LimitAmounts returns how much of each resource the limits allow, and [Unlimited] if a limit is
// not set. Unlike [agent.Limits], its number of agents includes the run itself.
func LimitAmounts(l agent.Limits) Amounts {
	a := Amounts{int64(l.Turns), l.Tokens, int64(l.CostUSD), int64(l.Agents), int64(l.WallClock)}
	for r := range a {
		if a[r] == 0 { // in agent.Limits zero means no limit; in Amounts it means nothing
			a[r] = Unlimited
		}
	}
	if l.Agents > 0 {
		a[ResourceAgents]++ // limits.agents counts only sub-agents
	}
	return a
}

// UsedAmounts returns what a tally counts of the shared resources. Time is zero.
func UsedAmounts(t agent.Tally) Amounts {
	return Amounts{int64(t.Turns), t.Usage.Total(), int64(t.Cost), int64(t.Agents)}
}

// BudgetReport tells a parent what a child uses and needs (docs/wire.md §10).
type BudgetReport struct {
	// Used is what the run and all runs below it have used.
	Used agent.Tally `json:"used"`
	// Granted is what was granted to the run, as far as it knows, and Returned what it has given
	// back of that. Both are sums over its life. A Granted below the parent's number tells the
	// parent that a grant has not arrived yet.
	Granted  Amounts `json:"granted,omitzero"`
	Returned Amounts `json:"returned,omitzero"`
	// Requested is how much more the run needs soon; zero if it has enough.
	Requested Amounts `json:"requested,omitzero"`
	// Blocked is 1 if the run, or a run below it, is suspended until it gets more.
	Blocked Amounts `json:"blocked,omitzero"`
}

// GrantOrder tells a child what it may use (docs/wire.md §10).
type GrantOrder struct {
	Run  string `json:"run,omitempty"`  // the receiver's
	From string `json:"from,omitempty"` // the sender's run
	// Granted is the sum of all grants so far; [Unlimited] if no ancestor has a limit.
	Granted Amounts `json:"granted"`
	// Recall asks the child to return what it has not used.
	Recall bool `json:"recall,omitempty"`
	// Denied means that no more agents can be granted.
	Denied bool `json:"denied,omitempty"`
}

// BudgetOf returns amounts as people read them; nil if no resource is limited.
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
