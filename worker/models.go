package worker

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/roles"
)

// models are the worker's models, each with its middleware.
type models map[string]model.Model

// wrapped puts the middleware around the models.
func (o *Options) wrapped(seen *observers.Set) (models, []error) {
	if i := slices.IndexFunc(o.Middleware, func(w model.Middleware) bool { return w == nil }); i >= 0 {
		return o.Models, []error{agent.Errorf(agent.CodeInvalidInput, "worker.Options.Middleware[%d] is nil", i).WithPath("middleware")}
	}
	// Innermost, so that a user's retries and caches see the breaker's fault too. Only
	// the observers are within it: they see each call that is really made.
	with := append(slices.Clip(o.Middleware), activities.Breaker, seen.Model)
	ms, faults := models{}, []error(nil)
	for _, name := range slices.Sorted(maps.Keys(o.Models)) {
		if o.Models[name] == nil {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Models[%q] is nil", name).WithPath("models"))
			continue
		}
		ms[name] = model.Wrap(o.Models[name], with...)
	}
	return ms, faults
}

// find returns the model of a full name: by that name, or by its provider's.
func (ms models) find(full string) (activities.Model, error) {
	if m, ok := ms[full]; ok {
		return activities.Model{Model: m, Name: full, Full: full}, nil
	}
	provider, name, _ := strings.Cut(full, "/")
	if m, ok := ms[provider]; ok && name != "" {
		return activities.Model{Model: m, Name: name, Full: full}, nil
	}
	return activities.Model{}, agent.Errorf(agent.CodeUnknownModel, "model %q is not in this worker's build; it has %s", full, names(ms)).WithPath("model")
}

// addFallbacks checks that an agent's fallbacks exist. It notes which have no price: a
// start may set a cost limit that its agent has not. Of a flow's models it notes the prices.
func addFallbacks(a *activities.Agent, d *activities.Activities) (faults []error) {
	for _, name := range a.Spec.Fallbacks {
		m, err := d.Model(name)
		if err != nil {
			faults = append(faults, durable.Within("agent "+a.Spec.Name+": fallbacks", err).WithPath("fallbacks"))
			continue
		}
		price := m.Info(m.Name).Price
		if price == (agent.Price{}) {
			a.Spec.Unpriced = append(a.Spec.Unpriced, name)
		}
		if a.Spec.Flow {
			a.Spec.Prices = append(a.Spec.Prices, price)
		}
	}
	if a.Spec.Limits.CostUSD > 0 && len(a.Spec.Unpriced) > 0 {
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: limits.cost_usd can't be held, since the price of %s is not known; give the model a price", a.Spec.Name, strings.Join(a.Spec.Unpriced, ", ")).WithPath("limits.cost_usd"))
	}
	return faults
}

// withRole returns the definition with what its role fills in.
func withRole(d *activities.Activities, def agent.Definition) (agent.Definition, error) {
	if def.Role == "" {
		return def, nil
	}
	m, err := modelOf(d, def, def.Model == agent.FlowModel)
	return roles.Fill(def, err == nil && len(m.Reasoning) > 0) // a missing model is reported later
}
