package nats

import (
	"encoding/json"
	"strings"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Holds is a [live.Holds] over NATS, for many worker processes. The broker knows who
// follows which tree, so a hold is one message that reaches only those. It is safe for
// concurrent use.
type Holds struct{ l *Live }

// NewHolds returns a Holds on a connection, which stays the caller's. All workers of a
// task queue need the same options; an empty Prefix means "fermata.holds" here.
//
// Without keys, anyone who can write to these subjects can stop activities of runs that are
// not held. Sub-agents are then suspended until they have asked their parent. No run
// ends, and the calls are made again. With keys, nobody else can do so.
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

// holdOf returns the purpose for which a root's hold is encrypted.
func holdOf(root string) string { return "hold/" + root }

// Publish implements [live.Holds]. What the connection does not take is lost.
func (h *Holds) Publish(held agent.HoldRef) {
	// Followers subscribe by root.
	root, _, _ := strings.Cut(held.Session, "/")
	data, err := json.Marshal(held)
	if err != nil {
		return
	}
	if h.l.o.Keys.Primary() != "" {
		data = h.l.o.Keys.Encrypt(holdOf(root), data)
	}
	go func() { _ = h.l.conn.Publish(h.l.subject(root), data) }() // in a goroutine, since it waits if the broker is slow
}

// Follow implements [live.Holds]. On a closed connection it receives nothing.
func (h *Holds) Follow(root string, receive func(agent.HoldRef)) (leave func()) {
	s, err := h.l.conn.Subscribe(h.l.subject(root), func(m *broker.Msg) {
		if held, ok := h.read(root, m.Data); ok {
			receive(held)
		}
	})
	if err != nil {
		return func() {}
	}
	return func() { _ = s.Unsubscribe() }
}

// maxMessage is more than any hold has, in bytes.
const maxMessage = 8 << 10

// read decodes a hold of a root's tree. With keys, what is not encrypted is ignored.
func (h *Holds) read(root string, data []byte) (held agent.HoldRef, ok bool) {
	if len(data) > maxMessage {
		return held, false
	}
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
