package render

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// CheckLine says what a check came to, on one line.
func CheckLine(c *agent.CheckUpdate) string {
	if c == nil { // of a newer version
		return "check"
	}
	text := "check " + untrusted.Name(c.Name)
	switch v := c.Verdict; {
	case v == nil && c.Status == "":
		return text + " begins"
	case v == nil:
		return text + ": not finished"
	case v.Decision == agent.DecisionVeto:
		text += ": veto"
		if why := v.Reasoning + v.NextStep; why != "" {
			text += ", " + untrusted.Line(why, maxAsked)
		}
	default:
		text += ": accepted"
	}
	return text
}
