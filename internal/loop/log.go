package loop

import (
	"maps"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Log is the part that knows the end of the session's log: the name of the last sealed
// chunk, and the tail, whose events are not stored yet.
type Log struct {
	// Head names the last sealed chunk; empty at a session's beginning.
	Head string `json:"head,omitempty"`
	// Version is the version of the session's head in the store.
	Version int64 `json:"version,omitempty"`
	// Fence is the fence of the last write to the store that the machine decided. It orders
	// writes: the store refuses a lower one (docs/store.md). The workflow sets Fence.By.
	Fence agent.Fence `json:"fence,omitzero"`
	Seq   int64       `json:"seq"` // of the last event
	// Unstored means that the agent is stateless: the log is never stored, and all of it stays in Tail.
	Unstored bool          `json:"unstored,omitempty"`
	Tail     []agent.Event `json:"tail,omitempty"`
	// Bytes is how much the tail counts (see weight). SealingBytes is the part of Bytes that the
	// seal in flight stores.
	Bytes        int `json:"bytes,omitempty"`
	SealingBytes int `json:"sealing_bytes,omitempty"`
	// SealingSeq is the last event of the seal in flight; zero while there is none.
	SealingSeq int64 `json:"sealing_seq,omitempty"`
	// HeadBehind means that the session's head in the store lacks an event that waits for a
	// daemon.
	HeadBehind bool `json:"head_behind,omitempty"`
	// BacklogBlobs name the waiting events that the store already has.
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// FinalSealDone means that the seal before continue-as-new is done. A short tail may go
	// along with the state then.
	FinalSealDone bool `json:"final_seal_done,omitempty"`
	// SealError is why the last seal failed; nil if it did not. Tries counts the seals that
	// failed in a row, and RetryAt is when the next one may begin.
	SealError *agent.Error `json:"seal_error,omitempty"`
	Tries     int          `json:"tries,omitempty"`
	RetryAt   time.Time    `json:"retry_at,omitzero"`
}

// Sizes of the log's tail, in bytes.
const (
	sealAt = 256 << 10 // the tail is sealed while the run works
	waitAt = 1 << 20   // the run waits for the store before its next turn
)

// maxTailAlong is how many events may go along into a new execution without being stored.
const maxTailAlong = 32

// Times between seals while the store is down.
const (
	sealRetryFirst = 5 * time.Second
	sealRetryMax   = 5 * time.Minute
)

// maxSealTries is how often the store may fail in a row: for a week or more. Each seal that fails makes
// Temporal's history longer, which can't begin anew before the log is stored, and Temporal terminates a
// run at 51,200 events or 50 MB. So a history that is nearly that long ends the attempts too, after the
// first hour.
const (
	maxSealTries = 2000
	fewSealTries = 20
)

// setHead sets where the session's log ends in the store.
func (l *Log) setHead(head string, seq, version int64) { l.Head, l.Seq, l.Version = head, seq, version }

// setFence sets the fence from which the run's writes continue.
func (l *Log) setFence(f agent.Fence) { l.Fence = f }

// nextFence numbers the next write to the store. setChain records the chain of a write that
// the store took; it never falls.
func (l *Log) nextFence()           { l.Fence.N++ }
func (l *Log) setChain(chain int64) { l.Fence.Chain = max(l.Fence.Chain, chain) }

// append adds an event to the tail, with its number.
func (l *Log) append(e agent.Event, bytes int) {
	l.Seq = e.Seq
	l.Tail = appendEvent(l.Tail, e)
	l.Bytes += bytes
}

// appendEvent adds an event to a tail. Several states may share the tail's array, since Step
// does not change its argument. So the event goes into a spare slot only if no other state
// has used it: an unused slot has no Seq. Copying each time is quadratic.
func appendEvent(tail []agent.Event, e agent.Event) []agent.Event {
	if n := len(tail); n < cap(tail) && tail[:n+1][n].Seq != 0 {
		tail = slices.Clip(tail) // another state continued from here
	}
	if len(tail) == cap(tail) {
		tail = slices.Grow(tail, max(8, len(tail))) // append itself copies a long tail more often
	}
	return append(tail, e)
}

// setUnstored says whether the log is never stored.
func (l *Log) setUnstored(never bool) { l.Unstored = never }

// toStore returns the events that the store still has to get. All seals ask here whether one is due.
func (l Log) toStore() []agent.Event {
	if l.Unstored {
		return nil
	}
	return l.Tail
}

// storedTo returns the number of the last event that needs no seal.
func (l Log) storedTo() int64 { return l.Seq - int64(len(l.toStore())) }

// hasUnsealed reports whether an event is not stored yet.
func (l Log) hasUnsealed() bool { return len(l.toStore()) > 0 }

// needsSeal reports whether the tail is so long that it is sealed while the run works.
func (l Log) needsSeal() bool { return l.hasUnsealed() && l.Bytes >= sealAt }

// blocksTurns reports whether the next turn has to wait for the store.
func (l Log) blocksTurns() bool { return l.Bytes > waitAt && (l.SealingSeq > 0 || l.SealError != nil) }

// canSeal reports whether a seal may begin. Each chunk names the one before it, so seals
// come one at a time. After a failure the next one waits.
func (l Log) canSeal() bool { return l.SealingSeq == 0 && l.RetryAt.IsZero() }

// mustSealToContinue reports whether the tail has to be stored before continue-as-new. After
// one seal a short tail may go along instead. If events come faster than the store takes
// them, the run would otherwise never continue as new.
func (l Log) mustSealToContinue() bool {
	return l.hasUnsealed() && (!l.FinalSealDone || !l.tailFitsAlong())
}

// tailFitsAlong reports whether the tail may go along into a new execution: a few short
// events.
func (l Log) tailFitsAlong() bool {
	if len(l.Tail) > maxTailAlong {
		return false
	}
	size := 0
	for _, e := range l.Tail {
		n, short := lineJSONLen(e)
		if size += n; !short || size > alongShare {
			return false
		}
	}
	return true
}

// lineJSONLen returns how long an event is in JSON at most. short is false for a kind of
// event that may be long.
func lineJSONLen(e agent.Event) (n int, short bool) {
	n = lineFrame
	switch {
	case e.Hold != nil:
		n += jsonLen(e.Hold.By) + jsonLen(e.Hold.RemovedBy) + jsonLen(e.Hold.Reason) + jsonLen(e.Hold.Session)
	case e.Answer != nil:
		n += jsonLen(e.Answer.Request) + jsonLen(e.Answer.Decision) + jsonLen(e.Answer.By) + jsonLen(e.Answer.Approver) + jsonLen(e.Answer.Reason) + jsonLen(e.Answer.Text)
	case e.Call != nil:
		n += jsonLen(e.Call.Tool) + jsonLen(e.Call.Step)
	case e.Child != nil:
		n += jsonLen(e.Child.Session) + jsonLen(e.Child.Agent) + jsonLen(e.Child.Step) + maxName
		if e.Child.Workspace != nil {
			n += workspaceFrame
		}
	case e.Resumed != nil:
		n += jsonLen(e.Resumed.By) + jsonLen(e.Resumed.Event)
	case e.Refusal != nil:
		n += maxRefusal + 2*maxName + jsonLen(e.Refusal.By) + jsonLen(e.Refusal.Error.Session)
	case e.Suspension != nil && len(e.Suspension.Requests) == 0:
		n += maxReason
		for _, h := range e.Suspension.Holds {
			n += lineFrame + jsonLen(h.By) + jsonLen(h.Reason) + jsonLen(h.Session)
		}
		if c := e.Suspension.Conditions; c != nil {
			n += conditionsJSONLen(*c)
		}
		for _, w := range e.Suspension.Waits {
			n += jsonLen(w.Step) + conditionsJSONLen(w.Conditions)
		}
		if f := e.Suspension.OwnerFailed; f != nil {
			n += verbFrame + jsonLen(f.Suspension) + jsonLen(f.Owner) + jsonLen(f.Code) + jsonLen(f.Reason)
		}
	case e.Type == agent.EventLimitExtended:
	default:
		return 0, false
	}
	return n, true
}

// startSeal begins a seal of the whole tail.
func (l *Log) startSeal() {
	// HeadBehind is cleared now and not at the end: an event that arrives during the seal
	// sets it again.
	l.SealingSeq, l.SealingBytes, l.HeadBehind = l.Seq, l.Bytes, false
	l.nextFence()
}

// sealed drops the stored events from the tail. carrying means that the run continues as
// new.
func (l *Log) sealed(in Sealed, carrying bool) {
	l.Head, l.Version, l.SealingSeq, l.SealError, l.Tries, l.FinalSealDone = in.Head, in.Version, 0, nil, 0, carrying
	l.setChain(in.Chain)
	l.BacklogBlobs = in.BacklogBlobs
	// Events that were recorded during the seal stay.
	rest := slices.IndexFunc(l.Tail, func(e agent.Event) bool { return e.Seq > in.Seq })
	if rest < 0 {
		rest = len(l.Tail)
	}
	// Clone, so that the array with the stored events can be freed.
	l.Tail, l.Bytes, l.SealingBytes = slices.Clone(l.Tail[rest:]), l.Bytes-l.SealingBytes, 0
}

// cancelSeal ends a seal that failed. It forgets BacklogBlobs, so that the next seal sends
// every waiting event: the store may have lost some.
func (l *Log) cancelSeal() { l.SealingSeq, l.SealingBytes, l.BacklogBlobs = 0, 0, nil }

// retry sets when the next seal may begin: after 5 seconds, then twice as long each time, up
// to 5 minutes.
func (l *Log) retry(err *agent.Error, at time.Time) {
	fault := *err
	// Bounded, since the state keeps it. Err is not in the state's JSON.
	fault.Message, fault.Path, fault.Err = fit(fault.Message, maxReason), fit(fault.Path, maxName), nil
	l.SealError, l.RetryAt = &fault, at.Add(min(sealRetryFirst<<min(l.Tries, 10), sealRetryMax))
	l.Tries++
}

// losesWorkers reports whether the last seal failed with worker_lost. Listings find the run
// by that.
func (l Log) losesWorkers() bool {
	return l.SealError != nil && l.SealError.Code == agent.CodeWorkerLost
}

// tick lets the next seal begin if its time has come.
func (l *Log) tick(at time.Time) {
	if reached(l.RetryAt, at) {
		l.RetryAt = time.Time{}
	}
}

// setHeadBehind sets whether the session's head lacks an event that waits for a daemon.
func (l *Log) setHeadBehind(behind bool) { l.HeadBehind = behind }

// takeTailAlong lets the tail go along into a new execution. leaveTail ends that there.
func (l *Log) takeTailAlong() { l.FinalSealDone = true }
func (l *Log) leaveTail()     { l.FinalSealDone = false }

// record appends an event to the log.
func (s *step) record(e agent.Event) { s.recordSized(e, weight(e)) }

// recordSized appends an event that counts a number of bytes (see weight).
func (s *step) recordSized(e agent.Event, bytes int) {
	e.Seq, e.Time, e.Turn = s.Log.Seq+1, s.now(), s.Turn.N
	if e.Outcome != nil {
		e.Outcome.Seq, e.Outcome.Checkpoint = e.Seq, agent.CheckpointID(s.Session, e.Seq)
	}
	s.TraceSegment = s.TraceSegment.Next(s.Run, e)
	s.Log.append(e, bytes)
	if s.reports() {
		s.RunReport.note(e)
	}
}

// recordIfBegun appends an event, unless the run has no part in the log yet. beginRun
// records the holds that came before.
func (s *step) recordIfBegun(e agent.Event) {
	if !s.HasNoLog() {
		s.record(e)
	}
}

// recordMessage appends a message. bytes counts the text in it that a tool, model or person
// wrote.
func (s *step) recordMessage(m agent.Message, bytes int) {
	s.noteAsked(m)
	s.Budget.addBytes(bytes)
	if len(m.Files()) > 0 { // sealed soon: until a chunk names a file, a collection of the store may take it for unneeded
		bytes += sealAt
	}
	s.recordSized(agent.Event{Type: agent.EventMessage, Message: &m}, frame+bytes)
}

// recordNoteSized appends a message to the model. bytes counts the text in it that an author wrote.
func (s *step) recordNoteSized(why agent.Note, text string, bytes int) {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = why
	s.recordMessage(m, bytes)
}

// recordOwnText appends a message to the model in words that the agent may have replaced.
func (s *step) recordOwnText(why agent.Note, text string) {
	s.recordNoteSized(why, text, s.noteBytes())
}

// noteBytes returns what words count that the agent may have replaced ([agent.Definition.Texts] and
// [agent.Definition.Nudge]): the longest of its own. The runtime's words don't count, as they may change
// in a later build, and a replay must decide the same.
func (s *step) noteBytes() int {
	most := len(s.Spec.Nudge)
	own := slices.Collect(maps.Values(s.Spec.Texts)) //workflowcheck:ignore the longest has no order
	for _, text := range own {
		most = max(most, len(text))
	}
	return most
}

// alone reports whether the run completed by itself with nothing in flight. Only then can
// the final seal be a local activity. A signal that arrives meanwhile fails the closing
// task, and an update in that task would be answered with a failure.
func (s *step) alone() bool {
	return s.End.Outcome.Status == agent.StatusCompleted && s.verb == "" && !s.Children.anyNotEnded()
}

// sealed takes the result of a seal. The result of an earlier seal is refused.
func (s *step) sealed(in Sealed) error {
	if in.Seq != s.Log.SealingSeq {
		return s.refuse("no seal up to event %d is under way", in.Seq)
	}
	// Log.sealed clears the error, and listings still show it.
	lost := s.Log.losesWorkers()
	s.Log.sealed(in, s.Phase == RunContinuing)
	switch {
	case lost && s.isAtRest():
		s.changed = true
	case lost:
		s.do(Publish{})
	}
	// Events came during the seal. Store them now: the run may stay suspended for long.
	if s.Log.hasUnsealed() && s.Suspensions.atRest() && s.maySeal() && !s.onlyHeldByAncestor() {
		s.seal(false)
	}
	return nil
}

// sealFailed takes the failure of a seal. If the store may come back, the seal is tried
// again. Else, and if it has failed too often, the run fails: it must not report a suspension that the
// store does not have. If the run has ended already, its end stands, and the outcome says that it is not
// stored.
func (s *step) sealFailed(err *agent.Error) error {
	s.Log.cancelSeal()
	// startSeal cleared it, and nothing was stored.
	s.Log.setHeadBehind(len(s.Backlog().Events) > 0)
	// A seal may be repeated: the store compares fences. So it is tried again also after
	// worker_lost, ever more rarely, and not for ever.
	again := err.Retryable || err.Code == agent.CodeWorkerLost
	if again && !s.mayTrySealAgain() {
		again, err = false, agent.Errorf(agent.CodeStoreUnavailable, "the log was not stored in %d attempts in a row; what it has not stored may be lost: mend the store, and start the session again. The last attempt: %w", s.Log.Tries+1, err)
	}
	switch {
	case again:
		was := s.Log.losesWorkers()
		s.Log.retry(err, s.At)
		if s.Log.losesWorkers() != was {
			s.do(Publish{})
		}
	// fail tries one more seal, with the end in it. If that one fails too, the case below
	// follows.
	case s.Phase != RunEnding:
		s.fail(err)
	default:
		s.End.setUnsaved(err)
		s.ended()
	}
	return nil
}

// mayTrySealAgain reports whether the store may fail once more.
func (s *step) mayTrySealAgain() bool {
	return s.Log.Tries < fewSealTries || s.Log.Tries < maxSealTries && !s.NearHistoryLimit
}

// continueAsNew ends this execution. The next one gets the state.
func (s *step) continueAsNew() {
	s.Log.takeTailAlong()
	s.continuedAsNew = true
	s.do(ContinueAsNew{})
}
