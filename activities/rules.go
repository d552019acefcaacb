package activities

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/signals"
)

// matchRules returns, for each call of a reply, the rules of the Spec that match it. It
// ignores AfterCalls: only the run knows how often a tool was called. The result is
// recorded with the reply, so no later build decides differently.
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
	if err != nil || hasMisspelledName(rule.Arguments, arguments) || !hasReadableSchema(tool) { // what cannot be judged is not allowed
		return rule.Do != agent.RulingAllow, nil
	}
	return ok, nil
}

// hasMisspelledName reports whether arguments have a name that differs from one of the
// schema's names only in case and signs. A tool may take it for that name, and the rule
// would not see it.
func hasMisspelledName(schema, arguments json.RawMessage) bool {
	about := map[string]bool{}
	_ = each(schema, func(key string, value any) { // the schema was read before
		switch v := value.(type) {
		case map[string]any:
			for name := range v {
				about[name] = about[name] || key == "properties"
			}
		case []any:
			for _, name := range v {
				if name, ok := name.(string); ok && key == "required" {
					about[name] = true
				}
			}
		}
	})
	found := false
	err := each(arguments, func(name string, _ any) {
		for other, is := range about {
			found = found || is && name != other && alike(name, other) && !about[name]
		}
	})
	return found || err != nil
}

// each calls visit with every name and value of all objects in a JSON text.
func each(raw json.RawMessage, visit func(name string, value any)) error {
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for name, one := range v {
				visit(name, one)
				walk(one)
			}
		}
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return err
	}
	walk(value)
	return nil
}

// deniesEdited returns an error if a rule forbids the arguments that an approver has
// edited. An approval does not overrule a denial, nor a rule that needs another approver.
func deniesEdited(spec *agent.Spec, in ToolInput) error {
	if t, known := spec.Tool(in.Tool); known {
		if wrong := fault(t, in.Arguments); wrong != "" {
			return agent.Errorf(agent.CodeDenied, "%s", wrong)
		}
	}
	t, _ := spec.Tool(in.Tool)
	if t.Approval != nil && wantsOtherApprover(t.Approval.Rule(), in) {
		return agent.Errorf(agent.CodeDenied, "Permission denied: the tool needs the approval of %s for the edited arguments.", strings.Join(t.Approval.Approvers, " or "))
	}
	spoken := false
	for i, rule := range spec.Rules {
		ok, err := matchesRule(spec, rule, in.Tool, in.Arguments)
		ok = ok && rule.AfterCalls == 0 && !(rule.Otherwise && spoken)
		switch {
		case err != nil:
			return err
		case ok && wantsOtherApprover(rule, in):
			return agent.Errorf(agent.CodeDenied, "Permission denied by rule %d: the edited arguments want the approval of %s.", i, strings.Join(rule.Approvers, " or "))
		case ok && rule.Do == agent.RulingDeny:
			return agent.Errorf(agent.CodeDenied, "Permission denied by rule %d. %s", i, rule.Reason)
		}
		// An otherwise rule is the last of its agent. It counts only if no other rule of
		// that agent matched.
		spoken = !rule.Otherwise && (spoken || ok)
	}
	return nil
}

// wantsOtherApprover reports whether a rule needs another approver than the one who
// approved.
func wantsOtherApprover(rule agent.Rule, in ToolInput) bool {
	return rule.Do == agent.RulingAsk && len(rule.Approvers) > 0 && !slices.Contains(rule.Approvers, in.Approver)
}

// parkings decodes the calls of await_resumption. Invalid calls have an entry too, with
// the error: entries and calls correspond by order.
func parkings(parts []agent.Part) (all []wire.ParkRequest) {
	for _, c := range (agent.Message{Parts: parts}).ToolCalls() {
		if c.Tool != agent.AwaitResumptionTool {
			continue
		}
		reason, conditions, err := signals.DecodeParkRequest(c.Arguments)
		all = append(all, wire.ParkRequest{Reason: reason, Conditions: conditions, Err: err})
	}
	return all
}

// ToolSpec returns t with the worker's approval, or with the tool's own if that is as
// strict or stricter.
func (d *Activities) ToolSpec(t agent.ToolSpec) agent.ToolSpec {
	// Sorted, so that every worker picks the same one of several that are equally strict.
	for _, name := range slices.Sorted(maps.Keys(d.Approvals)) {
		ask := d.Approvals[name]
		if glob.MatchesAny([]string{name}, t.Name) && (t.Approval == nil || ask.Rule().Strictness() > t.Approval.Rule().Strictness()) {
			t.Approval = &ask
		}
	}
	return t
}
