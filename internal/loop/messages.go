package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Messages is the part that keeps what was said to the run and the model has not got.
type Messages struct {
	// Pending are messages that the model gets at its next turn, or when it would be done.
	Pending []Pending `json:"pending,omitempty"`
	// Events wait for a daemon to deal with them, one after the other.
	Events []agent.EmitOrder `json:"events,omitempty"`
	// Posts are the last messages and events of the session that came with an id.
	Posts []agent.Post `json:"posts,omitempty"`
}

// Pending is a message that the model has not got yet.
type Pending struct {
	Message agent.Message  `json:"message"`
	Mode    agent.SendMode `json:"mode"`
	// Bytes is what the message counts in the log, and among those that wait (see weight).
	Bytes int `json:"bytes,omitempty"`
}

// Bounds of what waits.
const (
	maxPending      = 100
	maxPendingBytes = 1 << 20
	// maxEventBytes bounds the events that wait, as they are written: they go along into a
	// new execution and into the session's head.
	maxEventBytes = 512 << 10
)

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

// size is that of the messages that wait, in bytes.
func (m Messages) size() (n int) {
	for _, p := range m.Pending {
		n += p.Bytes
	}
	return n
}

// eventBytes is the size of the events that wait, as they are written.
func (m Messages) eventBytes() (n int) {
	for _, e := range m.Events {
		n += writtenEvent(e)
	}
	return n
}

// posted is the run that has a message; empty if none has it.
func (m Messages) posted(id, run string) string {
	if id == "" {
		return ""
	}
	for _, p := range m.Posts {
		if p.ID == id {
			return p.Run
		}
	}
	if slices.ContainsFunc(m.Events, func(e agent.EmitOrder) bool { return e.ID == id }) {
		return run // with which it waits
	}
	return ""
}

// post remembers a message that came with an id.
func (m *Messages) post(id, run string, most int) {
	if id == "" {
		return
	}
	m.Posts = append(m.Posts, agent.Post{ID: id, Run: run})
	if n := len(m.Posts) - most; n > 0 {
		m.Posts = slices.Clone(m.Posts[n:])
	}
}

func (m *Messages) add(p Pending) { m.Pending = append(m.Pending, p) }

// first puts a message before all that wait.
func (m *Messages) first(p Pending) { m.Pending = slices.Insert(m.Pending, 0, p) }

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

func (m *Messages) queue(e agent.EmitOrder) { m.Events = append(m.Events, e) }

// takeEvent takes an event out of those that wait.
func (m *Messages) takeEvent(i int) agent.EmitOrder {
	e := m.Events[i]
	m.Events = slices.Concat(m.Events[:i], m.Events[i+1:]) // nil if none is left
	return e
}

// inherit takes over what the session's runs before this one have left.
func (m *Messages) inherit(posts []agent.Post, events []agent.EmitOrder) {
	m.Posts, m.Events = posts, events
}

// Remembered are the messages that the session's head knows by their ids. Those of a
// daemon are many, and are written where the next run looks for them.
func (s State) Remembered(final bool) []agent.Post {
	posts := s.Messages.Posts
	if n := len(posts) - maxPosts; n > 0 && !final {
		return posts[n:]
	}
	return posts
}

// Inbox is what the session's next run takes over, if this one ends as it stands and says
// no more: an event that has met a daemon's park is told by the end.
func (s State) Inbox() agent.Inbox {
	in := agent.Inbox{Cut: s.Daemon.Due, Events: s.Messages.Events}
	if e := s.Park.event(); e != nil && s.daemon() != nil {
		in.Events = slices.Concat([]agent.EmitOrder{e.order()}, s.Messages.Events)
	}
	return in
}

// Waiting is the inbox as a seal tells it: what the store has of it already is named,
// and only the rest is said.
func (s State) Waiting() (in agent.Inbox, kept []agent.Kept) {
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

func (s *step) posted(id string) string { return s.Messages.posted(id, s.Run) }

func (s *step) post(id string) {
	most := maxPosts
	if s.daemon() != nil || len(s.Messages.Events) > 0 { // which wait for the session's next daemon
		most = maxDaemonPosts
	}
	s.Messages.post(id, s.Run, most)
}

// send takes a message for the model.
func (s *step) send(o agent.SendOrder, id string) error {
	m := agent.Message{ID: id, Role: agent.RoleUser, By: o.By}
	if o.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: o.Text})
	}
	m.Parts = append(m.Parts, o.Parts...)
	switch {
	case s.posted(id) != "":
		return s.already()
	case s.End.Stopping != nil:
		return s.refuseAs(agent.Stale, "", "the run is being stopped; send when it has ended, to begin the next one")
	case len(s.Messages.Pending) >= maxPending || s.Messages.size()+m.Size() > maxPendingBytes:
		return s.refuseAs(agent.TooLarge, "", "%d messages wait already that the model has not got", len(s.Messages.Pending))
	}
	mode := o.Mode
	if mode == "" {
		mode = agent.SendSteer
	}
	s.Messages.add(Pending{Message: m, Mode: mode, Bytes: m.Size()})
	s.post(id)
	if mode == agent.SendInterrupt {
		s.giveUp(0, "a message came in between")
	}
	return nil
}

// emit tells of an event: one that a park waits for, or one for a daemon.
func (s *step) emit(o agent.EmitOrder, in Said) error {
	parked := s.Park.waitsFor(o)
	switch {
	case s.daemon() != nil && s.posted(in.ID) != "":
		return s.already()
	case parked && s.daemon() != nil:
		s.post(in.ID)
		o.ID = in.ID
		s.met(metBy(o))
		s.Log.lags(true)
		return nil
	case parked:
		s.met(Met{Topic: o.Topic, Payload: o.Payload, By: o.By})
		return nil
	case s.hears(o.Topic):
		return s.queue(o, in.ID)
	}
	return s.refuseAs(agent.Stale, "topic", "the run does not wait for such an event of topic %s", o.Topic)
}

// queue takes an event, which has turns of its own.
func (s *step) queue(o agent.EmitOrder, id string) error {
	e := agent.EmitOrder{Order: agent.Order{ID: id, By: o.By}, Topic: o.Topic, Payload: o.Payload}
	switch most := s.daemon().Queue; {
	case s.End.Stopping != nil:
		err := s.refuseAs(agent.Stale, "", "the run is being stopped; emit it again, with the same id, when the session's next run has begun")
		err.Retryable = true // it is for the session, which hears it: only not now
		return err
	case len(s.Messages.Events) >= most || s.Messages.eventBytes()+writtenEvent(e) > maxEventBytes:
		return s.refuseAs(agent.QueueFull, "", "%d events wait already (daemon.queue allows %d, and %d bytes); emit it again, with the same id, when fewer do", len(s.Messages.Events), most, maxEventBytes)
	}
	s.Messages.queue(e)
	s.Log.lags(true)
	s.post(id)
	return nil
}

// writtenEvent is the length of an event in JSON, where five characters of a payload are
// written as six. (To write all that wait for each that comes would take long.)
func writtenEvent(o agent.EmitOrder) int {
	const frame = len(`,"payload":,`)
	n := frame + len(o.Payload)
	for _, c := range string(o.Payload) {
		switch c {
		case '<', '>', '&':
			n += 5
		case '\u2028', '\u2029':
			n += 3
		}
	}
	o.Payload = nil
	return n + written(o)
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

// steer says something at the next turn, of which so many bytes are somebody's.
func (s *step) steer(m agent.Message, bytes int) {
	s.Messages.add(Pending{Message: m, Mode: agent.SendSteer, Bytes: bytes})
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
