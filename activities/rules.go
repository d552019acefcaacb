package activities

import (
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// matchRules finds, for each call of a reply, the Spec's rules that match it but
// for how often the tool was called, which only the run knows. The result is
// recorded with the reply, so that no later build judges it otherwise.
func matchRules(spec *agent.Spec, parts []agent.Part) (all [][]int, err error) {
	if len(spec.Rules) == 0 {
		return nil, nil
	}
	for _, c := range (agent.Message{Parts: parts}).ToolCalls() {
		matches := []int{}
		for i := range spec.Rules {
			ok, err := matchesRule(spec, spec.Rules[i], c.Tool, c.Arguments)
			if err != nil {
				return nil, err
			}
			if ok {
				matches = append(matches, i)
			}
		}
		all = append(all, matches)
	}
	return all, nil
}

func matchesRule(spec *agent.Spec, rule agent.Rule, name string, arguments json.RawMessage) (bool, error) {
	tool, known := spec.Tool(name)
	if !known || !rule.Covers(tool) {
		return false, nil
	}
	if len(rule.Arguments) == 0 || len(arguments) == 0 {
		return len(rule.Arguments) == 0, nil
	}
	ok, err := signals.Matches(rule.Arguments, arguments)
	if err != nil {
		return false, agent.Errorf(agent.InvalidInput, "rules: the schema of a rule for %s can't be used: %w", name, err)
	}
	return ok, nil
}

// deniedBy finds a rule that denies arguments which a person put in the place of
// the model's: an approval does not stand above a denial.
func deniedBy(spec *agent.Spec, name string, arguments json.RawMessage) error {
	for i, rule := range spec.Rules {
		if rule.Do != agent.Deny || rule.Over > 0 {
			continue
		}
		ok, err := matchesRule(spec, rule, name, arguments)
		if err != nil {
			return err
		}
		if ok {
			return agent.Errorf(agent.Denied, "Permission denied by rule %d. %s", i, rule.Reason)
		}
	}
	return nil
}
