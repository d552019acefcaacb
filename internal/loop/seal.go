package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// sealBehind seals a long tail while the run goes on.
func (s *step) sealBehind() {
	if s.Log.Sealing == 0 && s.Log.Bytes >= sealAt && !s.over() {
		s.seal(false)
	}
}

// sealRest seals the whole tail, which the run waits for. A seal that is under
// way is waited for first: chunks are a chain.
func (s *step) sealRest(final bool) {
	if s.Log.Sealing == 0 && s.Phase != Carrying { // which seals by itself
		s.seal(final)
	}
}

func (s *step) seal(final bool) {
	if !s.Log.Again.IsZero() {
		return // the store has failed, and is given time
	}
	s.Log.Sealing, s.Log.Behind = s.Log.Seq, false
	s.Log.Fence.N++
	s.do(Seal{To: s.Log.Seq, Final: final, Within: final && s.alone()})
}

// alone tells whether a run is at an end to which nobody brought it, and nothing is in
// flight that could come back. A task that closes the run and that something comes
// into is done again, and whoever said an update in it would be told of a failure.
func (s *step) alone() bool {
	return s.Outcome.Status == agent.Completed && s.verb == "" && !s.liveChildren()
}

// sealed drops from the tail what is stored.
func (s *step) sealed(in Sealed) error {
	if in.Seq != s.Log.Sealing {
		return s.refuse("no seal up to event %d is under way", in.Seq)
	}
	s.Log.Head, s.Log.Version, s.Log.Sealing, s.Log.Fault, s.Log.Tries = in.Head, in.Version, 0, nil, 0
	s.Log.Fence.Chain = max(s.Log.Fence.Chain, in.Chain)
	s.Log.Closed = s.Phase == Carrying
	rest := slices.IndexFunc(s.Log.Tail, func(e agent.Event) bool { return e.Seq > in.Seq })
	if rest < 0 {
		rest = len(s.Log.Tail)
	}
	s.dropTail(rest)
	if len(s.Log.Tail) > 0 && s.Wait != nil && s.Wait.Resting && s.Phase != Carrying && !s.heldAboveOnly() {
		s.seal(false) // a run that rests may do so for long
	}
	return nil
}

func (s *step) dropTail(n int) {
	// A copy, so that what is sealed can be forgotten.
	s.Log.Tail, s.Log.Bytes = slices.Clone(s.Log.Tail[n:]), 0
	for _, e := range s.Log.Tail {
		s.Log.Bytes += e.Size()
	}
}

// keepInbox puts what waits for a daemon that rests into the session's head, also
// where there is nothing to seal: it may rest for longer than Temporal keeps what it
// was told, and a seal comes with the next turn only.
func (s *step) keepInbox() {
	if w := s.Wait; w != nil && w.Saved && s.Log.Behind {
		s.sealRest(false)
	}
}

// alongMost is how much of the log, in bytes, may go along into a new execution
// without being stored.
const alongMost = 64 << 10

// carried hands the state on when what there was to store is stored. The little that
// came meanwhile goes along: a run to which more is said than the store can follow
// would go on in its old execution until the server ends that.
func (s *step) carried() {
	switch {
	case s.Log.Sealing > 0:
	case len(s.Log.Tail) > 0 && (!s.Log.Closed || s.Log.Bytes > alongMost):
		s.seal(false)
	default:
		s.Log.Closed = true
		s.do(CarryOver{})
	}
}

// Times between attempts to seal, where the store is down.
const (
	againFirst = 5 * time.Second
	againMost  = 5 * time.Minute
)

// sealFailed ends a run whose log can't be stored: it does not claim to be what
// nobody could go on with. Where the store may come back it is tried again, and
// until then the run says why it neither rests nor ends.
func (s *step) sealFailed(err *agent.Error) error {
	s.Log.Sealing, s.Log.Behind = 0, len(s.Inbox().Events) > 0
	if err.Retryable {
		s.Log.Fault, s.Log.Again = err, s.At.Add(min(againFirst<<min(s.Log.Tries, 10), againMost))
		s.Log.Tries++
		return nil
	}
	if s.Phase != Ending {
		s.fail(err)
		return nil
	}
	o := *s.Outcome
	o.Status, o.Reason, o.Error = agent.Failed, string(err.Code), s.stamped(err)
	s.Outcome = &o
	s.ended()
	return nil
}
