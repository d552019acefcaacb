package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// Messages is the part that keeps the messages and events that the model has not received.
type Messages struct {
	// Pending messages go to the model at its next turn or, with mode queue, when it would
	// be done.
	Pending     []PendingMessage `json:"pending,omitempty"`
	PendingSize int              `json:"pending_size,omitempty"`
	// Emitted events wait for a daemon, which takes one at a time.
	Emitted     []agent.EmitCommand `json:"emitted,omitempty"`
	EmittedSize int                 `json:"emitted_size,omitempty"`
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
	m.Pending, m.Emitted, m.Receipts = slices.Clip(m.Pending), slices.Clip(m.Emitted), slices.Clip(m.Receipts)
	return m
}

// messageJSONLen and eventJSONLen return how long a waiting message or event is in JSON at
// most. An event becomes a message.
func messageJSONLen(m agent.Message) int {
	return messageFrame + jsonLen(m.ID) + jsonLen(m.By) + partsJSONLen(m.Parts)
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
	if i := slices.IndexFunc(m.Emitted, func(e agent.EmitCommand) bool { return e.ID == id }); i >= 0 {
		return remembered.Receipt{ID: id, Run: run, Digest: remembered.EventDigest(m.Emitted[i])}, true // the event waits in this run
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

// steers reports whether the next turn begins with a message.
func (m Messages) steers() bool {
	return slices.ContainsFunc(m.Pending, func(p PendingMessage) bool { return p.Mode != agent.SendQueue })
}

// interrupts reports whether a message waits that interrupted what was in flight.
func (m Messages) interrupts() bool {
	return slices.ContainsFunc(m.Pending, func(p PendingMessage) bool { return p.Mode == agent.SendInterrupt })
}

// steerAll makes queued messages due at the next turn: the daemon was done.
func (m *Messages) steerAll() {
	m.Pending = slices.Clone(m.Pending)
	for i := range m.Pending {
		m.Pending[i].Mode = agent.SendSteer
	}
}

func (m *Messages) queue(e agent.EmitCommand) {
	m.Emitted, m.EmittedSize = append(m.Emitted, e), m.EmittedSize+eventJSONLen(e)
}

// takeEvent removes and returns the waiting event at an index.
func (m *Messages) takeEvent(i int) agent.EmitCommand {
	e := m.Emitted[i]
	m.Emitted = slices.Concat(m.Emitted[:i], m.Emitted[i+1:]) // nil if none is left
	m.EmittedSize -= eventJSONLen(e)
	return e
}

// recount computes all sizes again, after an import.
func (m *Messages) recount() {
	m.Pending, m.PendingSize = slices.Clone(m.Pending), 0
	for i, p := range m.Pending {
		m.Pending[i].Bytes, m.Pending[i].Size = p.Message.Size(), messageJSONLen(p.Message)
		m.PendingSize += m.Pending[i].Size
	}
	m.inherit(m.Receipts, m.Emitted)
}

// inherit takes over the receipts and events that the session's earlier runs left.
func (m *Messages) inherit(receipts []remembered.Receipt, events []agent.EmitCommand) {
	m.Receipts, m.Emitted, m.ReceiptSize, m.EmittedSize = receipts, events, 0, 0
	for _, p := range receipts {
		m.ReceiptSize += receiptJSONLen(p)
	}
	for _, e := range events {
		m.EmittedSize += eventJSONLen(e)
	}
	m.forget(len(receipts))
}

// Receipts returns the receipts that a seal stores in the session's head. A daemon has many.
// Each seal's input is in the history, so only the final seal has them all.
func (s *State) Receipts(final bool) []remembered.Receipt {
	receipts := s.Messages.Receipts
	if n := len(receipts) - maxReceipts; n > 0 && !final {
		return receipts[n:]
	}
	return receipts
}

// Backlog returns what the session's next run takes over if this run ends as it stands. An
// event that met a daemon's park still counts as waiting: until the park ends, it is not in
// the log.
func (s *State) Backlog() remembered.Backlog {
	in := remembered.Backlog{Unfinished: s.Daemon.HasWork, Events: s.Messages.Emitted}
	if e := s.Park.event(); e != nil && s.daemon() != nil {
		in.Events = slices.Concat([]agent.EmitCommand{e.order()}, s.Messages.Emitted)
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
	s.verbEffect = agent.EffectAlready
	return true, p.Check(sum)
}

// rememberReceipt remembers the id of a message or event.
func (s *step) rememberReceipt(id, sum string) {
	most := maxReceipts
	if s.daemon() != nil || len(s.Messages.Emitted) > 0 { // these events wait for the session's next daemon
		most = maxDaemonReceipts
	}
	s.Messages.addReceipt(remembered.Receipt{ID: id, Run: s.Run, Digest: sum}, most)
}

// send accepts a message for the model.
func (s *step) send(o agent.SendCommand, id string) error {
	m := agent.Message{ID: id, Role: agent.RoleUser, By: o.By, Parts: o.AllParts()}
	// First: a message that was accepted once is not refused when it comes again.
	if again, err := s.isRepeat(id, remembered.MessageDigest(m)); again {
		return err
	}
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.CodeStale, "", "%s; send when it has ended, to begin the next one", s.End.doing())
	case len(s.Messages.Pending) >= maxPending || !s.messageFits(m):
		return s.checkRoom("")
	}
	if err := s.mayShow(o.Parts); err != nil {
		return err
	}
	if err := s.mayUseSkills(o.Skills); err != nil {
		return s.refuseAs(err.Code, err.Path, "%s", err.Message)
	}
	mode, awaited := o.Mode, len(s.handedOver()) > 0
	if awaited {
		if err := s.checkAge(s.answerBy()); err != nil {
			return err
		}
	}
	if mode == "" || awaited && mode == agent.SendQueue {
		mode = agent.SendSteer
	}
	s.Messages.add(PendingMessage{Message: m, Mode: mode, Bytes: m.Size(), Size: messageJSONLen(m)})
	s.rememberReceipt(id, remembered.MessageDigest(m))
	s.wantSkills(o.Skills)
	if awaited {
		s.takeBack(o.By)
	}
	if mode == agent.SendInterrupt && !s.isFlow() { // a flow's steps do not depend on messages
		s.cancelInFlight(0, "a message came in between")
	}
	return nil
}

// checkRoom refuses a message for which the state has no space.
func (s *step) checkRoom(path string) error {
	return s.refuseAs(agent.CodeTooLarge, path, "%d messages wait already that the model has not got; at most %d may, of %d bytes in all, and fewer while people are asked about long calls", len(s.Messages.Pending), maxPending, pendingShare)
}

// deliver records the messages that the model gets now, and reports whether there were any. done
// means that the model would be done: then it gets those of mode queue, too.
func (s *step) deliver(done bool) bool {
	said := s.Messages.take(done)
	for _, p := range said {
		s.recordMessage(p.Message, p.Bytes)
	}
	// If the daemon ends before it is done with them, the session's next run continues.
	if len(said) == 0 {
		return false
	}
	s.movedOn()
	if s.daemon() != nil {
		s.Daemon.markWork()
	}
	return true
}

// unreadShare bounds the texts of the messages in an outcome, in JSON bytes.
const unreadShare = 32 << 10

// deliverUnread records the messages that still wait at the run's end: the session's next run finds them
// in the log, and the outcome has those of people and programs (HA-28).
func (s *step) deliverUnread() {
	before := s.Log.Seq
	if !s.deliver(true) || s.Parent.Start != nil {
		return
	}
	var unread []agent.UnreadMessage
	left := unreadShare
	for _, e := range s.Log.Tail {
		if e.Seq <= before || e.Message == nil || e.Message.Note != "" {
			continue
		}
		m := agent.UnreadMessage{Event: e.Seq, By: e.Message.By, Text: e.Message.Words()}
		if left -= jsonLen(m.Text); left < 0 {
			m.Text = ""
		}
		unread = append(unread, m)
	}
	s.End.setUnread(unread)
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

func (s *State) messagesWait() bool { return len(s.Messages.Pending) > 0 }
