package journal

import (
	"strconv"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Counters returns n, or higher numbers if a log's events have used them. A run that
// begins with that log counts on from there, so that no name in it is used twice.
func Counters(n remembered.Counters, events []agent.Event) remembered.Counters {
	for _, e := range events {
		if e.Suspension != nil {
			n.Suspension = max(n.Suspension, number(e.Suspension.ID))
		}
		if e.Request != nil {
			n.Request = max(n.Request, number(e.Request.ID))
			n.Suspension = max(n.Suspension, number(e.Request.Suspension)) // the suspension's own event comes later
		}
		if e.Hold != nil && e.Hold.From == agent.HoldOwn {
			n.Hold = max(n.Hold, number(e.Hold.ID))
		}
		if e.Child != nil {
			n.Child = max(n.Child, number(e.Child.Session))
		}
		if e.Artifact != nil {
			n.Artifact = max(n.Artifact, e.Artifact.Version)
		}
		if e.Type == agent.EventSkillActivated {
			n.Skill = 1
		}
	}
	return n
}

// number returns N of NAME-N; 0 if there is none.
func number(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	if err != nil {
		return 0
	}
	return n
}
