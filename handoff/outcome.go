package handoff

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// FromOutcome returns the handoff of a child that left an outcome. A stopped child has
// its own handoff, and so have some that failed: if no model summed that up, it says here that the child
// failed. For any other it is made from the outcome. An outcome has neither the child's task nor its
// remaining limits, so the parent passes the task; empty if it is unknown.
func FromOutcome(o agent.Outcome, task string) agent.Handoff {
	if o.Handoff != nil {
		h := *o.Handoff
		// The child wrote its handoff before its end. Names and numbers in the outcome
		// are the final ones.
		h.Session, h.Run, h.Agent, h.Status = o.Session, o.Run, o.Agent, o.Status
		h.Usage, h.Cost, h.Tree = o.Usage, o.Cost, o.Tree
		if o.Status == agent.StatusFailed && h.SummarizedBy == agent.SummarizedByRule {
			why := "it failed: " + failure(o)
			h.Summary, h.Failed = cut(withWords(why, o.Text), maxSummary), append(slices.Clone(h.Failed), itemOf(h.Session, why)...)
		}
		return h
	}
	h := agent.Handoff{
		V: agent.Version, Session: o.Session, Run: o.Run, Agent: o.Agent, Status: o.Status,
		Task: cut(or(task, noTask), maxText), Reason: cut(or(o.Reason, string(o.Status)), maxText),
		Usage: o.Usage, Cost: o.Cost, Tree: o.Tree, Confidence: silent, ConfidenceBy: agent.SummarizedByRule, SummarizedBy: agent.SummarizedByRule,
		Artifacts: o.Artifacts,
	}
	text := or(o.Text, string(o.Output))
	if !blank(text) {
		h.Confidence = spoke
	}
	switch o.Status {
	case agent.StatusCompleted:
		h.Summary = or(text, "It completed its task and said nothing.")
		h.Done = itemOf(h.Session, h.Summary)
	case agent.StatusFailed:
		why := "it failed: " + failure(o)
		h.Summary = withWords(why, text)
		h.Failed = itemOf(h.Session, why)
	default:
		fold(&h, o, text)
	}
	h.Summary = cut(h.Summary, maxSummary)
	return h
}

// fold fills in the handoff of a child that neither completed nor failed.
func fold(h *agent.Handoff, o agent.Outcome, text string) {
	why := "it ended before it was finished: " + ending(o.Status, h.Reason)
	if !o.Status.Ended() {
		why = "it has not ended: " + ending(o.Status, h.Reason)
	}
	h.Summary = withWords(why, text)
	// Without a turn it did nothing; otherwise nobody knows how far it got.
	if o.Turns == 0 {
		h.NotStarted = itemOf(h.Session, why)
		return
	}
	h.InFlight = itemOf(h.Session, why)
}

// ending returns a run's status, with the reason if that says more: "cancelled
// (requested)".
func ending(status agent.Status, reason string) string {
	if blank(reason) || reason == string(status) {
		return string(status)
	}
	return fmt.Sprintf("%s (%s)", status, reason)
}

// Missing returns the handoff of a child that did not report in time. Its
// status is cancelled, since children do not outlive their parent. What it did and used
// is unknown, and its summary says so.
func Missing(session, run, agentName, task string) agent.Handoff {
	const why = "it did not report in time: how far it got, and what it spent, is not known here"
	return agent.Handoff{
		V: agent.Version, Session: session, Run: run, Agent: agentName, Status: agent.StatusCancelled,
		Task: cut(or(task, noTask), maxText), Reason: "did not report in time", Summary: sentence(why),
		InFlight: itemOf(session, why), Confidence: silent, ConfidenceBy: agent.SummarizedByRule, SummarizedBy: agent.SummarizedByRule,
	}
}

// withWords returns a note of the runtime, followed by the agent's last text if there is
// one.
func withWords(note, text string) string {
	if blank(text) {
		return sentence(note) + " It had said nothing."
	}
	return sentence(note) + " The last thing that it said:\n\n" + text
}

// sentence returns a note that begins with "it" as a sentence.
func sentence(note string) string { return "I" + note[1:] + "." }

func failure(o agent.Outcome) string {
	if o.Error != nil {
		return or(o.Error.Message, string(o.Error.Code))
	}
	return or(o.Reason, "nobody knows why")
}

// itemOf returns a list with one item, whose ref is the transcript.
func itemOf(session, what string) []agent.WorkItem {
	return []agent.WorkItem{{What: cut(what, maxText), Ref: refTo(session), By: session}}
}
