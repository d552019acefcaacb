package agent

import (
	"strings"
	"time"
	"unicode/utf8"
)

// SuspensionSummary is what others than the run itself know of its suspension: the run
// above it, and those who list a tree. It has at most 2 kB of what the run, its model or
// a person wrote. Arguments are never in it: the run itself tells them.
type SuspensionSummary struct {
	ID        string         `json:"id"` // "s-14"
	Kind      SuspensionKind `json:"kind"`
	Initiator Initiator      `json:"initiator,omitempty"`
	Cause     string         `json:"cause,omitempty"`
	Reason    string         `json:"reason,omitempty"` // its first 120 characters
	Turn      int            `json:"turn"`
	Since     time.Time      `json:"since"`
	Expires   time.Time      `json:"expires,omitzero"`
	Owner     Owner          `json:"owner,omitempty"`
	// Open counts the open requests. Requests are the first 8 of them.
	Open     int              `json:"open,omitempty"`
	Requests []RequestSummary `json:"requests,omitempty"`
}

// RequestSummary is enough of an open request to find it and to see who may decide it.
type RequestSummary struct {
	ID        string      `json:"id"` // "q-7"
	Type      RequestType `json:"type"`
	Text      string      `json:"text,omitempty"` // its first 120 characters
	Tool      string      `json:"tool,omitempty"`
	Digest    string      `json:"digest,omitempty"`
	Approvers []string    `json:"approvers,omitempty"` // the first 4, of 120 characters each
}

// Bounds of a note.
const (
	maxNoted     = 8   // requests
	maxNoteText  = 120 // characters
	maxNoteName  = 64  // characters
	maxNotedWhos = 4   // approvers
)

// Summary returns what others are told of a suspension. Redacted leaves out what was asked.
func (s Suspension) Summary(redacted bool) SuspensionSummary {
	n := SuspensionSummary{
		ID: s.ID, Kind: s.Kind, Initiator: s.Initiator, Cause: s.Cause, Reason: s.Reason, Turn: s.Turn, Since: s.Since, Expires: s.Expires,
		Owner: s.Owner, Open: len(s.Requests),
	}
	for _, r := range s.Requests[:min(len(s.Requests), maxNoted)] {
		one := RequestSummary{ID: r.ID, Type: r.Type, Text: r.Text, Digest: r.Digest, Approvers: r.Approvers}
		if r.Call != nil {
			one.Tool = r.Call.Tool
		}
		n.Requests = append(n.Requests, one)
	}
	if redacted {
		n.Reason = ""
		for i := range n.Requests {
			n.Requests[i].Text = ""
		}
	}
	return n.Bounded()
}

// Bounded returns the note within its bounds, whoever wrote it.
func (n SuspensionSummary) Bounded() SuspensionSummary {
	n.ID, n.Kind, n.Initiator = short(n.ID, maxNoteName), short(n.Kind, maxNoteName), short(n.Initiator, maxNoteName)
	n.Cause, n.Reason, n.Owner = short(n.Cause, maxNoteName), short(n.Reason, maxNoteText), short(n.Owner, maxNoteName)
	n.Open = max(n.Open, len(n.Requests))
	requests := n.Requests[:min(len(n.Requests), maxNoted)]
	n.Requests = nil
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

// short is the beginning of a text, on which nothing but a look at it depends.
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
