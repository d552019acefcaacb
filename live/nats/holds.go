package nats

import (
	"encoding/json"
	"strings"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Holds is a [live.Holds] over NATS, for many worker processes. The broker knows who
// follows which tree, so a hold is one message, which reaches nobody else. It may be used
// from many goroutines at once, by many workers.
type Holds struct{ l *Live }

// NewHolds returns one on a connection, which stays the caller's. All workers of a task
// queue need the same, with the same options: an empty Prefix means "fermata.holds" here.
// Who can write to these subjects can end steps of runs that have no hold, and so suspend
// sub-agents until they have asked the run above them. They can end no run, and steps are
// made again. With keys, nobody can do so without the keys.
func NewHolds(conn *broker.Conn, o *Options) *Holds {
	l := &Live{conn: conn}
	if o != nil {
		l.o = *o
	}
	if l.o.Prefix == "" {
		l.o.Prefix = "fermata.holds"
	}
	return &Holds{l}
}

// holdOf is what a root's hold is encrypted for.
func holdOf(root string) string { return "hold/" + root }

// Publish implements [live.Holds]. What the connection does not take is lost.
func (h *Holds) Publish(held agent.HoldRef) {
	root, _, _ := strings.Cut(held.Session, "/")
	data, err := json.Marshal(held)
	if err != nil {
		return
	}
	if h.l.o.Keys.Primary() != "" {
		data = h.l.o.Keys.Encrypt(holdOf(root), data)
	}
	go func() { _ = h.l.conn.Publish(h.l.subject(root), data) }() // which waits where the broker is slow
}

// Follow implements [live.Holds]. On a connection that was closed nothing is heard.
func (h *Holds) Follow(root string, hear func(agent.HoldRef)) (leave func()) {
	s, err := h.l.conn.Subscribe(h.l.subject(root), func(m *broker.Msg) {
		if held, ok := h.read(root, m.Data); ok {
			hear(held)
		}
	})
	if err != nil {
		return func() {}
	}
	return func() { _ = s.Unsubscribe() }
}

// read reads a hold of a root's tree; what is not encrypted is none where there are keys.
func (h *Holds) read(root string, data []byte) (held agent.HoldRef, ok bool) {
	switch encrypted := keyring.KeyID(data) != ""; {
	case encrypted:
		plain, err := h.l.o.Keys.Decrypt(holdOf(root), data)
		if err != nil {
			return held, false
		}
		data = plain
	case h.l.o.Keys.Primary() != "":
		return held, false
	}
	err := json.Unmarshal(data, &held)
	return held, err == nil && (held.Session == root || strings.HasPrefix(held.Session, root+"/"))
}
