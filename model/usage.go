package model

import "github.com/fermata-agents/fermata/agent"

// maxTokens is more than any call uses. It limits what a server can claim, because limits
// compare with sums of counts.
const maxTokens = 1_000_000_000_000

// ClampUsage returns a server's counts with each number between 0 and 10^12, so that they
// can be added up. Some servers send -1 for an unknown number. Adapters call it, and
// workers call it for what any model reports.
func ClampUsage(u agent.Usage) agent.Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Reasoning, &u.Searches} {
		*n = min(max(*n, 0), maxTokens)
	}
	return u
}
