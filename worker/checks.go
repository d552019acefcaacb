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
	if len(spec.Checks()) == 0 {
		return nil
	}
	if spec.Flow && len(spec.Verify.Checks) > 0 {
		return []error{agent.Errorf(agent.CodeInvalidInput, "agent %s: verify is for agents with a model; a flow's function checks its own result", spec.Name).WithPath("verify")}
	}
	if spec.Flow && len(spec.Hooks.BeforeRun.Checks) > 0 {
		return []error{agent.Errorf(agent.CodeInvalidInput, "agent %s: hooks.before_run is for agents with a model; a flow's function checks its own input", spec.Name).WithPath("hooks.before_run")}
	}
	spec.EditChecks(func(p agent.CheckPoint, i int, k *agent.Check) {
		where := fmt.Sprintf("agent %s: %s", spec.Name, p.Path(i))
		var err error
		switch k.Kind() {
		case agent.CheckByTool, agent.CheckByCommand:
			err = addCheckTool(p, k, d)
		case agent.CheckByJudge:
			err = d.AddJudge(spec, k.Judge.Model)
		}
		if err != nil {
			faults = append(faults, durable.Within(where, err).WithPath(string(p)))
		}
	})
	return faults
}

// checkCircles refuses agents whose checks ask one another in a circle.
func checkCircles(list []agent.Definition) (faults []error) {
	for _, def := range list {
		if err := agent.CheckCircle(list, def.Name); err != nil {
			faults = append(faults, fmt.Errorf("agent %s: %w", def.Name, err))
		}
	}
	return faults
}

// checkCompactor checks the tool of a custom compaction: the runtime itself calls it, with what models
// and tools have said.
func checkCompactor(spec agent.Spec, d *activities.Activities) error {
	name := spec.Compaction.Tool
	if name == "" {
		return nil
	}
	t, ok := d.Tools[name]
	if !ok {
		return agent.Errorf(agent.CodeUnknownTool, "agent %s: compaction.tool: tool %q is not known; the worker has %s", spec.Name, name, names(d.Tools)).WithPath("compaction.tool")
	}
	if s := d.ToolSpec(t.Spec()); s.Approval != nil || !s.ReadOnly || s.Temporal != nil {
		return agent.Errorf(agent.CodeInvalidInput, "agent %s: compaction.tool: %s must be a read-only function that needs no approval: nobody is asked, and it gets what a model wrote", spec.Name, name).WithPath("compaction.tool")
	}
	return nil
}

// addCheckTool finds the tool of a check, and how long it may take.
func addCheckTool(p agent.CheckPoint, k *agent.Check, d *activities.Activities) error {
	name := k.ToolName()
	t, ok := d.Tools[name]
	if !ok {
		// Only the source knows its tools. It is asked when the check is made, as are the pins.
		if source, _, is := strings.Cut(name, tool.Separator); is && d.Sources[source] != nil {
			return nil
		}
		if slices.Contains(ownNames, name) {
			return agent.Errorf(agent.CodeInvalidInput, "%s belongs to the runtime: a model or a flow calls it, and nothing else; name a tool of the worker", name)
		}
		return agent.Errorf(agent.CodeUnknownTool, "tool %q is not known; the worker has %s", name, names(d.Tools))
	}
	spec := d.ToolSpec(t.Spec())
	if err := k.MayCall(p, spec); err != nil {
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

// checkVerifiers checks that the agents exist that check answers, and that they may use their tools.
func checkVerifiers(d *activities.Activities, a activities.Agent) (faults []error) {
	for _, p := range agent.CheckPoints() {
		for i, k := range a.Spec.ChecksAt(p) {
			if err := checkVerifier(d, a, p.Path(i), k); err != nil {
				faults = append(faults, err.WithPath(string(p)))
			}
		}
	}
	return faults
}

func checkVerifier(d *activities.Activities, a activities.Agent, path string, k agent.Check) *agent.Error {
	if k.Agent == "" {
		return nil
	}
	below, ok := d.Agents[k.Agent]
	if !ok {
		return agent.Errorf(agent.CodeUnknownAgent, "agent %s: %s: there is no agent %q; the worker has %s", a.Spec.Name, path, k.Agent, names(d.Agents))
	}
	if below.Spec.Stateless {
		return runBelow("agent "+a.Spec.Name+": "+path, k.Agent)
	}
	if lacks := beyond(a, below, agent.SubAgent{Agent: k.Agent, Tools: k.Tools}); len(lacks) > 0 {
		return agent.Errorf(agent.CodeInvalidInput, "agent %s: %s: %s has tools that %s has not (%s); say in its tools which of them it may use, \"*\" for all", a.Spec.Name, path, k.Agent, a.Spec.Name, strings.Join(lacks, ", "))
	}
	return nil
}
