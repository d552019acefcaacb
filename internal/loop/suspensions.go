package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Suspensions is the part that knows which suspension is open and since when the run has its
// status. Why the run waits is not here: the reasons are the other parts'.
type Suspensions struct {
	// Open is the open suspension, at most one; nil while the run waits for nobody.
	Open  *OpenSuspension `json:"open,omitempty"`
	Since time.Time       `json:"since"` // of the status
	// SuspendedFor is how long the run has been suspended, over all its suspensions.
	SuspendedFor time.Duration `json:"suspended_for,omitempty"`
}

// OpenSuspension is an open suspension: what is the same for all reasons that the run has to wait.
type OpenSuspension struct {
	ID string `json:"id"`
	// AtRest means that nothing is in flight any more. Seq is the event that says so,
	// and Saved means that it is stored: only then the run is suspended, and no longer
	// suspending.
	AtRest bool  `json:"at_rest,omitempty"`
	Seq    int64 `json:"seq,omitempty"`
	Stored bool  `json:"stored,omitempty"`
	// ContinuedAsNew means that this execution began while the run waited.
	ContinuedAsNew bool            `json:"continued_as_new,omitempty"`
	By             agent.Initiator `json:"by"`
	Cause          string          `json:"cause,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Turn           int             `json:"turn"`
	At             time.Time       `json:"at"`
}

func (r Suspensions) clone() Suspensions {
	r.Open = copied(r.Open)
	return r
}

// atRest reports whether a suspension is open and nothing is in flight.
func (r Suspensions) atRest() bool { return r.Open != nil && r.Open.AtRest }

// stored reports whether the run says that it is suspended.
func (r Suspensions) stored() bool { return r.Open != nil && r.Open.Stored }

// by is who brought the open suspension about; empty while there is none.
func (r Suspensions) by() agent.Initiator {
	if r.Open == nil {
		return ""
	}
	return r.Open.By
}

// continueAsNewAfter is how long a run rests before it goes on in a new execution, on the
// workers of that day: a long wait does not pin an old build.
const continueAsNewAfter = 10 * time.Minute

// continueAsNewAt is when the run has rested for so long in this execution; zero if it need not
// carry over for that.
func (r Suspensions) continueAsNewAt() time.Time {
	if !r.stored() || r.Open.ContinuedAsNew {
		return time.Time{}
	}
	return r.Since.Add(continueAsNewAfter)
}

// setInitiator says anew why the open suspension is there.
func (r *Suspensions) setInitiator(by agent.Initiator, cause, reason string) {
	if r.Open != nil {
		r.Open.By, r.Open.Cause, r.Open.Reason = by, cause, reason
	}
}

// markContinuedAsNew remembers that a new execution began while the run waited.
func (r *Suspensions) markContinuedAsNew() {
	if r.Open != nil {
		r.Open.ContinuedAsNew = true
	}
}

// restored makes an imported suspension one whose event is still to be stored here.
func (r *Suspensions) restored(seq int64) { r.Open.Seq, r.Open.Stored = seq, false }

// begin sets when the run began.
func (r *Suspensions) begin(at time.Time) { r.Since = at }

// close ends the suspension, if one is open, and returns for how long the run rested.
func (r *Suspensions) close(at time.Time) (rested time.Duration) {
	if r.atRest() {
		rested = at.Sub(r.Since)
		r.SuspendedFor += rested
	}
	r.Open = nil
	return rested
}

// openSuspension opens a suspension, unless one is open.
func (s *step) openSuspension(by agent.Initiator, cause, reason string) {
	if s.Suspensions.Open != nil {
		return
	}
	s.Counters.Suspension++
	s.Suspensions.Open = &OpenSuspension{ID: suspensionID(s.Counters.Suspension), By: by, Cause: cause, Reason: fit(reason, maxReason), Turn: s.Turn.N, At: s.At}
}

// hasReason reports whether something keeps the run from its next step.
func (s *step) hasReason() bool { return s.End.Stopping == nil && len(s.reasons()) > 0 }

// nothingInFlight reports whether nothing is in flight. The sub-agents of a held run are held too.
func (s *step) nothingInFlight() bool {
	switch {
	case s.Phase == RunContinuing || s.ready():
		return true
	case s.Phase == RunActive && s.Turn.Phase == TurnWorking:
		return s.Calls.runningCount() == 0 && (s.Holds.any() || !s.awaitsWorkingChild())
	}
	return false
}

// suspend says that the run rests.
func (s *step) suspend() {
	s.Suspensions.Open.AtRest, s.Suspensions.Since = true, s.At
	s.record(agent.Event{Type: agent.EventRunSuspended, Suspension: s.Suspension()})
	s.Suspensions.Open.Seq = s.Log.Seq
	s.Parent.scheduleCheck()
}

// withdrawSuspended takes back that the run is suspended: more keeps it than an ancestor's hold,
// and that is not stored yet.
func (s *step) withdrawSuspended() { s.Suspensions.Open.Stored = false }

// publishSuspension tells listings and the parent that the run is suspended, or what it
// waits for now.
func (s *step) publishSuspension() {
	s.Suspensions.Open.Stored, s.changed = true, false
	s.do(Publish{})
	s.reportSuspensionToParent()
}

// stored reports whether the suspension is in the store, so that the run may say that it
// is suspended. A run that nothing but an ancestor's hold keeps is stored later, when it
// looks for its parent: a whole tree would write at once.
func (s *step) stored() bool {
	return s.onlyHeldByAncestor() || s.Log.storedTo() >= s.Suspensions.Open.Seq
}

// onlyHeldByAncestor reports whether nothing but an ancestor's hold keeps the run.
func (s *step) onlyHeldByAncestor() bool {
	return s.Parent.Start != nil && len(s.Requests.Open) == 0 && s.Park == nil && s.Holds.own() == nil && s.Holds.any()
}

// closeSuspension closes the suspension. One that never came to a rest was withdrawn.
func (s *step) closeSuspension() {
	id, rested := s.Suspensions.Open.ID, s.Suspensions.atRest()
	s.Suspensions.close(s.At)
	if !rested {
		return
	}
	s.Suspensions.Since = s.At
	r := s.resumed
	r.Suspension = id
	s.record(agent.Event{Type: agent.EventRunResumed, Resumed: &r})
	s.reportResumedToParent()
	s.do(Publish{})
}
