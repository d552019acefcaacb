package worker

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
)

// RateLimit limits the calls of a provider's models. Its zero value has no limit.
type RateLimit struct {
	// PerSecond is how many calls all workers together begin in a second, as the server
	// counts them. Zero means no limit.
	PerSecond float64
	// Concurrent is how many calls one worker has in progress. Zero means as many as its
	// [LaneModels] lane has slots.
	Concurrent int
}

// modelQueue returns the task queue for a model's calls; empty for the runs' own.
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
