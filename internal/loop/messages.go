package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Messages is the part that keeps the messages and events that the model has not received.
type Messages struct {
	// Pending messages go to the model at its next turn or, with mode queue, when it would
	// be done.
	Pending     []PendingMessage `json:"pending,omitempty"`
	PendingSize int              `json:"pending_size,omitempty"`
	// Events wait for a daemon, which takes one at a time.
	Events    []agent.EmitCommand `json:"events,omitempty"`
	EventSize int                 `json:"event_size,omitempty"`
	// Receipts remember the last messages and events of the session that came with an id.
	Receipts    []remembered.Receipt `json:"receipts,omitempty"`
	ReceiptSize int                  `json:"receipt_size,omitempty"`
}

// PendingMessage is a message that the model has not received yet.
type PendingMessage struct {
	Message agent.Message  `json:"message"`
	Mode    agent.SendMode `json:"mode"`
	// Bytes is what the message counts in the log (see weight). Size is its length in JSON
	// at most.
	Bytes int `json:"bytes,omitempty"`
	Size  int `json:"size,omitempty"`
}

// maxPending is how many messages may wait.
const maxPending = 100

// A session remembers the ids of this many messages. A daemon's session remembers more
// events: after a stop their senders try again.
const (
	maxReceipts       = 50
	maxDaemonReceipts = 1000
)

// clone clips the slices, so that an append copies them.
func (m Messages) clone() Messages {
	m.Pending, m.Events, m.Receipts = slices.Clip(m.Pending), slices.Clip(m.Events), slices.Clip(m.Receipts)
	return m
}

// messageJSONLen and eventJSONLen return how long a waiting message or event is in JSON at
// most. An event becomes a message.
func messageJSONLen(m agent.Message) int {
	n := messageFrame + jsonLen(m.ID) + jsonLen(m.By)
	for _, p := range m.Parts {
		n += partFrame + jsonLen(p.Text)
	}
	return n
}

func eventJSONLen(e agent.EmitCommand) int {
	return messageFrame + partFrame + jsonLen(e.ID) + jsonLen(e.By) + jsonLen(e.Topic) + rawJSONLen(e.Payload)
}

func receiptJSONLen(p remembered.Receipt) int {
	return receiptFrame + digestFrame + jsonLen(p.ID) + jsonLen(p.Run)
}

// receipt returns the receipt of the message or event that came with an id. run is this run.
func (m Messages) receipt(id, run string) (p remembered.Receipt, ok bool) {
	if id == "" {
		return p, false
	}
	if i := slices.IndexFunc(m.Receipts, func(p remembered.Receipt) bool { return p.ID == id }); i >= 0 {
		return m.Receipts[i], true
	}
	if i := slices.IndexFunc(m.Events, func(e agent.EmitCommand) bool { return e.ID == id }); i >= 0 {
		return remembered.Receipt{ID: id, Run: run, Digest: remembered.EventDigest(m.Events[i])}, true // the event waits in this run
	}
	return p, false
}

// addReceipt remembers a message or event, if it has an id.
func (m *Messages) addReceipt(p remembered.Receipt, most int) {
	if p.ID == "" {
		return
	}
	m.Receipts, m.ReceiptSize = append(m.Receipts, p), m.ReceiptSize+receiptJSONLen(p)
	m.forget(most)
}

// forget drops the oldest receipts until at most that many are left, and they fit into
// receiptShare.
func (m *Messages) forget(most int) {
	n := 0
	for ; len(m.Receipts)-n > most || m.ReceiptSize > receiptShare; n++ {
		m.ReceiptSize -= receiptJSONLen(m.Receipts[n])
	}
	if n > 0 {
		m.Receipts = slices.Clone(m.Receipts[n:])
	}
}

func (m *Messages) add(p PendingMessage) {
	m.Pending, m.PendingSize = append(m.Pending, p), m.PendingSize+p.Size
}

// addFirst puts a message before all that wait.
func (m *Messages) addFirst(p PendingMessage) {
	m.Pending, m.PendingSize = slices.Insert(m.Pending, 0, p), m.PendingSize+p.Size
}

// take removes and returns the messages that the model gets now. done means that the model
// would be done: then queued messages go to it, too.
func (m *Messages) take(done bool) (now []PendingMessage) {
	var kept []PendingMessage
	for _, p := range m.Pending {
		if p.Mode == agent.SendQueue && !done {
			kept = append(kept, p)
			continue
		}
		now = append(now, p)
		m.PendingSize -= p.Size
	}
	m.Pending = kept
	return now
}

// steerAll makes queued messages due at the next turn: the daemon was done.
func (m *Messages) steerAll() {
	m.Pending = slices.Clone(m.Pending)
	for i := range m.Pending {
		m.Pending[i].Mode = agent.SendSteer
	}
}

func (m *Messages) queue(e agent.EmitCommand) {
	m.Events, m.EventSize = append(m.Events, e), m.EventSize+eventJSONLen(e)
}

// takeEvent removes and returns the waiting event at an index.
func (m *Messages) takeEvent(i int) agent.EmitCommand {
	e := m.Events[i]
	m.Events = slices.Concat(m.Events[:i], m.Events[i+1:]) // nil if none is left
	m.EventSize -= eventJSONLen(e)
	return e
}

// recount computes all sizes again, after an import.
func (m *Messages) recount() {
	m.Pending, m.PendingSize = slices.Clone(m.Pending), 0
	for i, p := range m.Pending {
		m.Pending[i].Bytes, m.Pending[i].Size = p.Message.Size(), messageJSONLen(p.Message)
		m.PendingSize += m.Pending[i].Size
	}
	m.inherit(m.Receipts, m.Events)
}

// inherit takes over the receipts and events that the session's earlier runs left.
func (m *Messages) inherit(posts []remembered.Receipt, events []agent.EmitCommand) {
	m.Receipts, m.Events, m.ReceiptSize, m.EventSize = posts, events, 0, 0
	for _, p := range posts {
		m.ReceiptSize += receiptJSONLen(p)
	}
	for _, e := range events {
		m.EventSize += eventJSONLen(e)
	}
	m.forget(len(posts))
}

// Receipts returns the receipts that a seal stores in the session's head. A daemon has many.
// Each seal's input is in the history, so only the final seal has them all.
func (s *State) Receipts(final bool) []remembered.Receipt {
	posts := s.Messages.Receipts
	if n := len(posts) - maxReceipts; n > 0 && !final {
		return posts[n:]
	}
	return posts
}

// Backlog returns what the session's next run takes over if this run ends as it stands. An
// event that met a daemon's park still counts as waiting: until the park ends, it is not in
// the log.
func (s *State) Backlog() remembered.Backlog {
	in := remembered.Backlog{Unfinished: s.Daemon.HasWork, Events: s.Messages.Events}
	if e := s.Park.event(); e != nil && s.daemon() != nil {
		in.Events = slices.Concat([]agent.EmitCommand{e.order()}, s.Messages.Events)
	}
	return in
}

// unstoredBacklog returns the backlog for a seal. Each seal's input is in the history, so
// events that the store has are only named.
func (s *State) unstoredBacklog() (in remembered.Backlog, kept []remembered.BacklogBlob) {
	whole := s.Backlog()
	blobs := map[string]string{}
	for _, k := range s.Log.BacklogBlobs {
		for _, key := range k.Keys {
			blobs[key] = k.Blob
		}
	}
	in.Unfinished = whole.Unfinished
	for _, e := range whole.Events {
		key := remembered.EventKey(e)
		switch blob, ok := blobs[key]; {
		case !ok:
			in.Events = append(in.Events, e)
		case len(in.Events) > 0: // named events come first, so this one would lose its place
			return whole, nil
		case len(kept) > 0 && kept[len(kept)-1].Blob == blob:
			last := &kept[len(kept)-1]
			last.Keys = append(last.Keys, key)
		default:
			kept = append(kept, remembered.BacklogBlob{Blob: blob, Keys: []string{key}})
		}
	}
	return in, kept
}

// isRepeat reports whether the session has received the message or event already. The state
// then stays as it is. The error refuses another payload under the same id.
func (s *step) isRepeat(id, sum string) (bool, error) {
	p, ok := s.Messages.receipt(id, s.Run)
	if !ok {
		return false, nil
	}
	s.effect = agent.EffectAlready
	return true, p.Check(sum)
}

// rememberReceipt remembers the id of a message or event.
func (s *step) rememberReceipt(id, sum string) {
	most := maxReceipts
	if s.daemon() != nil || len(s.Messages.Events) > 0 { // these events wait for the session's next daemon
		most = maxDaemonReceipts
	}
	s.Messages.addReceipt(remembered.Receipt{ID: id, Run: s.Run, Digest: sum}, most)
}

// send accepts a message for the model.
func (s *step) send(o agent.SendCommand, id string) error {
	m := agent.Message{ID: id, Role: agent.RoleUser, By: o.By}
	if o.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: o.Text})
	}
	m.Parts = append(m.Parts, o.Parts...)
	// First: a message that was accepted once is not refused when it comes again.
	if again, err := s.isRepeat(id, remembered.MessageDigest(m)); again {
		return err
	}
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.CodeStale, "", "the run is being stopped; send when it has ended, to begin the next one")
	case len(s.Messages.Pending) >= maxPending || !s.messageFits(m):
		return s.checkRoom("")
	}
	mode := o.Mode
	if mode == "" {
		mode = agent.SendSteer
	}
	s.Messages.add(PendingMessage{Message: m, Mode: mode, Bytes: m.Size(), Size: messageJSONLen(m)})
	s.rememberReceipt(id, remembered.MessageDigest(m))
	if mode == agent.SendInterrupt {
		s.cancelInFlight(0, "a message came in between")
	}
	return nil
}

// checkRoom refuses a message for which the state has no space.
func (s *step) checkRoom(path string) error {
	return s.refuseAs(agent.CodeTooLarge, path, "%d messages wait already that the model has not got; at most %d may, of %d bytes in all, and fewer while people are asked about long calls", len(s.Messages.Pending), maxPending, pendingShare)
}

// emit accepts an event: one that a park waits for, or one for a daemon.
func (s *step) emit(o agent.EmitCommand, in CommandReceived) error {
	// Compared before any other check: an event that is refused uses the task's budget too.
	// Else a flood of events that do not match would cost nothing (decision 0036).
	b := s.matchBudget()
	before := b.Spent()
	parked := s.Park.waitsFor(o, b)
	if s.daemon() != nil {
		if again, err := s.isRepeat(in.ID, remembered.EventDigest(o)); again {
			return err
		}
	}
	switch {
	case parked && eventJSONLen(o) > s.space():
		return s.refuseAs(agent.CodeQueueFull, "", "too much waits for the run already; emit it again when less does")
	// A daemon's event is part of its backlog until the park ends, so the head has to learn
	// of it.
	case parked && s.daemon() != nil:
		s.rememberReceipt(in.ID, remembered.EventDigest(o))
		o.ID = in.ID
		s.conditionMet(conditionMetBy(o))
		s.Log.setHeadBehind(true)
		return nil
	case parked:
		s.conditionMet(MetCondition{Topic: o.Topic, Payload: o.Payload, By: o.By})
		return nil
	case s.hearsTopic(o.Topic):
		return s.queue(o, in.ID)
	// The budget ran out before the comparison, so nobody knows whether the event matches.
	case b.Exceeded() && s.Park != nil && s.Park.Met == nil && slices.Contains(s.Park.topics(), o.Topic):
		return s.refuseUncompared(before)
	}
	return s.refuseUnawaited(o)
}

// refuseUncompared refuses an event that was not compared for want of budget. If it had the
// whole budget, it will never fit. Else another task has a new budget.
func (s *step) refuseUncompared(before int) error {
	if before == 0 {
		return s.refuseAs(agent.CodeStale, "payload", "the payload has too many parts to be compared with what the run waits for; emit a shorter one")
	}
	err := s.refuseAs(agent.CodeQueueFull, "", "more came at once than is compared with what the run waits for; emit it again")
	err.Retryable = true
	return err
}

// refuseUnawaited refuses an event that the run does not take. It says whether the topic or
// the payload is the reason.
func (s *step) refuseUnawaited(o agent.EmitCommand) error {
	topics := slices.Concat(s.Park.topics(), s.topics())
	switch known := slices.Contains(topics, o.Topic); {
	case known && s.Park.Met != nil:
		return s.refuseAs(agent.CodeStale, "topic", "what the run waits for has come already")
	case known:
		return s.refuseAs(agent.CodeStale, "payload", "the run waits for an event of topic %s with another payload: this one does not match what its conditions ask for", o.Topic)
	case len(topics) > 0:
		return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s; it waits for %s", o.Topic, strings.Join(topics, ", "))
	}
	return s.refuseAs(agent.CodeStale, "topic", "the run does not wait for topic %s, nor for any other", o.Topic)
}

// queue keeps an event for a daemon, which gives it turns of its own.
func (s *step) queue(o agent.EmitCommand, id string) error {
	e := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: id, By: o.By}, Topic: o.Topic, Payload: o.Payload}
	switch most := s.daemon().Queue; {
	case s.End.Stopping != nil:
		err := s.refuseAs(agent.CodeStale, "", "the run is being stopped; emit it again, with the same id, when the session's next run has begun")
		err.Retryable = true // the session takes the event, only not now
		return err
	case len(s.Messages.Events) >= most || s.Messages.EventSize+eventJSONLen(e) > eventShare || eventJSONLen(e) > s.space():
		return s.refuseAs(agent.CodeQueueFull, "", "%d events wait already (daemon.queue allows %d, and %d bytes); emit it again, with the same id, when fewer do", len(s.Messages.Events), most, eventShare)
	}
	s.Messages.queue(e)
	s.Log.setHeadBehind(true)
	s.rememberReceipt(id, remembered.EventDigest(e))
	return nil
}

// deliver records the messages that the model gets now, and reports whether there were any.
func (s *step) deliver(done bool) bool {
	said := s.Messages.take(done)
	for _, p := range said {
		s.recordMessage(p.Message, p.Bytes)
	}
	// If the daemon ends before it is done with them, the session's next run continues.
	if len(said) > 0 && s.daemon() != nil {
		s.Daemon.markWork()
	}
	return len(said) > 0
}

// steer adds a message for the next turn.
func (s *step) steer(m agent.Message) { s.steerAs(m, m.Size(), messageJSONLen(m)) }

// steerEvent adds an event for the next turn. steerOwn adds a message in the runtime's
// words, which count no bytes.
func (s *step) steerEvent(o agent.EmitCommand) {
	s.steerAs(eventMessage(o), eventSize(o), eventJSONLen(o))
}
func (s *step) steerOwn(m agent.Message) { s.steerAs(m, 0, messageFrame+ownWords) }

func (s *step) steerAs(m agent.Message, bytes, size int) {
	s.Messages.add(PendingMessage{Message: m, Mode: agent.SendSteer, Bytes: bytes, Size: size})
}

// eventSize returns how many bytes an event counts as a message.
func eventSize(o agent.EmitCommand) int { return len(o.Topic) + len(o.Payload) }

// eventMessage returns an event as the model sees it.
func eventMessage(o agent.EmitCommand) agent.Message {
	payload := o.Payload
	if len(payload) == 0 {
		payload = []byte("null")
	}
	m := agent.TextMessage(agent.RoleUser, fmt.Sprintf("Event %s: %s", o.Topic, payload))
	m.ID, m.By, m.Note = o.ID, o.By, agent.NoteEvent
	return m
}

func wakeMessage(text string) agent.Message {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = agent.NoteWake
	return m
}
