package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Log is the part that keeps the session's log as the run sees it: a chain of sealed
// chunks, of which it knows the last, and the events that are not sealed yet.
type Log struct {
	// Head names the last sealed chunk; empty at a session's beginning.
	Head string `json:"head,omitempty"`
	// Version is that of the session's head in the store.
	Version int64 `json:"version,omitempty"`
	// Fence is that of the last write outside of Temporal that the run has decided; who
	// performs it names the decision.
	Fence agent.Fence   `json:"fence,omitzero"`
	Seq   int64         `json:"seq"` // of the last event
	Tail  []agent.Event `json:"tail,omitempty"`
	// Bytes is what the tail counts (see weight), and Sealed how much of that is being sealed.
	Bytes  int `json:"bytes,omitempty"`
	Sealed int `json:"sealed,omitempty"`
	// Sealing is the number of the last event that is being sealed; zero while none is.
	Sealing int64 `json:"sealing,omitempty"`
	// HeadBehind means that the session's head lacks something that waits for a daemon.
	HeadBehind bool `json:"head_behind,omitempty"`
	// BacklogBlobs are the events that wait and that the store has.
	BacklogBlobs []remembered.BacklogBlob `json:"backlog_blobs,omitempty"`
	// FinalSealDone means that the carry-over in progress has had its seal: a light tail may go along.
	FinalSealDone bool `json:"final_seal_done,omitempty"`
	// SealError is why the last attempt to seal failed, Tries how many did in a row, and
	// Again when the next is made.
	SealError *agent.Error `json:"seal_error,omitempty"`
	Tries     int          `json:"tries,omitempty"`
	RetryAt   time.Time    `json:"retry_at,omitzero"`
}

// Sizes of the log's tail, in bytes.
const (
	sealAt = 256 << 10 // past it the tail is sealed while the run goes on
	waitAt = 1 << 20   // past it the run waits for the store
)

// maxTailAlong is how many events may go along into a new execution without being stored.
const maxTailAlong = 32

// Times between attempts to seal, where the store is down.
const (
	sealRetryFirst = 5 * time.Second
	sealRetryMax   = 5 * time.Minute
)

// setHead sets where the session's log ends in the store.
func (l *Log) setHead(head string, seq, version int64) { l.Head, l.Seq, l.Version = head, seq, version }

// setFence takes over the fence from which the run's writes go on.
func (l *Log) setFence(f agent.Fence) { l.Fence = f }

// nextFence numbers a write outside of Temporal, and written takes the chain that was stored.
func (l *Log) nextFence()           { l.Fence.N++ }
func (l *Log) setChain(chain int64) { l.Fence.Chain = max(l.Fence.Chain, chain) }

// append numbers an event and puts it behind the tail.
func (l *Log) append(e agent.Event, bytes int) {
	l.Seq = e.Seq
	l.Tail = appendEvent(l.Tail, e)
	l.Bytes += bytes
}

// appendEvent puts an event at the end of a tail. The tail is only ever appended to, and
// several states may share its array: the event goes into a spare slot that none of them
// has taken, which has no number. Copying each time is quadratic.
func appendEvent(tail []agent.Event, e agent.Event) []agent.Event {
	if n := len(tail); n < cap(tail) && tail[:n+1][n].Seq != 0 {
		tail = slices.Clip(tail) // another state went on from here
	}
	return append(tail, e)
}

// storedTo is the last event that is in the store.
func (l Log) storedTo() int64 { return l.Seq - int64(len(l.Tail)) }

// hasUnsealed reports whether something is not sealed.
func (l Log) hasUnsealed() bool { return len(l.Tail) > 0 }

// needsSeal reports whether the tail is to be sealed while the run goes on.
func (l Log) needsSeal() bool { return l.Bytes >= sealAt }

// blocksTurns reports whether the run has to wait for the store.
func (l Log) blocksTurns() bool { return l.Bytes > waitAt && (l.Sealing > 0 || l.SealError != nil) }

// canSeal reports whether a seal may begin: chunks are a chain, so there is one at a time,
// and a store that has failed is given time.
func (l Log) canSeal() bool { return l.Sealing == 0 && l.RetryAt.IsZero() }

// mustSealToContinue reports whether the log has to be sealed before the state is carried over.
// After one seal a light tail goes along instead: a run to which more is said than the store
// can follow would never leave its execution, until the server ends that.
func (l Log) mustSealToContinue() bool {
	return l.hasUnsealed() && (!l.FinalSealDone || !l.tailFitsAlong())
}

// tailFitsAlong reports whether the tail may go along into a new execution: a few short events.
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

// lineJSONLen is the weight of an event that has few texts; of others it is not known.
func lineJSONLen(e agent.Event) (n int, short bool) {
	n = lineFrame
	switch {
	case e.Hold != nil:
		n += jsonLen(e.Hold.By) + jsonLen(e.Hold.Reason) + jsonLen(e.Hold.Session)
	case e.Answer != nil:
		n += jsonLen(e.Answer.Request) + jsonLen(e.Answer.By) + jsonLen(e.Answer.Approver) + jsonLen(e.Answer.Reason)
	case e.Call != nil:
		n += jsonLen(e.Call.Tool)
	case e.Child != nil:
		n += jsonLen(e.Child.Session) + jsonLen(e.Child.Agent) + maxName
	case e.Resumed != nil:
		n += jsonLen(e.Resumed.By) + jsonLen(e.Resumed.Event)
	case e.Refusal != nil:
		n += maxRefusal + 2*maxName + jsonLen(e.Refusal.Error.Session)
	case e.Suspension != nil && len(e.Suspension.Requests) == 0:
		n += maxReason
		for _, h := range e.Suspension.Holds {
			n += lineFrame + jsonLen(h.By) + jsonLen(h.Reason) + jsonLen(h.Session)
		}
		if c := e.Suspension.Conditions; c != nil {
			n += conditionsJSONLen(*c)
		}
	case e.Type == agent.EventLimitExtended:
	default:
		return 0, false
	}
	return n, true
}

// startSeal begins a seal of all that there is.
func (l *Log) startSeal() {
	l.Sealing, l.Sealed, l.HeadBehind = l.Seq, l.Bytes, false
	l.nextFence()
}

// sealed drops from the tail what is stored.
func (l *Log) sealed(in Sealed, carrying bool) {
	l.Head, l.Version, l.Sealing, l.SealError, l.Tries, l.FinalSealDone = in.Head, in.Version, 0, nil, 0, carrying
	l.setChain(in.Chain)
	l.BacklogBlobs = in.BacklogBlobs
	rest := slices.IndexFunc(l.Tail, func(e agent.Event) bool { return e.Seq > in.Seq })
	if rest < 0 {
		rest = len(l.Tail)
	}
	// A copy, so that what is sealed can be forgotten.
	l.Tail, l.Bytes, l.Sealed = slices.Clone(l.Tail[rest:]), l.Bytes-l.Sealed, 0
}

// cancelSeal gives up a seal. The next one says all that waits: the store may have lost some.
func (l *Log) cancelSeal() { l.Sealing, l.Sealed, l.BacklogBlobs = 0, 0, nil }

// retry makes the next attempt to seal later, ever more seldom.
func (l *Log) retry(err *agent.Error, at time.Time) {
	fault := *err
	fault.Message, fault.Path, fault.Err = fit(fault.Message, maxReason), fit(fault.Path, maxName), nil
	l.SealError, l.RetryAt = &fault, at.Add(min(sealRetryFirst<<min(l.Tries, 10), sealRetryMax))
	l.Tries++
}

// losesWorkers reports whether the last attempt to seal has lost as many workers as a step
// may: listings find the run by that, whatever else it does.
func (l Log) losesWorkers() bool {
	return l.SealError != nil && l.SealError.Code == agent.CodeWorkerLost
}

// tick lets a seal begin again when its time has come.
func (l *Log) tick(at time.Time) {
	if reached(l.RetryAt, at) {
		l.RetryAt = time.Time{}
	}
}

// setHeadBehind remembers that the session's head lacks something that waits for a daemon.
func (l *Log) setHeadBehind(behind bool) { l.HeadBehind = behind }

// takeTailAlong lets the open tail go along into a new execution; stays takes that back.
func (l *Log) takeTailAlong() { l.FinalSealDone = true }
func (l *Log) leaveTail()     { l.FinalSealDone = false }

// record appends an event to the log.
func (s *step) record(e agent.Event) { s.recordSized(e, weight(e)) }

// recordSized appends an event that counts so many bytes.
func (s *step) recordSized(e agent.Event, bytes int) {
	e.Seq, e.Time, e.Turn = s.Log.Seq+1, s.now(), s.Turn.N
	if e.Outcome != nil {
		e.Outcome.Seq = e.Seq
	}
	s.TraceSegment = s.TraceSegment.Next(s.Run, e)
	s.Log.append(e, bytes)
}

// recordIfBegun records an event of a run that has begun its part of the log; what came before
// that is told there.
func (s *step) recordIfBegun(e agent.Event) {
	if !s.HasNoLog() {
		s.record(e)
	}
}

// recordMessage appends a message to the log, of which so many bytes are somebody's.
func (s *step) recordMessage(m agent.Message, bytes int) {
	s.Budget.addBytes(bytes)
	s.recordSized(agent.Event{Type: agent.EventMessage, Message: &m}, frame+bytes)
}

// recordNote says something to the model in the runtime's name.
func (s *step) recordNote(why agent.Note, text string) {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = why
	s.recordMessage(m, 0)
}

// alone reports whether the run completed by itself with nothing in flight. Only then the
// final seal can be a local activity: a signal that arrives meanwhile fails the closing
// task, and whoever said an update in it would be told of a failure.
func (s *step) alone() bool {
	return s.End.Outcome.Status == agent.StatusCompleted && s.verb == "" && !s.Children.anyNotEnded()
}

// sealed takes what was stored.
func (s *step) sealed(in Sealed) error {
	if in.Seq != s.Log.Sealing {
		return s.refuse("no seal up to event %d is under way", in.Seq)
	}
	lost := s.Log.losesWorkers()
	s.Log.sealed(in, s.Phase == RunContinuing)
	switch {
	case lost && s.isAtRest():
		s.changed = true
	case lost:
		s.do(Publish{})
	}
	if s.Log.hasUnsealed() && s.Suspensions.atRest() && s.maySeal() && !s.onlyHeldByAncestor() {
		s.seal(false) // a run that rests may do so for long
	}
	return nil
}

// sealFailed ends a run whose log can't be stored: it does not claim to be what nobody
// could go on with. Where the store may come back it is tried again, and until then the
// run says why it neither rests nor ends.
func (s *step) sealFailed(err *agent.Error) error {
	s.Log.cancelSeal()
	s.Log.setHeadBehind(len(s.Backlog().Events) > 0)
	switch {
	case err.Retryable, err.Code == agent.CodeWorkerLost: // also what a seal has lost workers over is tried again
		was := s.Log.losesWorkers()
		s.Log.retry(err, s.At)
		if s.Log.losesWorkers() != was {
			s.do(Publish{})
		}
	case s.Phase != RunEnding:
		s.fail(err)
	default:
		s.End.setFailure(s.withRun(err))
		s.ended()
	}
	return nil
}

// continueAsNew ends this execution; the next one gets the state.
func (s *step) continueAsNew() {
	s.Log.takeTailAlong()
	s.continuedAsNew = true
	s.do(ContinueAsNew{})
}
