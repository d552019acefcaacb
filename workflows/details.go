package workflows

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
)

// details returns the Markdown that Temporal's UI shows of a run: what it waits for, and
// how to answer. The UI reads it by a query; no history has it.
func details(v agent.RunStatus) string {
	var b []string
	b = append(b, fmt.Sprintf("**%s** since %s, turn %d\n", v.Status, v.Since.Format(time.RFC3339), v.Turn))
	if v.Reason != "" {
		b = append(b, fmt.Sprintf("\n%s\n", handoff.EscapeLine(v.Reason))) // the reason may be text from outside
	}
	s := v.Suspension
	if s == nil {
		return strings.Join(b, "")
	}
	b = append(b, fmt.Sprintf("\nSuspension %s: %s, by %s", s.ID, s.Kind, s.Initiator))
	if s.Cause != "" {
		b = append(b, fmt.Sprintf(" (%s)", s.Cause))
	}
	b = append(b, "\n")
	for _, r := range s.Requests {
		b = append(b, fmt.Sprintf("\n- %s, %s: `%s`", r.ID, r.Type, answerLine(r)))
		if !r.Deadline.IsZero() {
			b = append(b, fmt.Sprintf(", until %s", r.Deadline.Format(time.RFC3339)))
		}
	}
	for _, h := range s.Holds {
		b = append(b, fmt.Sprintf("\n- held by %s (%s): `fermata resume %s`", h.Verb, h.From, v.Session))
	}
	return strings.Join(b, "")
}

// answerLine returns the command that answers a request.
func answerLine(r agent.Request) string {
	verb := "answer"
	if r.Type == agent.RequestApproval {
		verb = "approve"
	}
	return fmt.Sprintf("fermata %s %s --request %s", verb, r.Session, r.ID)
}
