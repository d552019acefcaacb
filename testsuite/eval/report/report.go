package report

import (
	"math"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/stats"
)

// Report is what came of an evaluation.
type Report struct {
	V    int    `json:"v"`
	Type string `json:"type"` // always "evaluation"
	eval.Info
	// State is passed if every case passed. Otherwise it is failed, error or left_out: the
	// first of them that a case has. It is running until the evaluation ends.
	State State `json:"state"`
	// Stopped says why the evaluation stopped early; empty if it did not.
	Stopped  eval.Stop `json:"stopped,omitempty"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	Cases    []Case    `json:"cases"`
	Tally
	// K are the suite's pass@k and pass^k: the means of the cases.
	K []AtK `json:"pass_k,omitempty"`
	// Cost is what everything has cost, and RunCost the part of the runs.
	Cost    agent.USD `json:"cost_usd"`
	RunCost agent.USD `json:"run_cost_usd"`
	// Models are the models of the runs, sorted.
	Models []string `json:"models,omitempty"`
	// Builds are the builds of the workers that ran them, sorted.
	Builds []string `json:"builds,omitempty"`

	trials []eval.Trial
}

// State is what became of a case or an evaluation.
type State string

// The states.
const (
	StatePassed  State = "passed"
	StateFailed  State = "failed"
	StateError   State = "error"
	StateLeftOut State = "left_out"
	StateRunning State = "running"
)

// Tally counts trials.
type Tally struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	LeftOut int `json:"left_out"`
	Errors  int `json:"errors"`
	// Open have not ended.
	Open int `json:"open"`
}

func (t *Tally) add(s eval.State) {
	switch s {
	case eval.StatePassed:
		t.Passed++
	case eval.StateFailed:
		t.Failed++
	case eval.StateLeftOut:
		t.LeftOut++
	case eval.StateError:
		t.Errors++
	}
}

// Decided counts the trials that passed or failed.
func (t *Tally) Decided() int { return t.Passed + t.Failed }

// Case is what came of a case.
type Case struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Planned is how many trials the case has.
	Planned int `json:"planned"`
	Tally
	// Rate is the part of the decided trials that passed, with the interval of Wilson.
	Rate        stats.Estimate `json:"pass_rate"`
	MinPassRate float64        `json:"min_pass_rate"`
	K           []AtK          `json:"pass_k,omitempty"`
	// Why is the reason of the first trial that did not pass.
	Why string `json:"why,omitempty"`
	// Cost, Turns and Duration are means of the decided trials.
	Cost     agent.USD      `json:"mean_cost_usd"`
	Turns    float64        `json:"mean_turns"`
	Duration agent.Duration `json:"mean_duration,omitempty"`
}

// AtK is pass@k and pass^k.
type AtK struct {
	K int `json:"k"`
	// At is how likely at least one of K trials passes, and Hat how likely all do.
	At  stats.Estimate `json:"pass_at"`
	Hat stats.Estimate `json:"pass_hat"`
}

// Of returns the report of an evaluation.
func Of(e *eval.Evaluation) *Report {
	r := &Report{V: agent.Version, Type: "evaluation", Info: e.Info, Stopped: e.Progress.Stopped, Started: e.Started, Finished: e.Finished, trials: e.Trials}
	byCase := map[string][]eval.Trial{}
	for _, t := range e.Trials {
		byCase[t.Case] = append(byCase[t.Case], t)
		r.add(t.State)
		r.Cost, r.RunCost = r.Cost+t.Cost, r.RunCost+t.RunCost
		r.Models, r.Builds = with(r.Models, t.Model), with(r.Builds, t.Build)
	}
	for i := range e.Definition.Cases {
		c := e.Definition.Complete(i)
		r.Cases = append(r.Cases, caseOf(c, byCase[c.Name], kOf(e.Definition, c)))
	}
	r.Open = e.Definition.Total() - len(e.Trials)
	r.State = r.state(e.Progress.Ended)
	r.K = means(r.Cases)
	return r
}

// with adds a name to a sorted list, unless it is empty or there.
func with(list []string, name string) []string {
	if at, found := slices.BinarySearch(list, name); !found && name != "" {
		return slices.Insert(list, at, name)
	}
	return list
}

func (r *Report) state(ended bool) State {
	if !ended {
		return StateRunning
	}
	for _, s := range []State{StateFailed, StateError, StateLeftOut} {
		if slices.ContainsFunc(r.Cases, func(c Case) bool { return c.State == s }) {
			return s
		}
	}
	// Each case was decided early, and still the suite did not run as it was written.
	if r.LeftOut > 0 {
		return StateLeftOut
	}
	return StatePassed
}

// kOf returns the numbers of trials for pass@k of a case: one, and all of its trials.
func kOf(s *eval.Suite, c eval.Case) []int {
	if len(s.K) > 0 {
		return s.K
	}
	if c.Trials == 1 {
		return []int{1}
	}
	return []int{1, c.Trials}
}

func caseOf(c eval.Case, trials []eval.Trial, ks []int) Case {
	r := Case{Name: c.Name, Planned: c.Trials, MinPassRate: *c.MinPassRate}
	for _, t := range trials {
		r.add(t.State)
		if r.Why == "" && t.State != eval.StatePassed {
			r.Why = t.Why
		}
		if t.State == eval.StatePassed || t.State == eval.StateFailed {
			r.Cost, r.Turns, r.Duration = r.Cost+t.Cost, r.Turns+float64(t.Turns), r.Duration+t.Duration
		}
	}
	r.Open = c.Trials - len(trials)
	n := r.Decided()
	r.Rate.Interval = stats.Wilson(r.Passed, n)
	if n > 0 {
		r.Rate.Rate = float64(r.Passed) / float64(n)
		r.Cost, r.Turns, r.Duration = r.Cost/agent.USD(n), r.Turns/float64(n), r.Duration/agent.Duration(n)
	}
	for _, k := range ks {
		// With fewer trials there is no unbiased estimate.
		if k <= n {
			r.K = append(r.K, AtK{k, stats.Estimate{Rate: stats.PassAtK(n, r.Passed, k), Interval: r.Rate.AtK(k)}, stats.Estimate{Rate: stats.PassHatK(n, r.Passed, k), Interval: r.Rate.HatK(k)}})
		}
	}
	r.State = r.decide()
	return r
}

// decide says whether the case passes. Trials that are open, left out or in error count
// only as far as they could change that.
func (r *Case) decide() State {
	need := int(math.Ceil(r.MinPassRate*float64(r.Planned) - 1e-9))
	switch {
	case r.Passed+r.Open+r.LeftOut+r.Errors < need:
		return StateFailed
	case r.Passed >= need && r.Decided() > 0:
		return StatePassed
	case r.Errors > 0:
		return StateError
	case r.LeftOut > 0:
		return StateLeftOut
	}
	return StateRunning
}

// means returns the means of the cases, for each k that all cases have.
func means(cases []Case) (list []AtK) {
	ks := map[int]bool{}
	for _, c := range cases {
		for _, k := range c.K {
			ks[k.K] = true
		}
	}
	var order []int
	for k := range ks {
		order = append(order, k)
	}
	slices.Sort(order)
	for _, k := range order {
		var at, hat []stats.Estimate
		for _, c := range cases {
			if i := slices.IndexFunc(c.K, func(a AtK) bool { return a.K == k }); i >= 0 {
				at, hat = append(at, c.K[i].At), append(hat, c.K[i].Hat)
			}
		}
		if len(at) == len(cases) {
			list = append(list, AtK{k, stats.Mean(at), stats.Mean(hat)})
		}
	}
	return list
}

// Trials returns the trials in the order of the suite.
func (r *Report) Trials() []eval.Trial { return r.trials }
