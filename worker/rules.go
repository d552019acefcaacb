package worker

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
)

// checkRules refuses a rule that names an unknown tool, or that asks about one of which nobody is
// asked. Such a rule would not match, and the tool would run without an approval. The tools
// of a source are known at run time only, so with a source every name is accepted.
func checkRules(d *activities.Activities, defs []agent.Definition) (faults []error) {
	for _, def := range defs {
		for i, r := range def.Rules {
			for _, name := range r.Tools {
				switch {
				case asksNobody(d, r, name):
					faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: rules[%d]: nobody is asked about %s, which the run carries out itself; deny it, or leave it out", def.Name, i, name).WithPath("rules"))
				case len(d.Sources) == 0 && !strings.ContainsAny(name, `*?[\`) && !someoneHas(d, defs, name):
					faults = append(faults, agent.Errorf(agent.CodeUnknownTool, "agent %s: rules[%d]: there is no tool %q; the worker has %s", def.Name, i, name, names(d.Tools)).WithPath("rules"))
				}
			}
		}
	}
	return faults
}

// asksNobody reports whether a rule asks about a tool of the run itself that it does not cover.
func asksNobody(d *activities.Activities, r agent.Rule, name string) bool {
	_, had := d.Tools[name]
	own := agent.ToolSpec{Name: name, Executor: agent.ExecutorRuntime}
	return r.Do == agent.RulingAsk && !had && slices.Contains(ownNames, name) && !agent.Rule{Do: r.Do, Tools: []string{name}}.Covers(own)
}

// checkAsk refuses invalid approvals, and names of unknown tools.
func checkAsk(d *activities.Activities) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(d.Approvals)) {
		_, had := d.Tools[name]
		switch _, err := path.Match(name, ""); {
		case err != nil:
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Approvals: %q is not a name or a pattern", name).WithPath("approvals"))
		case !had && len(d.Sources) == 0 && !strings.ContainsAny(name, `*?[\`):
			faults = append(faults, agent.Errorf(agent.CodeUnknownTool, "worker.Options.Approvals: there is no tool %q; the worker has %s", name, names(d.Tools)).WithPath("approvals"))
		}
		if err := d.Approvals[name].Check(); err != nil {
			faults = append(faults, fmt.Errorf("worker.Options.Approvals: %q: %w", name, err))
		}
	}
	return faults
}

// someoneHas reports whether any agent may have a tool of that name: an agent's rules
// also hold for its sub-agents.
func someoneHas(d *activities.Activities, defs []agent.Definition, name string) bool {
	if _, ok := d.Tools[name]; ok || slices.Contains(ownNames, name) || strings.HasPrefix(name, "subagent_") {
		return true
	}
	return slices.ContainsFunc(defs, func(def agent.Definition) bool {
		return slices.ContainsFunc(def.ClientTools, func(t agent.ToolSpec) bool { return t.Name == name })
	})
}
