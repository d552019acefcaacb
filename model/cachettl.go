package model

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// CheckCacheTTL refuses, with [agent.CodeInvalidInput], how long a cache is to be kept unless it
// is zero, five minutes or an hour. It is for adapters to Claude.
func CheckCacheTTL(d time.Duration) error {
	if d != 0 && d != 5*time.Minute && d != time.Hour {
		return agent.Errorf(agent.CodeInvalidInput, "cache_ttl must be 5m or 1h, not %s", agent.Duration(d)).WithPath("cache_ttl")
	}
	return nil
}
