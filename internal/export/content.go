package export

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/store"
)

// Version is the version of an export. Any other is refused with
// [agent.CodeIncompatible].
const Version = 1

// Content is what an export has of a session, except its log.
type Content struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`  // the export's id, a UUIDv7
	Key     string    `json:"key"` // the id of the signing key
	Created time.Time `json:"created"`
	// Expires is the last moment at which it is accepted; zero for always.
	Expires time.Time `json:"expires,omitzero"`
	Session string    `json:"session"`
	Run     string    `json:"run"`
	Agent   string    `json:"agent"`
	// Head is the session's head, as a store that has nothing of the session needs it.
	// Updated is when the source wrote it.
	Head store.Head `json:"head"`
	// State is the machine's state of a suspended run, without messages of the log; empty
	// for a session whose run has ended.
	State json.RawMessage `json:"state,omitempty"`
	// Suspension is the open suspension, for people who read the file.
	Suspension *agent.Suspension `json:"suspension,omitempty"`
}

// Live returns the content of a suspended run, given its state. tail is the chunk of
// events that were not stored yet; nil if there are none. pack makes it, like
// store.Log.Pack. Errors are those of pack and of loop.State.CheckPortable, and
// [agent.CodeIncompatible].
func Live(raw json.RawMessage, pack func(prev, session, run string, events []agent.Event) (store.Packed, error)) (c Content, tail *store.Packed, err error) {
	s, err := stateOf(raw)
	if err != nil {
		return c, nil, err
	}
	c.Suspension = s.Suspension()
	// The state gets no tail, and no version: the target store has its own.
	l := loop.Log{Head: s.Log.Head, Seq: s.Log.Seq}
	if len(s.Log.Tail) > 0 {
		packed, err := pack(s.Log.Head, s.Session, s.Run, s.Log.Tail)
		if err != nil {
			return c, nil, err
		}
		tail, l.Head = &packed, packed.Digest
	}
	s.Log = l
	if c.State, err = json.Marshal(s); err != nil {
		return c, nil, agent.Errorf(agent.CodeInternal, "encoding the state of session %s: %w", s.Session, err)
	}
	if len(c.State) > maxState {
		return c, nil, agent.Errorf(agent.CodeTooLarge, "the state of session %s has %d bytes; an export takes at most %d: let its open calls be decided first", s.Session, len(c.State), maxState)
	}
	c.Head = store.Head{
		V: store.HeadVersion, Session: s.Session, Run: s.Run, Agent: s.Spec.Name, Status: agent.StatusSuspended,
		Digest: l.Head, Seq: l.Seq, StateVersion: s.Spec.StateVersion, Counters: s.Counters, Receipts: s.Receipts(true), Backlog: s.Backlog(), Updated: s.Suspensions.Since,
	}
	return c, tail, nil
}

// Rest returns the content of a session whose run has ended, given its head and its whole
// backlog.
func Rest(h store.Head, inbox remembered.Backlog) Content {
	h.Backlog = inbox
	// What belongs to the source's store, or to an earlier import, must not move along.
	h.Version, h.Fence, h.Imported, h.Import, h.BacklogBlobs, h.Blobs = 0, agent.Fence{}, "", "", nil, nil
	return Content{Head: h}
}

// Stamp sets the fields that both kinds have. lasts is how long the export is accepted;
// zero means always.
func (c Content) Stamp(key string, now time.Time, lasts time.Duration) Content {
	c.V, c.ID, c.Key, c.Created = Version, uuid.Must(uuid.NewV7()).String(), key, now.UTC().Truncate(time.Millisecond)
	c.Expires = time.Time{}
	if lasts > 0 {
		c.Expires = c.Created.Add(lasts)
	}
	c.Session, c.Run, c.Agent = c.Head.Session, c.Head.Run, c.Head.Agent
	return c
}

// Fresh returns [agent.CodeExpired] if the export has expired.
func (c Content) Fresh(now time.Time) error {
	if !c.Expires.IsZero() && now.After(c.Expires) {
		return agent.Errorf(agent.CodeExpired, "import refused: the export of session %s was good until %s; make a new one", c.Session, c.Expires.Format(time.RFC3339))
	}
	return nil
}

// Sequence returns the order of the chunks in a file. Messages and results that the log does not
// have yet are in the state, and with them the names of their files.
func (c Content) Sequence() *store.Sequence {
	var s struct {
		Messages loop.Messages
		Calls    loop.Calls
		Children loop.Children
	}
	if len(c.State) > 0 && json.Unmarshal(c.State, &s) != nil { // [Content.Machine] says what is wrong
		return store.NewSequence(c.Head.Digest)
	}
	return store.NewSequence(c.Head.Digest, slices.Concat(s.Messages.Files(), s.Calls.Files(), s.Children.Files())...)
}

// CheckAnswers returns why the run would refuse answers that come with its import; nil if
// it takes them all; by is who imports it. Other errors are those of [Content.Machine].
func (c Content) CheckAnswers(now time.Time, by string, answers []agent.AnswerTo) error {
	switch {
	case len(answers) == 0:
		return nil
	case len(c.State) == 0:
		return agent.Errorf(agent.CodeClosed, "import refused: the run in the export has ended, and waits for no answer; import it without one")
	}
	s, err := c.Machine()
	if err != nil {
		return err
	}
	return s.CheckAnswers(loop.Moment{At: now, Revision: loop.Revision}, by, answers)
}

// Machine returns the state of a suspended run. Errors are those of [Live].
func (c Content) Machine() (loop.State, error) {
	if len(c.State) > maxState {
		return loop.State{}, agent.Errorf(agent.CodeTooLarge, "the state of session %s in the export has %d bytes; at most %d are taken", c.Session, len(c.State), maxState)
	}
	return stateOf(c.State)
}

func stateOf(raw json.RawMessage) (s loop.State, err error) {
	if s, err = loop.ReadState(raw); err != nil {
		return s, err
	}
	if s.Phase == loop.RunEnded && s.End.Outcome == nil {
		return s, agent.Errorf(agent.CodeIncompatible, "the run's state can't be read by this build: it has ended and does not say how")
	}
	return s, s.CheckPortable()
}
