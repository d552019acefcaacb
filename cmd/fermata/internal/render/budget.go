package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Used describes what a run and its sub-agents have used.
func Used(u agent.Tally) string {
	if u.Turns == 0 && u.Usage.Total() == 0 {
		return "-"
	}
	// The total has input and output tokens, which is what limits count.
	text := fmt.Sprintf("%s, %s, %s USD", Count(u.Turns, "turn"), Count(int(u.Usage.Total()), "token"), u.Cost)
	if u.Estimated != (agent.Estimate{}) {
		text += " (about)"
	}
	return text
}

// Budget describes what limits leave or grant, as far as they bound anything.
func Budget(r *agent.Budget) string {
	var parts []string
	if r != nil && r.Turns != nil {
		parts = append(parts, Count(*r.Turns, "turn"))
	}
	if r != nil && r.Tokens != nil {
		parts = append(parts, Count(int(*r.Tokens), "token"))
	}
	if r != nil && r.CostUSD != nil {
		parts = append(parts, fmt.Sprintf("%s USD", *r.CostUSD))
	}
	if r != nil && r.WallClock != nil {
		parts = append(parts, time.Duration(*r.WallClock).Round(time.Second).String())
	}
	if r != nil && r.Agents != nil {
		parts = append(parts, Count(*r.Agents, "agent"))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
