package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Messages is the part that keeps what was said to the run and the model has not got.
type Messages struct {
	// Pending are messages that the model gets at its next turn, or when it would be done.
	Pending     []Pending `json:"pending,omitempty"`
	PendingSize int       `json:"pending_size,omitempty"`
	// Events wait for a daemon to deal with them, one after the other.
	Events    []agent.EmitOrder `json:"events,omitempty"`
	EventSize int               `json:"event_size,omitempty"`
	// Posts are the last messages and events of the session that came with an id.
	Posts    []agent.Post `json:"posts,omitempty"`
	PostSize int          `json:"post_size,omitempty"`
}

// Pending is a message that the model has not got yet.
type Pending struct {
	Message agent.Message  `json:"message"`
	Mode    agent.SendMode `json:"mode"`
	// Bytes is what the message counts in the log (see weight), and Size its length in JSON,
	// at most.
	Bytes int `json:"bytes,omitempty"`
	Size  int `json:"size,omitempty"`
}

// maxPending is how many messages wait at most.
const maxPending = 100

// A session remembers so many messages by their ids, and a daemon's so many: its senders
// try again after a stop.
const (
	maxPosts       = 50
	maxDaemonPosts = 1000
)

func (m Messages) clone() Messages {
	m.Pending, m.Events, m.Posts = slices.Clip(m.Pending), slices.Clip(m.Events), slices.Clip(m.Posts)
	return m
}

// messageInJSON and eventInJSON are the lengths of what waits. An event becomes a message.
func messageInJSON(m agent.Message) int {
	n := messageFrame + inJSON(m.ID) + inJSON(m.By)
	for _, p := range m.Parts {
		n += partFrame + inJSON(p.Text)
	}
	return n
}

func eventInJSON(e agent.EmitOrder) int {
	return messageFrame + partFrame + inJSON(e.ID) + inJSON(e.By) + inJSON(e.Topic) + rawInJSON(e.Payload)
}

func postInJSON(p agent.Post) int { return postFrame + sumFrame + inJSON(p.ID) + inJSON(p.Run) }

// posted is the message or event that came with an id.
func (m Messages) posted(id, run string) (p agent.Post, ok bool) {
	if id == "" {
		return p, false
	}
	if i := slices.IndexFunc(m.Posts, func(p agent.Post) bool { return p.ID == id }); i >= 0 {
		return m.Posts[i], true
	}
	if i := slices.IndexFunc(m.Events, func(e agent.EmitOrder) bool { return e.ID == id }); i >= 0 {
		return agent.Post{ID: id, Run: run, Sum: m.Events[i].Sum()}, true // it waits with the run
	}
	return p, false
}

// post remembers a message that came with an id.
func (m *Messages) post(p agent.Post, most int) {
	if p.ID == "" {
		return
	}
	m.Posts, m.PostSize = append(m.Posts, p), m.PostSize+postInJSON(p)
	m.forget(most)
}

// forget drops the oldest ids until there are so many at most, and they keep their share.
func (m *Messages) forget(most int) {
	n := 0
	for ; len(m.Posts)-n > most || m.PostSize > postShare; n++ {
		m.PostSize -= postInJSON(m.Posts[n])
	}
	if n > 0 {
		m.Posts = slices.Clone(m.Posts[n:])
	}
}

func (m *Messages) add(p Pending) {
	m.Pending, m.PendingSize = append(m.Pending, p), m.PendingSize+p.Size
}

// first puts a message before all that wait.
func (m *Messages) first(p Pending) {
	m.Pending, m.PendingSize = slices.Insert(m.Pending, 0, p), m.PendingSize+p.Size
}

// takes takes out the messages that the model gets now: at a turn those that steer, and
// all when it would be done.
func (m *Messages) takes(done bool) (now []Pending) {
	var kept []Pending
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

// allSteer lets no message wait any more: the run was done.
func (m *Messages) allSteer() {
	m.Pending = slices.Clone(m.Pending)
	for i := range m.Pending {
		m.Pending[i].Mode = agent.SendSteer
	}
}

func (m *Messages) queue(e agent.EmitOrder) {
	m.Events, m.EventSize = append(m.Events, e), m.EventSize+eventInJSON(e)
}

// takeEvent takes an event out of those that wait.
func (m *Messages) takeEvent(i int) agent.EmitOrder {
	e := m.Events[i]
	m.Events = slices.Concat(m.Events[:i], m.Events[i+1:]) // nil if none is left
	m.EventSize -= eventInJSON(e)
	return e
}

// recount counts anew how long what waits is, and which ids are remembered.
func (m *Messages) recount() {
	m.Pending, m.PendingSize = slices.Clone(m.Pending), 0
	for i, p := range m.Pending {
		m.Pending[i].Bytes, m.Pending[i].Size = p.Message.Size(), messageInJSON(p.Message)
		m.PendingSize += m.Pending[i].Size
	}
	m.inherit(m.Posts, m.Events)
}

// inherit takes over what the session's runs before this one have left.
func (m *Messages) inherit(posts []agent.Post, events []agent.EmitOrder) {
	m.Posts, m.Events, m.PostSize, m.EventSize = posts, events, 0, 0
	for _, p := range posts {
		m.PostSize += postInJSON(p)
	}
	for _, e := range events {
		m.EventSize += eventInJSON(e)
	}
	m.forget(len(posts))
}

// Remembered are the messages that the session's head knows by their ids. Those of a
// daemon are many, and are written where the next run looks for them.
func (s *State) Remembered(final bool) []agent.Post {
	posts := s.Messages.Posts
	if n := len(posts) - maxPosts; n > 0 && !final {
		return posts[n:]
	}
	return posts
}

// Inbox is what the session's next run takes over, if this one ends as it stands and says
// no more: an event that has met a daemon's park is told by the end.
func (s *State) Inbox() agent.Inbox {
	in := agent.Inbox{Cut: s.Daemon.Due, Events: s.Messages.Events}
	if e := s.Park.event(); e != nil && s.daemon() != nil {
		in.Events = slices.Concat([]agent.EmitOrder{e.order()}, s.Messages.Events)
	}
	return in
}

// waiting is the inbox as a seal tells it: what the store has of it already is named,
// and only the rest is said.
func (s *State) waiting() (in agent.Inbox, kept []agent.Kept) {
	whole := s.Inbox()
	blobs := map[string]string{}
	for _, k := range s.Log.Kept {
		for _, key := range k.Keys {
			blobs[key] = k.Blob
		}
	}
	in.Cut = whole.Cut
	for _, e := range whole.Events {
		key := e.Key()
		switch blob, ok := blobs[key]; {
		case !ok:
			in.Events = append(in.Events, e)
		case len(in.Events) > 0: // it would lose its place
			return whole, nil
		case len(kept) > 0 && kept[len(kept)-1].Blob == blob:
			last := &kept[len(kept)-1]
			last.Keys = append(last.Keys, key)
		default:
			kept = append(kept, agent.Kept{Blob: blob, Keys: []string{key}})
		}
	}
	return in, kept
}

// repeats leaves things as they are if the session has the message or the event, and
// refuses another one under its id.
func (s *step) repeats(id, sum string) (bool, error) {
	p, ok := s.Messages.posted(id, s.Run)
	if !ok {
		return false, nil
	}
	s.effect = agent.Already
	return true, p.Is(sum)
}

// post remembers what came with an id.
func (s *step) post(id, sum string) {
	most := maxPosts
	if s.daemon() != nil || len(s.Messages.Events) > 0 { // which wait for the session's next daemon
		most = maxDaemonPosts
	}
	s.Messages.post(agent.Post{ID: id, Run: s.Run, Sum: sum}, most)
}

// send takes a message for the model.
func (s *step) send(o agent.SendOrder, id string) error {
	m := agent.Message{ID: id, Role: agent.RoleUser, By: o.By}
	if o.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: o.Text})
	}
	m.Parts = append(m.Parts, o.Parts...)
	if again, err := s.repeats(id, m.Sum()); again {
		return err
	}
	switch {
	case s.End.Stopping != nil:
		return s.refuseAs(agent.Stale, "", "the run is being stopped; send when it has ended, to begin the next one")
	case len(s.Messages.Pending) >= maxPending || !s.mayWait(m):
		return s.fullOf("")
	}
	mode := o.Mode
	if mode == "" {
		mode = agent.SendSteer
	}
	s.Messages.add(Pending{Message: m, Mode: mode, Bytes: m.Size(), Size: messageInJSON(m)})
	s.post(id, m.Sum())
	if mode == agent.SendInterrupt {
		s.giveUp(0, "a message came in between")
	}
	return nil
}

// fullOf refuses what the model would have to be told later.
func (s *step) fullOf(path string) error {
	return s.refuseAs(agent.TooLarge, path, "%d messages wait already that the model has not got; at most %d may, of %d bytes in all, and fewer while people are asked about long calls", len(s.Messages.Pending), maxPending, pendingShare)
}

// emit tells of an event: one that a park waits for, or one for a daemon.
func (s *step) emit(o agent.EmitOrder, in Said) error {
	b := s.looks()
	before := b.Spent()
	parked := s.Park.waitsFor(o, b)
	if s.daemon() != nil {
		if again, err := s.repeats(in.ID, o.Sum()); again {
			return err
		}
	}
	switch {
	case parked && eventInJSON(o) > s.space():
		return s.refuseAs(agent.QueueFull, "", "too much waits for the run already; emit it again when less does")
	case parked && s.daemon() != nil:
		s.post(in.ID, o.Sum())
		o.ID = in.ID
		s.met(metBy(o))
		s.Log.lags(true)
		return nil
	case parked:
		s.met(Met{Topic: o.Topic, Payload: o.Payload, By: o.By})
		return nil
	case s.hears(o.Topic):
		return s.queue(o, in.ID)
	case b.Over() && s.Park != nil && s.Park.Met == nil && slices.Contains(s.Park.topics(), o.Topic):
		return s.uncompared(before)
	}
	return s.unawaited(o)
}

// uncompared refuses an event that has too many parts, or that came with too many others.
func (s *step) uncompared(before int) error {
	if before == 0 {
		return s.refuseAs(agent.Stale, "payload", "the payload has too many parts to be compared with what the run waits for; emit a shorter one")
	}
	err := s.refuseAs(agent.QueueFull, "", "more came at once than is compared with what the run waits for; emit it again")
	err.Retryable = true
	return err
}

// unawaited refuses an event that the run does not take: it says whether it is for the
// topic or for the payload.
func (s *step) unawaited(o agent.EmitOrder) error {
	topics := slices.Concat(s.Park.topics(), s.topics())
	switch known := slices.Contains(topics, o.Topic); {
	case known && s.Park.Met != nil:
		return s.refuseAs(agent.Stale, "topic", "what the run waits for has come already")
	case known:
		return s.refuseAs(agent.Stale, "payload", "the run waits for an event of topic %s with another payload: this one does not match what its conditions ask for", o.Topic)
	case len(topics) > 0:
		return s.refuseAs(agent.Stale, "topic", "the run does not wait for topic %s; it waits for %s", o.Topic, strings.Join(topics, ", "))
	}
	return s.refuseAs(agent.Stale, "topic", "the run does not wait for topic %s, nor for any other", o.Topic)
}

// queue takes an event, which has turns of its own.
func (s *step) queue(o agent.EmitOrder, id string) error {
	e := agent.EmitOrder{Order: agent.Order{ID: id, By: o.By}, Topic: o.Topic, Payload: o.Payload}
	switch most := s.daemon().Queue; {
	case s.End.Stopping != nil:
		err := s.refuseAs(agent.Stale, "", "the run is being stopped; emit it again, with the same id, when the session's next run has begun")
		err.Retryable = true // it is for the session, which hears it: only not now
		return err
	case len(s.Messages.Events) >= most || s.Messages.EventSize+eventInJSON(e) > eventShare || eventInJSON(e) > s.space():
		return s.refuseAs(agent.QueueFull, "", "%d events wait already (daemon.queue allows %d, and %d bytes); emit it again, with the same id, when fewer do", len(s.Messages.Events), most, eventShare)
	}
	s.Messages.queue(e)
	s.Log.lags(true)
	s.post(id, e.Sum())
	return nil
}

// deliver says what was sent, and returns whether there was any.
func (s *step) deliver(done bool) bool {
	said := s.Messages.takes(done)
	for _, p := range said {
		s.say(p.Message, p.Bytes)
	}
	if len(said) > 0 && s.daemon() != nil {
		s.Daemon.due()
	}
	return len(said) > 0
}

// steer says at the next turn what somebody has said.
func (s *step) steer(m agent.Message) { s.steerAs(m, m.Size(), messageInJSON(m)) }

// steerEvent tells of an event at the next turn, and steerOwn says something in the
// runtime's own words, which count nothing.
func (s *step) steerEvent(o agent.EmitOrder) {
	s.steerAs(eventMessage(o), eventSize(o), eventInJSON(o))
}
func (s *step) steerOwn(m agent.Message) { s.steerAs(m, 0, messageFrame+ownWords) }

func (s *step) steerAs(m agent.Message, bytes, size int) {
	s.Messages.add(Pending{Message: m, Mode: agent.SendSteer, Bytes: bytes, Size: size})
}

// eventSize is what an event counts that the model is told of.
func eventSize(o agent.EmitOrder) int { return len(o.Topic) + len(o.Payload) }

// eventMessage is an event as the model is told of it.
func eventMessage(o agent.EmitOrder) agent.Message {
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
