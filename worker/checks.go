package worker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/tool"
)

// addChecks finds the tools and the judges of an agent's checks. Agents are found when all are known.
func addChecks(a *activities.Agent, d *activities.Activities) (faults []error) {
	spec := &a.Spec
	if len(spec.Verify.Checks) == 0 {
		return nil
	}
	if spec.Flow {
		return []error{agent.Errorf(agent.CodeInvalidInput, "agent %s: verify is for agents with a model; a flow's function checks its own result", spec.Name).WithPath("verify")}
	}
	spec.Verify.Checks = slices.Clone(spec.Verify.Checks)
	for i := range spec.Verify.Checks {
		k := &spec.Verify.Checks[i]
		where := fmt.Sprintf("agent %s: verify.checks[%d]", spec.Name, i)
		var err error
		switch k.Kind() {
		case agent.CheckByTool, agent.CheckByCommand:
			err = addCheckTool(k, d)
		case agent.CheckByJudge:
			err = addJudge(a, d, k.Judge.Model)
		}
		if err != nil {
			faults = append(faults, durable.Within(where, err).WithPath("verify"))
		}
	}
	return faults
}

// addCheckTool finds the tool of a check, and how long it may take.
func addCheckTool(k *agent.Check, d *activities.Activities) error {
	name := k.ToolName()
	t, ok := d.Tools[name]
	if !ok {
		// Only the source knows its tools. It is asked when the check is made, as are the pins.
		if source, _, is := strings.Cut(name, tool.Separator); is && d.Sources[source] != nil {
			return nil
		}
		return agent.Errorf(agent.CodeUnknownTool, "tool %q is not known; the worker has %s", name, names(d.Tools))
	}
	spec := d.ToolSpec(t.Spec())
	if err := k.MayCall(spec); err != nil {
		return err
	}
	switch {
	case spec.Temporal != nil:
		return agent.Errorf(agent.CodeInvalidInput, "tool %s calls what is in the namespace, and a check calls a function; call it from a tool of your own", name)
	case k.Timeout == 0:
		k.Timeout = spec.Timeout
	}
	return nil
}

// addJudge finds the model of a judge, and its price.
func addJudge(a *activities.Agent, d *activities.Activities, name string) error {
	if name == "" {
		name = a.Spec.Model
	}
	m, err := d.Model(name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(a.Spec.Judges, func(j agent.ModelPrice) bool { return j.Model == name }) {
		return nil
	}
	price := m.Info(m.Name).Price
	a.Spec.Judges = append(a.Spec.Judges, agent.ModelPrice{Model: name, Price: price})
	if price == (agent.Price{}) && name != a.Spec.Model && !slices.Contains(a.Spec.Unpriced, name) {
		a.Spec.Unpriced = append(a.Spec.Unpriced, name)
		if a.Spec.Limits.CostUSD > 0 {
			return agent.Errorf(agent.CodeInvalidInput, "limits.cost_usd can't be held, since the price of %s is not known; give the model a price", name)
		}
	}
	return nil
}

// checkVerifiers checks that the agents exist that check answers, and that they may use their tools.
func checkVerifiers(d *activities.Activities, a activities.Agent) (faults []error) {
	for i, k := range a.Spec.Verify.Checks {
		if k.Agent == "" {
			continue
		}
		below, ok := d.Agents[k.Agent]
		if !ok {
			faults = append(faults, agent.Errorf(agent.CodeUnknownAgent, "agent %s: verify.checks[%d]: there is no agent %q; the worker has %s", a.Spec.Name, i, k.Agent, names(d.Agents)).WithPath("verify"))
			continue
		}
		if lacks := beyond(a, below, agent.SubAgent{Agent: k.Agent, Tools: k.Tools}); len(lacks) > 0 {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: verify.checks[%d]: %s has tools that %s has not (%s); say in its tools which of them it may use, \"*\" for all", a.Spec.Name, i, k.Agent, a.Spec.Name, strings.Join(lacks, ", ")).WithPath("verify"))
		}
	}
	return faults
}
