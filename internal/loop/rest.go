package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Rest is the part that knows which suspension is open and since when the run has its
// status. Why the run waits is not here: the reasons are the other parts'.
type Rest struct {
	// Wait is the open suspension, at most one; nil while the run waits for nobody.
	Wait  *Wait     `json:"wait,omitempty"`
	Since time.Time `json:"since"` // of the status
	// Parked is how long the run has been suspended, over all its suspensions.
	Parked time.Duration `json:"parked,omitempty"`
}

// Wait is an open suspension: what is the same for all reasons that the run has to wait.
type Wait struct {
	ID string `json:"id"`
	// Resting means that nothing is in flight any more. Seq is the event that says so,
	// and Saved means that it is stored: only then the run is suspended, and no longer
	// suspending.
	Resting bool  `json:"resting,omitempty"`
	Seq     int64 `json:"seq,omitempty"`
	Saved   bool  `json:"saved,omitempty"`
	// Carried means that this execution began while the run waited.
	Carried bool            `json:"carried,omitempty"`
	By      agent.Initiator `json:"by"`
	Cause   string          `json:"cause,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Turn    int             `json:"turn"`
	At      time.Time       `json:"at"`
}

func (r Rest) clone() Rest {
	r.Wait = copied(r.Wait)
	return r
}

// resting reports whether a suspension is open and nothing is in flight.
func (r Rest) resting() bool { return r.Wait != nil && r.Wait.Resting }

// saved reports whether the run says that it is suspended.
func (r Rest) saved() bool { return r.Wait != nil && r.Wait.Saved }

// by is who brought the open suspension about; empty while there is none.
func (r Rest) by() agent.Initiator {
	if r.Wait == nil {
		return ""
	}
	return r.Wait.By
}

// carryAfter is how long a run rests before it goes on in a new execution, on the
// workers of that day: a long wait does not pin an old build.
const carryAfter = 10 * time.Minute

// carryAt is when the run has rested for so long in this execution; zero if it need not
// carry over for that.
func (r Rest) carryAt() time.Time {
	if !r.saved() || r.Wait.Carried {
		return time.Time{}
	}
	return r.Since.Add(carryAfter)
}

// blame says anew why the open suspension is there.
func (r *Rest) blame(by agent.Initiator, cause, reason string) {
	if r.Wait != nil {
		r.Wait.By, r.Wait.Cause, r.Wait.Reason = by, cause, reason
	}
}

// markCarried remembers that a new execution began while the run waited.
func (r *Rest) markCarried() {
	if r.Wait != nil {
		r.Wait.Carried = true
	}
}

// restored makes an imported suspension one whose event is still to be stored here.
func (r *Rest) restored(seq int64) { r.Wait.Seq, r.Wait.Saved = seq, false }

// begin sets when the run began.
func (r *Rest) begin(at time.Time) { r.Since = at }

// close ends the suspension, if one is open, and returns for how long the run rested.
func (r *Rest) close(at time.Time) (rested time.Duration) {
	if r.resting() {
		rested = at.Sub(r.Since)
		r.Parked += rested
	}
	r.Wait = nil
	return rested
}

// openSuspension opens a suspension, unless one is open.
func (s *step) openSuspension(by agent.Initiator, cause, reason string) {
	if s.Rest.Wait != nil {
		return
	}
	s.Numbers.Suspension++
	s.Rest.Wait = &Wait{ID: agent.SuspensionID(s.Numbers.Suspension), By: by, Cause: cause, Reason: fit(reason, maxReason), Turn: s.Turn.N, At: s.At}
}

// waits reports whether something keeps the run from its next step.
func (s *step) waits() bool { return s.End.Stopping == nil && len(s.reasons()) > 0 }

// idle reports whether nothing is in flight. The sub-agents of a held run are held too.
func (s *step) idle() bool {
	switch {
	case s.Life == Carrying || s.ready():
		return true
	case s.Life == Live && s.Turn.Phase == Working:
		return s.Calls.active() == 0 && (s.Holds.any() || !s.childrenWork())
	}
	return false
}

// suspend says that the run rests.
func (s *step) suspend() {
	s.Rest.Wait.Resting, s.Rest.Since = true, s.At
	s.record(agent.Event{Type: agent.RunSuspended, Suspension: s.Suspension()})
	s.Rest.Wait.Seq = s.Log.Seq
	s.Parent.lookAnew()
}

// unsaved takes back that the run is suspended: more keeps it than an ancestor's hold,
// and that is not stored yet.
func (s *step) unsaved() { s.Rest.Wait.Saved = false }

// tellSuspended tells listings and the parent that the run is suspended, or what it
// waits for now.
func (s *step) tellSuspended() {
	s.Rest.Wait.Saved, s.changed = true, false
	s.do(Publish{})
	s.reportRest()
}

// stored reports whether the suspension is in the store, so that the run may say that it
// is suspended. A run that nothing but an ancestor's hold keeps is stored later, when it
// looks for its parent: a whole tree would write at once.
func (s *step) stored() bool {
	return s.heldAboveOnly() || s.Log.storedTo() >= s.Rest.Wait.Seq
}

// heldAboveOnly reports whether nothing but an ancestor's hold keeps the run.
func (s *step) heldAboveOnly() bool {
	return s.Parent.Birth != nil && len(s.Requests.Open) == 0 && s.Park == nil && s.Holds.own() == nil && s.Holds.any()
}

// closeSuspension closes the suspension. One that never came to a rest was withdrawn.
func (s *step) closeSuspension() {
	id, rested := s.Rest.Wait.ID, s.Rest.resting()
	s.Rest.close(s.At)
	if !rested {
		return
	}
	s.Rest.Since = s.At
	r := s.resumed
	r.Suspension = id
	s.record(agent.Event{Type: agent.RunResumed, Resumed: &r})
	s.reportGoesOn()
	s.do(Publish{})
}
