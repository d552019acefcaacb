package render

import (
	"strings"

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
	case c.Skipped:
		return text + ": skipped, " + skippedText(c.Reason)
	case v == nil && c.Status == "":
		return text + " begins"
	case v == nil:
		return text + ": not finished"
	case v.Decision == agent.DecisionVeto:
		text += ": veto"
		why := v.Reasoning
		if v.NextStep != "" {
			why = strings.TrimSpace(why + " Next: " + v.NextStep)
		}
		if why != "" {
			text += ", " + untrusted.Line(why, maxAsked)
		}
	case c.Error != "":
		text += ": failed, " + untrusted.Line(c.Error, maxAsked)
		if !c.Point.Tells() {
			text += "; that counts as accepted"
		}
	default:
		text += ": accepted"
	}
	return text
}

// skippedText says in words why a check is not made; a newer version's reason stays a key.
func skippedText(r agent.SkipReason) string {
	text, ok := map[agent.SkipReason]string{
		agent.SkippedStalled:        "not asked when a call repeats",
		agent.SkippedLastTurns:      "not asked in the last turns",
		agent.SkippedAttempts:       "not asked after so many vetoes in a row",
		agent.SkippedEvery:          "its cadence leaves this turn out",
		agent.SkippedAfterTurns:     "not asked in the first turns",
		agent.SkippedMaxInvocations: "asked as often as it may be",
		agent.SkippedWhen:           "asked only when a call repeats",
		agent.SkippedByCheck:        "an earlier check has skipped it",
		agent.SkippedLimit:          "a limit is used up",
	}[r]
	if !ok {
		return untrusted.Name(string(r))
	}
	return text
}
