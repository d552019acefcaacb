package model

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// CheckCacheTTL returns an [agent.CodeInvalidInput] error unless d is zero, five minutes
// or an hour. Adapters to Claude call it.
func CheckCacheTTL(d time.Duration) error {
	if d != 0 && d != 5*time.Minute && d != time.Hour {
		return agent.Errorf(agent.CodeInvalidInput, "cache_ttl must be 5m or 1h, not %s", agent.Duration(d)).WithPath("cache_ttl")
	}
	return nil
}
