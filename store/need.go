package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// needs says which chunks of one session are needed.
type needs struct {
	*Log
	tag   string
	by    map[string]map[string]bool // by chunk: the sessions that need it
	gone  []edge                     // edges without a session
	odd   []Fault                    // entries among the edges that are none
	fault *Fault                     // why it is unknown what is needed
}

// needsOf finds which chunks with a tag are needed, by the session that wrote them and by
// the edges beside them. An edge without a head counts if it is younger than young,
// because its session may be about to start. Sessions for which without returns true do
// not count. session is empty if the writer is not in the store.
func (l *Log) needsOf(ctx context.Context, tag, session string, young time.Time, without func(session string) bool) (*needs, error) {
	n := &needs{Log: l, tag: tag, by: map[string]map[string]bool{}}
	if session != "" {
		if err := n.own(ctx, session); err != nil || n.fault != nil {
			return n, err
		}
	}
	// After the head: a session that was forked before the head moved has its edge by
	// now.
	for info, err := range l.store.Chunks(ctx, tag+ofEdge) {
		if err != nil {
			return n, err
		}
		if err := n.edge(ctx, info, young, without); err != nil || n.fault != nil {
			return n, err
		}
	}
	return n, nil
}

// own adds what the session itself needs.
func (n *needs) own(ctx context.Context, session string) error {
	h, err := n.store.Head(ctx, session)
	if errors.Is(err, agent.CodeNotFound) || h.Deleting { // its chunks are being deleted
		return nil
	}
	if err == nil {
		err = h.sound()
	}
	if err != nil {
		return n.broken(session, "", err)
	}
	for _, blob := range append(h.Blobs, h.Import) {
		n.add(blob, session)
	}
	name := h.Digest
	if last := len(h.Recent) - 1; last >= 0 && h.Recent[0].Chunk == name { // the head lists these, so no envelope has to be read
		for _, r := range h.Recent[:last] {
			if err := n.ref(ctx, session, r); err != nil {
				return n.broken(session, r.Chunk, err)
			}
		}
		name = h.Recent[last].Chunk
	}
	return n.chain(ctx, session, name)
}

// edge adds what another session needs.
func (n *needs) edge(ctx context.Context, info ChunkInfo, young time.Time, without func(session string) bool) error {
	if !isEdge(info.Name) { // it names no chunk, so it keeps none
		n.odd = append(n.odd, *faultOf("", info.Name, agent.Errorf(agent.CodeChunkDamaged, "%s is stored among the edges of forks, and its name is not that of an edge; remove it from the store", info.Name)))
		return nil
	}
	e, err := n.readEdge(ctx, info)
	if errors.Is(err, agent.CodeChunkMissing) {
		return nil // deleted since the listing
	}
	if err != nil {
		return n.broken("", info.Name, err)
	}
	// What is deleted together with the session does not count as a reader.
	chunk := chunkOf(info.Name)
	if without(e.session) {
		n.gone = append(n.gone, e)
		return nil
	}
	// If this head can't be read, its chunks stay: they are needed after a repair.
	h, err := n.store.Head(ctx, e.session)
	switch {
	case err != nil && !errors.Is(err, agent.CodeNotFound) && !lasting(err):
		return err
	case err == nil && h.sound() == nil && !slices.ContainsFunc(h.Origins, func(o Origin) bool { return o.Chunk == chunk }), errors.Is(err, agent.CodeNotFound):
		// A young edge may be of a fork whose head comes next.
		if info.Put.Before(young) {
			n.gone = append(n.gone, e)
			return nil
		}
	}
	return n.chain(ctx, e.session, chunk)
}

// chain adds the chunks of a chain that have the tag, and those of their files.
func (n *needs) chain(ctx context.Context, session, name string) error {
	var bad error
	at, err := n.walk(ctx, name, func(r Ref) bool {
		if bad = n.ref(ctx, session, r); bad != nil {
			name = r.Chunk
		}
		return bad == nil
	})
	if bad != nil {
		at, err = name, bad
	}
	return n.broken(session, at, err)
}

// ref adds a chunk and its files.
func (n *needs) ref(ctx context.Context, session string, r Ref) error {
	n.add(r.Chunk, session)
	if r.Files == 0 { // most have none, so their envelopes need not be read
		return nil
	}
	e, err := n.envelope(ctx, r.Chunk)
	if err != nil {
		return err
	}
	for _, name := range e.Files {
		n.add(name, session)
	}
	return nil
}

func (n *needs) add(chunk, session string) {
	if tagOf(chunk) != n.tag {
		return
	}
	if n.by[chunk] == nil {
		n.by[chunk] = map[string]bool{}
	}
	n.by[chunk][session] = true
}

// broken records unreadable data as the fault. It returns other errors.
func (n *needs) broken(session, chunk string, err error) error {
	if err == nil || !lasting(err) {
		return err
	}
	n.fault = faultOf(session, chunk, err)
	return nil
}
