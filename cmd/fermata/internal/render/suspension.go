package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// maxAsked bounds the text of a request on its line.
const maxAsked = 200

// Asks describes a request on one line: q-7, approval: Run pay? (pay amount_eur=800)
func Asks(q agent.Request) string {
	line := fmt.Sprintf("%s, %s%s: %s", q.ID, q.Type, At(q), untrusted.Line(q.Text, maxAsked))
	if q.Call != nil {
		line += " (" + strings.TrimSpace(untrusted.Name(q.Call.Tool)+" "+Arguments(agent.ToolCall{Arguments: q.Call.Arguments})) + ")"
	}
	return line + Deadline(q)
}

// At says which step of a flow asks: " at file.1/ask"; empty outside of flows.
func At(q agent.Request) string {
	if q.Step == "" {
		return ""
	}
	return " at " + untrusted.Name(q.Step)
}

// Deadline says when a request is decided by itself, and how; empty if it is not.
func Deadline(q agent.Request) string {
	if q.Deadline.IsZero() {
		return ""
	}
	what := q.Default
	if what == "" {
		what = map[agent.RequestType]string{agent.RequestApproval: agent.DefaultReject, agent.RequestLimit: "stop"}[q.Type]
	}
	return fmt.Sprintf(" · at %s: %s", when(q.Deadline), cmp.Or(untrusted.Line(what, maxArgument), "nobody answered"))
}

// Waits says on one line why a run waits.
func Waits(s *agent.Suspension) string {
	var parts []string
	switch s.Kind {
	case agent.SuspensionInputRequired:
		var ids []string
		for _, q := range s.Requests {
			ids = append(ids, q.ID)
		}
		parts = append(parts, "waits for the answer to "+cmp.Or(strings.Join(ids, ", "), "its requests"))
	case agent.SuspensionParked:
		parts = append(parts, "waits"+Conditions(s.Conditions))
	case agent.SuspensionAwaitingBudget:
		parts = append(parts, "waits until its parent or its sub-agents leave some of the limits to it")
	case agent.SuspensionAwaitingChildren:
		parts = append(parts, "waits for its sub-agents")
	}
	for _, h := range s.Holds {
		parts = append(parts, Held(h))
	}
	if len(parts) == 0 {
		parts = append(parts, "held")
	}
	line := strings.Join(parts, "; ")
	if s.Kind == agent.SuspensionParked && s.Reason != "" {
		line += ": " + untrusted.Line(s.Reason, maxAsked)
	}
	return line
}

// Held says who holds a run, and why.
func Held(h agent.Hold) string {
	line := "held"
	if h.From == agent.HoldInherited {
		line += " with " + untrusted.Name(h.Session)
	}
	line += fmt.Sprintf("%s (%s)", By(h.By), h.Verb)
	if h.Reason != "" {
		line += ": " + untrusted.Line(h.Reason, maxAsked)
	}
	return line
}

// Conditions says what a parked run waits for: " for orders.paid, or until 15:04".
func Conditions(c *agent.Conditions) string {
	if c == nil || len(c.List()) == 0 {
		return " until somebody resumes it"
	}
	var parts []string
	for _, one := range c.List() {
		if one.Event != nil {
			parts = append(parts, "for "+untrusted.Cut(untrusted.Name(one.Event.Topic), maxArgument))
		}
		if !one.At.IsZero() {
			parts = append(parts, "until "+when(one.At))
		}
		if one.After > 0 {
			parts = append(parts, "for "+one.After.String())
		}
	}
	return " " + strings.Join(parts, ", or ")
}

// when returns a time for people, with its day unless that is today.
func when(t time.Time) string {
	t = t.Local()
	if now := time.Now(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// showHeld shows holds and suspensions.
func (t *Printer) showHeld(e agent.Event) {
	switch {
	case e.Type == agent.EventHoldAdded && e.Hold != nil:
		t.note("%s", Held(*e.Hold))
	case e.Type == agent.EventHoldRemoved && e.Hold != nil:
		by := "" // before the reason, which may say anything
		if e.Hold.RemovedBy != "" {
			by = untrusted.Cut(untrusted.Name(e.Hold.RemovedBy), maxArgument) + " lets it go: "
		}
		t.note("%sno longer %s", by, Held(*e.Hold))
	case e.Type == agent.EventRunSuspended && e.Suspension != nil:
		t.note("suspended (%s): %s", e.Suspension.ID, Waits(e.Suspension))
	case e.Type == agent.EventOwnerFailed && e.OwnerFailed != nil:
		t.note("%s", OwnerFailed(*e.OwnerFailed))
	case e.Type == agent.EventRunResumed && e.Resumed != nil:
		t.note("%s", resumedText(*e.Resumed))
	case e.Type == agent.EventRunStopped && e.Outcome != nil && e.Outcome.Handoff != nil:
		t.note("%s", handoffText(e.Outcome.Handoff))
	}
}

// OwnerFailed says who does not let a run continue, and why.
func OwnerFailed(f agent.OwnerFailure) string {
	return fmt.Sprintf("%s: the %s does not let it continue (%s): %s", f.Suspension, f.Owner, f.Code, untrusted.Line(f.Reason, 200))
}

func resumedText(r agent.Resumed) string {
	line := fmt.Sprintf("continues (%s, %s", r.Suspension, r.Cause)
	for _, more := range []string{r.By, r.Event} {
		if more != "" {
			line += " " + untrusted.Cut(untrusted.Name(more), maxArgument)
		}
	}
	if r.FromSummary {
		line += ", from a summary"
	}
	if r.Renewed {
		line += ", limits renewed"
	}
	return line + ")"
}

// handoffText says what a stopped run leaves.
func handoffText(h *agent.Handoff) string {
	n := 0
	for range h.All() {
		n++
	}
	return fmt.Sprintf("handed over: the work of %s, summed up by %s", Count(n, "agent"), h.SummarizedBy)
}

// asked shows what happened to requests.
func (t *Printer) asked(e agent.Event) {
	switch {
	case e.Type == agent.EventRequestOpened && e.Request != nil:
		t.note("%s", Asks(*e.Request))
	case e.Answer == nil:
	case e.Type == agent.EventRequestAnswered:
		t.note("%s", answered(*e.Answer))
	case e.Type == agent.EventRequestAnsweredLate:
		t.note("%s", "after its deadline, "+answered(*e.Answer))
	case e.Type == agent.EventRequestExpired:
		t.note("%s", strings.TrimSuffix(fmt.Sprintf("%s was decided by its deadline: %s", e.Answer.Request, untrusted.Line(e.Answer.Decision, maxArgument)), ": "))
	case e.Type == agent.EventRequestReminded:
		t.note("%s is still open", e.Answer.Request)
	}
}

func answered(a agent.Answered) string {
	line := a.Request + " " + cmp.Or(map[string]string{"answer": "answered", "approve": "approved", "reject": "rejected"}[a.Decision], a.Decision)
	line += By(cmp.Or(a.Approver, a.By))
	if a.Edited {
		line += ", with other arguments"
	}
	if a.AlwaysInSession {
		line += ", and all calls of the tool in this session"
	}
	if said := cmp.Or(a.Reason, a.Text); said != "" {
		line += ": " + untrusted.Line(said, maxAsked)
	}
	return line
}

// child shows what happened to a sub-agent.
func (t *Printer) child(e agent.Event) {
	if e.Child == nil {
		return
	}
	what := map[agent.EventType]string{
		agent.EventChildStarted: "started", agent.EventChildSuspended: "is suspended", agent.EventChildResumed: "resumed",
	}[e.Type]
	if e.Type == agent.EventChildEnded {
		what = "is " + string(e.Child.Status)
		if e.Child.Reason != "" && e.Child.Status != agent.StatusCompleted {
			what += ": " + untrusted.Line(e.Child.Reason, maxAsked)
		}
		if e.Child.Workspace != nil {
			what += "; workspace: " + Workspace(e.Child.Workspace)
		}
	}
	t.note("%s (%s) %s", untrusted.Name(e.Child.Session), untrusted.Name(e.Child.Agent), what)
}

// Break ends an unfinished line of the model's text.
func (t *Printer) Break() { t.Flush(); t.endText() }
