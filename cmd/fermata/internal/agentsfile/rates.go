package agentsfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/worker"
)

// rateEntry bounds the calls of a provider's models.
type rateEntry struct {
	PerSecond float64 `json:"per_second,omitempty"`
	AtOnce    int     `json:"at_once,omitempty"`
}

func (f *File) readRates(c *checker, part entry) {
	for _, e := range c.mapping(part, "names of providers or models, each with per_second or at_once below") {
		where := "rates." + e.name
		r, ok := decode[rateEntry](c, e, where)
		switch {
		case !ok:
		case f.models[e.name] == nil:
			c.add(agent.UnknownModel, e.key, "%s: there is no such provider or model here; there are %s", where, strings.Join(slices.Sorted(maps.Keys(f.models)), ", "))
		case r.PerSecond < 0 || r.AtOnce < 0:
			c.add(agent.InvalidInput, e.key, "%s: a bound is not negative", where)
		default:
			f.rates[e.name] = worker.Rate(r)
		}
	}
}

func (f *File) readDaily(c *checker, part entry) {
	if part.value == nil {
		return
	}
	d, ok := decode[agent.Daily](c, part, "daily")
	switch err := d.Check(); {
	case !ok: // what is wrong is told
	case err != nil:
		c.add(agent.InvalidInput, part.key, "%w", err)
	case d == agent.Daily{}:
		c.add(agent.InvalidInput, part.key, "daily bounds nothing: write tokens or cost_usd, or leave it out")
	default:
		f.Daily = d
	}
}

// Rates are the bounds on calls of models, as a worker takes them.
func (f *File) Rates() map[string]worker.Rate { return f.rates }
