package model

import "github.com/fermata-agents/fermata/agent"

// maxTokens is more than any call takes, and bounds what a server may claim: limits
// are held by sums of counts.
const maxTokens = 1_000_000_000_000

// ClampUsage makes a server's counts of tokens ones that can be added up. Some servers
// send -1 for what they do not know. Adapters use it; workers use it for what any model
// tells.
func ClampUsage(u agent.Usage) agent.Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Reasoning, &u.Searches} {
		*n = min(max(*n, 0), maxTokens)
	}
	return u
}
