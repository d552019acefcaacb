package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Suspensions is the part that knows which suspension is open, and since when the run has
// its status. Why the run waits is not here: other parts have the reasons.
type Suspensions struct {
	// Open is the open suspension; nil while the run waits for nobody.
	Open  *OpenSuspension `json:"open,omitempty"`
	Since time.Time       `json:"since"` // of the status
	// SuspendedFor is how long the run has been at rest, over all its suspensions.
	SuspendedFor time.Duration `json:"suspended_for,omitempty"`
}

// OpenSuspension is an open suspension: what stays the same while the reasons for it change.
type OpenSuspension struct {
	ID string `json:"id"`
	// AtRest means that nothing is in flight any more. Seq is the event that says so. Published
	// means that the run reported itself suspended, in listings and to its parent.
	AtRest    bool  `json:"at_rest,omitempty"`
	Seq       int64 `json:"seq,omitempty"`
	Published bool  `json:"published,omitempty"`
	// ContinuedAsNew means that this execution began during the suspension.
	ContinuedAsNew bool            `json:"continued_as_new,omitempty"`
	By             agent.Initiator `json:"by"`
	Cause          string          `json:"cause,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Turn           int             `json:"turn"`
	At             time.Time       `json:"at"`
	// Allowed counts the hooks that have allowed the suspension, and Told those that were told of it.
	Allowed int `json:"allowed,omitempty"`
	Told    int `json:"told,omitempty"`
	// Settled means that no hook may deny it any more: the parent's model has ordered it, too.
	Settled bool `json:"settled,omitempty"`
	// Ends are what has ended reasons to wait in this suspension, for the note to the model. OlderEnds counts
	// those that were dropped.
	Ends      []SuspensionEnd `json:"ends,omitempty"`
	OlderEnds int             `json:"older_ends,omitempty"`
	// OwnerFailed says why the owner does not let the run continue; nil if nothing says so.
	OwnerFailed *agent.OwnerFailure `json:"owner_failed,omitempty"`
}

func (r Suspensions) clone() Suspensions {
	if r.Open = copied(r.Open); r.Open != nil {
		r.Open.Ends = slices.Clip(r.Open.Ends)
	}
	return r
}

// atRest reports whether a suspension is open and nothing is in flight.
func (r Suspensions) atRest() bool { return r.Open != nil && r.Open.AtRest }

// published reports whether the run has reported itself suspended.
func (r Suspensions) published() bool { return r.Open != nil && r.Open.Published }

// continueAsNewAfter is how long a run is suspended before it continues as new, on the
// workers of that day. So a long wait does not pin an old build.
const continueAsNewAfter = 10 * time.Minute

// continueAsNewAt returns when a suspended run continues as new; zero if it does not. It
// does so once in a suspension.
func (r Suspensions) continueAsNewAt() time.Time {
	if !r.published() || r.Open.ContinuedAsNew {
		return time.Time{}
	}
	return r.Since.Add(continueAsNewAfter)
}

// setInitiator changes who caused the open suspension, and why.
func (r *Suspensions) setInitiator(by agent.Initiator, cause, reason string) {
	if r.Open != nil {
		r.Open.By, r.Open.Cause, r.Open.Reason = by, cause, reason
	}
}

// markContinuedAsNew records that a new execution began during the suspension.
func (r *Suspensions) markContinuedAsNew() {
	if r.Open != nil {
		r.Open.ContinuedAsNew = true
	}
}

// allow counts a hook that allows the suspension, maybe for another reason. told counts one that was
// told of it. settle lets no hook deny it.
func (r *Suspensions) allow(reason string) {
	r.Open.Allowed++
	r.Open.Reason = firstOf(reason, r.Open.Reason)
}

func (r *Suspensions) told()   { r.Open.Told++ }
func (r *Suspensions) settle() { r.Open.Settled = true }

// addEnd keeps what has ended a reason to wait. The same again is kept once.
func (r *Suspensions) addEnd(e SuspensionEnd) {
	e.Cause, e.Input = fit(e.Cause, maxEndCause), fit(e.Input, maxEndInput)
	if n := len(r.Open.Ends); n > 0 && r.Open.Ends[n-1] == e {
		return
	}
	r.Open.Ends = append(r.Open.Ends, e)
	r.boundEnds()
}

// boundEnds drops the oldest ends that are too long together.
func (r *Suspensions) boundEnds() {
	if r.Open == nil {
		return
	}
	size := 0
	for i, e := range slices.Backward(r.Open.Ends) {
		if size += e.jsonLen(); size > maxEnds {
			r.Open.Ends, r.Open.OlderEnds = slices.Clone(r.Open.Ends[i+1:]), r.Open.OlderEnds+i+1
			return
		}
	}
}

// ownerFails keeps why the owner does not let the run continue.
func (r *Suspensions) ownerFails(f agent.OwnerFailure) { r.Open.OwnerFailed = &f }

// dropOwnerFailed forgets it after an import: no parent waits for the run there.
func (r *Suspensions) dropOwnerFailed() {
	if r.Open != nil {
		r.Open.OwnerFailed = nil
	}
}

// restored sets the event of an imported suspension, which is still to be stored here.
func (r *Suspensions) restored(seq int64) { r.Open.Seq, r.Open.Published = seq, false }

// begin sets since when the run has its status.
func (r *Suspensions) begin(at time.Time) { r.Since = at }

// close ends the suspension, if one is open, and returns how long the run was at rest.
func (r *Suspensions) close(at time.Time) (rested time.Duration) {
	if r.atRest() {
		rested = at.Sub(r.Since)
		r.SuspendedFor += rested
	}
	r.Open = nil
	return rested
}

// openSuspension opens a suspension, unless one is open. A reason that comes later belongs
// to the open one.
func (s *step) openSuspension(by agent.Initiator, cause, reason string) {
	if s.Suspensions.Open != nil {
		return
	}
	s.Counters.Suspension++
	s.Suspensions.Open = &OpenSuspension{ID: suspensionID(s.Counters.Suspension), By: by, Cause: cause, Reason: fit(reason, maxReason), Turn: s.Turn.N, At: s.At}
}

// hasReason reports whether something keeps the run from its next turn or call. Nothing
// keeps a run that is being stopped.
func (s *step) hasReason() bool { return s.End.Stopping == nil && len(s.reasons()) > 0 }

// canRest reports whether the run may come to rest: no model call, no tool call and,
// unless the run is held, no child at work that it waits for. Children of a held run are
// held too.
func (s *step) canRest() bool {
	switch {
	case s.SuspensionHooks.busy(), s.Refreshing.Fetching:
		return false
	case s.Phase == RunContinuing || s.ready():
		return true
	case s.Phase == RunActive && s.Turn.Phase == TurnWorking:
		return s.Calls.runningCount() == 0 && (s.Holds.any() || !s.awaitsWorkingChild())
	}
	return false
}

// suspend records that the run is at rest.
func (s *step) suspend() {
	// First: Suspension copies both into the event.
	s.Suspensions.Open.AtRest, s.Suspensions.Since = true, s.At
	s.record(agent.Event{Type: agent.EventRunSuspended, Suspension: s.Suspension()})
	s.Suspensions.Open.Seq = s.Log.Seq
	s.SuspensionHooks.suspended()
	s.Parent.scheduleCheck()
}

// withdrawSuspended takes back that the run is suspended. An ancestor's hold alone needed no
// store; a reason that came since does.
func (s *step) withdrawSuspended() { s.Suspensions.Open.Published = false }

// publishSuspension tells listings and the parent that the run is suspended, or what it
// waits for now.
func (s *step) publishSuspension() {
	s.Suspensions.Open.Published, s.changed = true, false
	s.do(Publish{})
	s.reportSuspensionToParent()
}

// stored reports whether the run may report itself suspended, since the store has that
// event. A run that only an ancestor's hold keeps need not wait for the store: a whole tree
// would write at once. It is stored at the next check of the parent.
func (s *step) stored() bool {
	return s.onlyHeldByAncestor() || s.Log.storedTo() >= s.Suspensions.Open.Seq
}

// onlyHeldByAncestor reports whether nothing but an ancestor's hold keeps the run.
func (s *step) onlyHeldByAncestor() bool {
	return s.Parent.Start != nil && len(s.Requests.Open) == 0 && s.Park == nil && s.Holds.own() == nil && s.Holds.any()
}

// closeSuspension closes the suspension. If the run never came to rest in it, no event is
// written.
func (s *step) closeSuspension() {
	id, rested := s.Suspensions.Open.ID, s.Suspensions.atRest()
	was := s.hookSuspension()
	if rested {
		s.noteSuspension()
	}
	s.Suspensions.close(s.At)
	// Without run.suspended in the log there is nothing to resume.
	if !rested {
		return
	}
	s.Suspensions.Since = s.At
	s.Turn.dropCorrection() // whoever resumes says what comes next (PA-24)
	s.Recovery.dropNote()
	r := s.resumed
	r.Suspension, r.Mode, r.Checkpoint, r.Turn = id, s.resumeMode(r), s.Turn.checkpointID(s.Session), s.Turn.N
	s.record(agent.Event{Type: agent.EventRunResumed, Resumed: &r})
	s.tellResume(was, r)
	s.refreshLater()
	s.reportResumedToParent()
	s.changed = false
	s.do(Publish{})
}

// resumeMode returns what the run continues with.
func (s *step) resumeMode(r agent.Resumed) agent.ResumeMode {
	switch {
	case s.End.Stopping != nil:
		return agent.ResumedStop
	case r.Mode != "":
		return r.Mode
	case r.Cause == agent.InitiatorTimeout:
		return agent.ResumedTimeout
	case r.Event != "":
		return agent.ResumedEvent
	}
	return agent.ResumedContinue
}
