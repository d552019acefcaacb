package agentsfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/worker"
)

// rateEntry bounds the calls of a provider's models, or of one model. Zero means no bound.
type rateEntry struct {
	// PerSecond is how many calls may begin in a second, over all workers of the task queue.
	PerSecond float64 `json:"per_second,omitempty"`
	// Concurrent is how many calls one worker makes at once.
	Concurrent int `json:"concurrent,omitempty"`
}

func (f *File) readRates(c *checker, part entry) {
	for _, e := range c.mapping(part, "names of providers or models, each with per_second or concurrent below") {
		where := "rates." + e.name
		r, ok := decode[rateEntry](c, e, where)
		switch {
		case !ok:
		case f.models[e.name] == nil:
			c.add(agent.CodeUnknownModel, e.key, "%s: there is no such provider or model here; there are %s", where, strings.Join(slices.Sorted(maps.Keys(f.models)), ", "))
		case r.PerSecond < 0 || r.Concurrent < 0:
			c.add(agent.CodeInvalidInput, e.key, "%s: a bound must not be negative", where)
		default:
			f.rates[e.name] = worker.RateLimit(r)
		}
	}
}

func (f *File) readDaily(c *checker, part entry) {
	if part.value == nil {
		return
	}
	d, ok := decode[agent.DailyLimits](c, part, "daily")
	switch err := d.Check(); {
	case !ok: // errors were reported before
	case err != nil:
		c.add(agent.CodeInvalidInput, part.key, "%w", err)
	case d == agent.DailyLimits{}:
		c.add(agent.CodeInvalidInput, part.key, "daily has no limit: write tokens or cost_usd, or leave it out")
	default:
		f.Daily = d
	}
}

// RateLimits returns the bounds on calls of models for a worker's options.
func (f *File) RateLimits() map[string]worker.RateLimit { return f.rates }
