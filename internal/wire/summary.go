package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// Limits of a summary. A parent keeps one in its state for each suspended child.
const (
	maxNoted     = 8   // requests
	maxNoteText  = 120 // characters
	maxNoteName  = 64  // characters
	maxNotedWhos = 4   // approvers
)

// Summary returns the short form of a suspension that listings and the parent get. If redacted is
// true, it leaves out the reason and the texts of requests.
func Summary(s agent.Suspension, redacted bool) agent.SuspensionSummary {
	n := agent.SuspensionSummary{
		ID: s.ID, Kind: s.Kind, Initiator: s.Initiator, Cause: s.Cause, Reason: s.Reason, Turn: s.Turn, Since: s.Since, Expires: s.Expires,
		Owner: s.Owner, Open: len(s.Requests), OwnerFailed: s.OwnerFailed,
	}
	for _, r := range s.Requests[:min(len(s.Requests), maxNoted)] {
		one := agent.RequestSummary{ID: r.ID, Type: r.Type, Text: r.Text, Digest: r.Digest, Approvers: r.Approvers}
		if r.Call != nil {
			one.Tool = r.Call.Tool
		}
		n.Requests = append(n.Requests, one)
	}
	if redacted {
		n.Reason = ""
		if n.OwnerFailed != nil {
			less := *n.OwnerFailed
			less.Reason = ""
			n.OwnerFailed = &less
		}
		for i := range n.Requests {
			n.Requests[i].Text = ""
		}
	}
	return BoundedSummary(n)
}

// BoundedSummary returns a summary cut to its limits. Callers use it for summaries that another
// run has sent: such a signal may be forged.
func BoundedSummary(n agent.SuspensionSummary) agent.SuspensionSummary {
	n.ID, n.Kind, n.Initiator = short(n.ID, maxNoteName), short(n.Kind, maxNoteName), short(n.Initiator, maxNoteName)
	n.Cause, n.Reason, n.Owner = short(n.Cause, maxNoteName), short(n.Reason, maxNoteText), short(n.Owner, maxNoteName)
	if f := n.OwnerFailed; f != nil { // a copy: the given one belongs to the caller
		n.OwnerFailed = &agent.OwnerFailure{Suspension: short(f.Suspension, maxNoteName), Owner: short(f.Owner, maxNoteName), Code: short(f.Code, maxNoteName), Reason: short(f.Reason, maxNoteText)}
	}
	n.Open = max(n.Open, len(n.Requests)) // before the list is cut, so that Open still counts all
	requests := n.Requests[:min(len(n.Requests), maxNoted)]
	n.Requests = nil // a new list: the given one belongs to the caller
	for _, r := range requests {
		r.ID, r.Type, r.Text = short(r.ID, maxNoteName), short(r.Type, maxNoteName), short(r.Text, maxNoteText)
		r.Tool, r.Digest = short(r.Tool, maxNoteName), short(r.Digest, maxNoteName)
		var approvers []string
		for _, a := range r.Approvers[:min(len(r.Approvers), maxNotedWhos)] {
			approvers = append(approvers, short(a, maxNoteText))
		}
		r.Approvers = approvers
		n.Requests = append(n.Requests, r)
	}
	return n
}

// BoundedHold returns a hold as an answer shows it: its texts are cut as those of a summary.
func BoundedHold(h agent.AckHold) *agent.AckHold {
	h.By, h.Reason = short(h.By, maxNoteText), short(h.Reason, maxNoteText)
	return &h
}

// short returns the beginning of a text, at most so many characters long. An ellipsis shows that
// it was cut.
func short[T ~string](text T, most int) T {
	if utf8.RuneCountInString(string(text)) <= most {
		return text
	}
	runes := []rune(strings.ToValidUTF8(string(text), ""))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return T(runes)
}
