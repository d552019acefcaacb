package agent

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/internal/glob"
)

// Policy says who may send which verbs to runs. A verb that no permit names is free for
// everybody. A verb that permits name is bound: only their principals may send it, and
// they prove who they are with a token. The zero value binds nothing.
type Policy []Permit

// Permit lets principals send verbs to some runs. Verbs and Principals are required.
type Permit struct {
	// Verbs are the verbs that the permit binds; "*" means all. Do not list answers: each
	// of its parts is bound by its own verb.
	Verbs []Verb `json:"verbs"`
	// Agents are names or patterns ("pay*") of the runs' agents; empty means every agent.
	Agents []string `json:"agents,omitempty"`
	// Labels are labels of the run or of an ancestor at its start. A run must have all of
	// them.
	Labels map[string]string `json:"labels,omitempty"`
	// Principals may send the verbs; "*" means everybody with a valid token. An empty
	// list that is not nil lets nobody.
	Principals []string `json:"principals"`
}

// EveryVerb stands for all verbs in a permit, and everybody for all principals.
const (
	EveryVerb = "*"
	everybody = "*"
)

// bindable are the verbs that a policy may name.
var bindable = []Verb{VerbPause, VerbInterrupt, VerbResume, VerbStop, VerbCancel, VerbSend, VerbAnswer, VerbApprove, VerbReject, VerbEmit}

// Check returns a [CodeInvalidInput] error that names the permit if the policy is
// invalid.
func (p Policy) Check() error {
	for i, one := range p {
		if err := one.check(); err != nil {
			return Errorf(CodeInvalidInput, "policy[%d]: %w", i, err).WithPath("policy")
		}
	}
	return nil
}

func (p Permit) check() error {
	if len(p.Verbs) == 0 {
		return Errorf(CodeInvalidInput, "verbs is missing: name some, or \"*\" for all")
	}
	if p.Principals == nil {
		return Errorf(CodeInvalidInput, "principals is missing: name who may say it, or write [] for nobody")
	}
	for _, v := range p.Verbs {
		switch {
		case v == VerbAnswers:
			return Errorf(CodeInvalidInput, "answers can't be bound, because it contains several verbs: bind answer, approve and reject")
		case v != EveryVerb && !slices.Contains(bindable, v):
			return Errorf(CodeInvalidInput, "%q is no verb; they are %s", v, strings.Join(names(bindable), ", "))
		}
	}
	for _, a := range p.Agents {
		if _, err := path.Match(a, ""); err != nil || a == "" {
			return Errorf(CodeInvalidInput, "agents: %q is not a name or a pattern", a)
		}
	}
	if slices.Contains(p.Principals, "") {
		return Errorf(CodeInvalidInput, "principals: one has no name")
	}
	return nil
}

func names(verbs []Verb) (list []string) {
	for _, v := range verbs {
		list = append(list, string(v))
	}
	return list
}

// For returns the permits that concern runs of an agent, whatever their labels.
func (p Policy) For(agent string) (own Policy) {
	for _, one := range p {
		if len(one.Agents) == 0 || glob.MatchesAny(one.Agents, agent) {
			own = append(own, one)
		}
	}
	return own
}

// Refuses returns a [CodeDenied] error if the principal may not send the verb to a run
// with these labels. It returns nil if the principal may, or if nothing binds the verb.
// An empty principal has no token. Call it on the policy of the run's agent (see
// [Policy.For]).
func (p Policy) Refuses(labels map[string]string, verb Verb, principal string) *Error {
	bound, named := false, []string{}
	for _, one := range p {
		if !one.binds(labels, verb) {
			continue
		}
		bound = true
		if principal != "" && (slices.Contains(one.Principals, principal) || slices.Contains(one.Principals, everybody)) {
			return nil
		}
		named = append(named, one.Principals...)
	}
	if !bound {
		return nil
	}
	who := "it takes a token of " + someOf(named) + "; make one with fermata token, and say the verb with fermata and --token-file, since a signal proves nothing"
	if len(named) == 0 {
		who = "nobody may say it, whatever token they have"
	}
	if principal != "" {
		who = principal + " may not say it; " + who
	}
	return Errorf(CodeDenied, "a policy binds %s to who may say it: %s", verb, who).WithPath("token")
}

func (p Permit) binds(labels map[string]string, verb Verb) bool {
	if !slices.Contains(p.Verbs, verb) && !slices.Contains(p.Verbs, EveryVerb) {
		return false
	}
	// Sorted, because a workflow calls this: a map's order would differ at replay.
	names := slices.Sorted(maps.Keys(p.Labels)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, name := range names {
		if has, ok := labels[name]; !ok || has != p.Labels[name] {
			return false
		}
	}
	return true
}

// someOf joins the first few names.
func someOf(named []string) string {
	const most = 4
	named = slices.Compact(slices.Sorted(slices.Values(named)))
	if len(named) > most {
		return strings.Join(named[:most], " or ") + " or others"
	}
	return strings.Join(named, " or ")
}
