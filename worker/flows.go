package worker

import (
	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// addFlows adds the flows, which are agents with a function in the model's place.
func (o *Options) addFlows(d *activities.Activities) (faults []error) {
	for _, f := range o.Flows {
		if err := f.Err(); err != nil {
			faults = append(faults, err)
			continue
		}
		def := f.Definition()
		if _, twice := d.Agents[def.Name]; twice {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %q is there twice", def.Name).WithPath("flows"))
			continue
		}
		d.Flows[def.Name], d.FlowInputs[def.Name] = f.Function(), f.CheckInput
		faults = append(faults, addAgent(d, def, "", o.Policy)...)
	}
	return faults
}

// modelOf returns what the worker knows of an agent's model. A flow has none.
func modelOf(d *activities.Activities, def agent.Definition, isFlow bool) (model.Info, error) {
	if isFlow {
		return model.Info{}, nil
	}
	m, err := d.Model(def.Model)
	if err != nil {
		return model.Info{}, err
	}
	return m.Info(m.Name), nil
}
