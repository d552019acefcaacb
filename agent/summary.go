package agent

import "time"

// SuspensionSummary is what a parent and listings know about a run's suspension. It has
// at most 2 kB of text that the run, its model or a person wrote. It never has a call's
// arguments: ask the run itself for them.
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
	// Open counts the open requests. Requests has the first 8 of them.
	Open     int              `json:"open,omitempty"`
	Requests []RequestSummary `json:"requests,omitempty"`
	// OwnerFailed says why the owner does not let the run continue (see [Suspension.OwnerFailed]).
	OwnerFailed *OwnerFailure `json:"owner_failed,omitempty"`
}

// RequestSummary has enough of an open request to find it and to see who may decide it.
type RequestSummary struct {
	ID        string      `json:"id"` // "q-7"
	Type      RequestType `json:"type"`
	Text      string      `json:"text,omitempty"` // its first 120 characters
	Tool      string      `json:"tool,omitempty"`
	Digest    string      `json:"digest,omitempty"`
	Approvers []string    `json:"approvers,omitempty"` // the first 4, of 120 characters each
}
