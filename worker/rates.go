package worker

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
)

// RateLimit bounds the calls of a provider's models. Its zero value bounds nothing.
type RateLimit struct {
	// PerSecond is how many calls all workers together begin in a second, as the
	// server counts them; zero means as many as come.
	PerSecond float64
	// Concurrent is how many calls one worker makes at once; zero means as many as its
	// [LaneModels] lane.
	Concurrent int
}

// modelQueue is the task queue on which a model's calls wait; empty for the runs' own.
func (o *Options) modelQueue(model string) string {
	provider, _, _ := strings.Cut(model, "/")
	if _, bounded := o.RateLimits[provider]; !bounded {
		return ""
	}
	return activities.RatedLane(model).Queue(o.taskQueue())
}

func (o *Options) checkRates() (faults []error) {
	for _, provider := range slices.Sorted(maps.Keys(o.RateLimits)) {
		r := o.RateLimits[provider]
		if provider == "" || strings.Contains(provider, "/") || r.PerSecond < 0 || r.Concurrent < 0 {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.RateLimits[%q]: name a provider, the part of its models' names before the slash, and bounds that are not negative", provider).WithPath("rates"))
		}
	}
	return faults
}
