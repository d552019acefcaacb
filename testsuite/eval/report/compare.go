package report

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/stats"
)

// Alpha is the p value below which a difference is not taken for chance.
const Alpha = 0.05

// seed is that of sampled permutations: the same reports always compare the same.
const seed = 1

// Comparison is two evaluations side by side.
type Comparison struct {
	V      int       `json:"v"`
	Type   string    `json:"type"` // always "comparison"
	Before eval.Info `json:"before"`
	After  eval.Info `json:"after"`
	// Pairs counts the cases that both have, with decided trials on both sides.
	Pairs int `json:"pairs"`
	// Change is the mean change of their pass rates, and P how likely chance alone makes one
	// as large. Method is the paired test that says so.
	Change float64      `json:"change"`
	P      float64      `json:"p"`
	Method stats.Method `json:"method"`
	// Verdict is better, worse or chance.
	Verdict Verdict `json:"verdict"`
	// CasesMethod is the test of the single cases.
	CasesMethod stats.Method `json:"cases_method"`
	Cases       []Difference `json:"cases"`
	// CostBefore and CostAfter are the mean costs of a decided trial.
	CostBefore agent.USD `json:"mean_cost_usd_before"`
	CostAfter  agent.USD `json:"mean_cost_usd_after"`
	// Tried says what the two sides ran with.
	Tried Tried `json:"tried,omitzero"`
}

// Tried are the models and the workers' builds of both sides, sorted.
type Tried struct {
	ModelsBefore []string `json:"models_before,omitempty"`
	ModelsAfter  []string `json:"models_after,omitempty"`
	BuildsBefore []string `json:"builds_before,omitempty"`
	BuildsAfter  []string `json:"builds_after,omitempty"`
}

// Verdict says which way a difference goes, and that chance is no likely reason.
type Verdict string

// The verdicts.
const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Chance Verdict = "chance"
	// Unpaired is that of a case which only one side has.
	Unpaired Verdict = "unpaired"
)

// Difference is a case on both sides.
type Difference struct {
	Name string `json:"name"`
	// Before and After are nil if that side lacks the case, or has no decided trial of it.
	Before *Side `json:"before,omitempty"`
	After  *Side `json:"after,omitempty"`
	// Change is the change of the pass rate. P is adjusted for the number of cases (Holm).
	Change  float64 `json:"change"`
	P       float64 `json:"p"`
	Verdict Verdict `json:"verdict"`
	// Why is why a trial failed after.
	Why string `json:"why,omitempty"`
}

// Side is one side of a case.
type Side struct {
	Passed int            `json:"passed"`
	Trials int            `json:"trials"`
	Rate   stats.Estimate `json:"pass_rate"`
}

// Compare sets two reports side by side. Cases are paired by name. If both sides tried each
// case once, McNemar's exact test says whether the whole differs by chance. Otherwise the
// permutation test of the differences of the cases' rates says it. A single case has two
// independent samples, so Fisher's exact test says it there.
func Compare(before, after *Report) *Comparison {
	c := &Comparison{V: agent.Version, Type: "comparison", Before: before.Info, After: after.Info, CasesMethod: stats.MethodFisher, CostBefore: mean(before), CostAfter: mean(after)}
	c.Tried = Tried{before.Models, after.Models, before.Builds, after.Builds}
	for _, b := range before.Cases {
		d := Difference{Name: b.Name, Before: side(b), Verdict: Unpaired, P: 1}
		if i := slices.IndexFunc(after.Cases, func(a Case) bool { return a.Name == b.Name }); i >= 0 {
			d.After, d.Why = side(after.Cases[i]), after.Cases[i].Why
		}
		c.Cases = append(c.Cases, d)
	}
	for _, a := range after.Cases {
		if !slices.ContainsFunc(before.Cases, func(b Case) bool { return a.Name == b.Name }) {
			c.Cases = append(c.Cases, Difference{Name: a.Name, After: side(a), Verdict: Unpaired, P: 1, Why: a.Why})
		}
	}
	c.test()
	return c
}

// Worse reports whether the whole or a single case became worse, and not by chance. A few
// cases can't show that as a whole, whatever happened to one of them.
func (c *Comparison) Worse() bool {
	return c.Verdict == Worse || slices.ContainsFunc(c.Cases, func(d Difference) bool { return d.Verdict == Worse })
}

func side(c Case) *Side {
	if c.Decided() == 0 {
		return nil
	}
	return &Side{c.Passed, c.Decided(), c.Rate}
}

// mean returns the mean cost of a report's decided trials.
func mean(r *Report) (cost agent.USD) {
	n := r.Decided()
	if n == 0 {
		return 0
	}
	for _, c := range r.Cases {
		cost += c.Cost * agent.USD(c.Decided())
	}
	return cost / agent.USD(n)
}

// test fills in what is chance.
func (c *Comparison) test() {
	var diffs, ps []float64
	var at []int
	lost, won, single := 0, 0, true
	for i := range c.Cases {
		d := &c.Cases[i]
		if d.Before == nil || d.After == nil {
			continue
		}
		d.Change = d.After.Rate.Rate - d.Before.Rate.Rate
		diffs, at = append(diffs, d.Change), append(at, i)
		ps = append(ps, stats.Fisher(d.Before.Passed, d.Before.Trials, d.After.Passed, d.After.Trials))
		single = single && d.Before.Trials == 1 && d.After.Trials == 1
		switch {
		case d.Change < 0:
			lost++
		case d.Change > 0:
			won++
		}
		c.Change += d.Change
	}
	if c.Pairs = len(diffs); c.Pairs > 0 {
		c.Change /= float64(c.Pairs)
	}
	for i, p := range stats.Holm(ps) {
		d := &c.Cases[at[i]]
		d.P, d.Verdict = p, verdict(d.Change, p)
	}
	if single {
		c.P, c.Method = stats.McNemar(lost, won), stats.MethodMcNemar
	} else {
		c.P, c.Method = stats.SignFlip(diffs, seed)
	}
	c.Verdict = verdict(c.Change, c.P)
}

func verdict(change, p float64) Verdict {
	switch {
	case p >= Alpha || change == 0:
		return Chance
	case change > 0:
		return Better
	}
	return Worse
}
