package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Deleted is what a deletion did, as a proof for who asked for it.
type Deleted struct {
	// Sessions are those whose heads are gone: the session and the sub-sessions
	// below it that had one.
	Sessions []string `json:"sessions"`
	Chunks   []string `json:"chunks"` // by digest
	// Kept are the chunks that other sessions need, since one was forked from
	// the other. They are deleted with the last session that needs them.
	Kept []Kept `json:"kept,omitempty"`
}

// Kept are chunks that a session shares with the deleted one.
type Kept struct {
	Session string   `json:"session"`
	Chunks  []string `json:"chunks"` // by digest
}

// clocks is how far the clocks of a process and of a store may be apart.
const clocks = time.Minute

// Delete removes a session and its sub-sessions (SESSION/NAME-N): their heads and
// those chunks of their chains that are in no other session's chain. Then it looks
// whether they are gone. It reads every session's chain to see what is shared.
//
// No run of the session may live: it would lose what it knows. A fork counts from
// the moment that its first head is written. An error before anything was deleted
// is [agent.NotFound] where there is no such session, [agent.Stale] where a run
// wrote the session meanwhile, and [agent.ChunkMissing], [agent.ChunkDamaged] or
// [agent.Incompatible] where another session can't be read, which might share what
// is to be deleted. After a later error the result tells what is gone; what no
// session needs any more is then left to [Log.Collect].
func (l *Log) Delete(ctx context.Context, session string) (Deleted, error) {
	defer l.forget()
	d := &deletion{
		walker: newWalker(l.store), session: session,
		own: map[string]bool{}, broken: map[string]error{}, kept: map[string]map[string]bool{},
		done: Deleted{Sessions: []string{}, Chunks: []string{}},
	}
	if err := d.find(ctx); err != nil {
		return d.done, err
	}
	// Once before anything is changed, for what may forbid it, and once after: who
	// forks the session now finds no head any more.
	if err := d.share(ctx); err != nil {
		return d.done, err
	}
	if err := d.heads(ctx); err != nil {
		return d.done, err
	}
	err := d.share(ctx)
	if err == nil {
		err = d.chunks(ctx)
	}
	if err == nil {
		err = d.verify(ctx)
	}
	return d.done, err
}

// deletion is one Delete in progress.
type deletion struct {
	*walker
	session string
	gone    []Head                     // to be deleted, the session's own first
	own     map[string]bool            // chunks of their chains
	broken  map[string]error           // those of them that can't be read
	kept    map[string]map[string]bool // those that others need, by session
	done    Deleted
}

// below tells whether a session goes with the deleted one.
func (d *deletion) below(session string) bool {
	return session == d.session || strings.HasPrefix(session, d.session+"/")
}

// find finds what is the session's.
func (d *deletion) find(ctx context.Context) error {
	h, err := d.store.Head(ctx, d.session)
	if err == nil {
		d.gone, err = append(d.gone, h), newer(h)
	}
	if err != nil && !errors.Is(err, agent.NotFound) {
		return err
	}
	for h, err := range d.store.Heads(ctx, d.session+"/") {
		if err == nil {
			d.gone, err = append(d.gone, h), newer(h)
		}
		// One without a name can't be said to be below: share tells of it.
		if err != nil && (h.Session != "" || !lasting(err)) {
			return err
		}
	}
	if len(d.gone) == 0 {
		return err
	}
	for _, h := range d.gone {
		if h.Import != "" {
			d.own[h.Import] = true
		}
		at, err := d.chain(ctx, h.Digest, func(digest string) { d.own[digest] = true })
		if err != nil && !lasting(err) {
			return err
		}
		if err != nil {
			d.broken[at] = err
		}
	}
	return nil
}

// share finds which of the chunks are in the chains of others. A chain that ends
// where the session's own does can hold no more of it: all that is missing is below.
func (d *deletion) share(ctx context.Context) error {
	n, faults, err := d.sessions(ctx, d.below, func(session, digest string) {
		if !d.own[digest] {
			return
		}
		if d.kept[digest] == nil {
			d.kept[digest] = map[string]bool{}
		}
		d.kept[digest][session] = true
	})
	if err != nil {
		return err
	}
	faults = slices.DeleteFunc(faults, func(f Fault) bool { return d.broken[f.Chunk] != nil })
	if len(faults) > 0 {
		f := faults[0]
		return agent.Errorf(f.Code, "no chunk of session %s was deleted, for sessions that can't be read may share it, %d of %d: session %s: %s", d.session, len(faults), n, f.Session, f.Message)
	}
	return nil
}

// heads deletes the heads, so that no run goes on from them.
func (d *deletion) heads(ctx context.Context) error {
	for _, h := range d.gone {
		if err := d.store.DeleteHead(ctx, h.Session, h.Version); err != nil {
			return err
		}
		d.done.Sessions = append(d.done.Sessions, h.Session)
	}
	return nil
}

// chunks deletes the chunks that nobody shares.
func (d *deletion) chunks(ctx context.Context) error {
	before := time.Now().Add(clocks)
	kept := map[string][]string{}
	for _, digest := range slices.Sorted(maps.Keys(d.own)) {
		if by := d.kept[digest]; by != nil {
			for session := range by {
				kept[session] = append(kept[session], digest)
			}
			continue
		}
		gone, err := d.store.DeleteChunk(ctx, digest, before)
		if err != nil {
			return err
		}
		if !gone {
			return agent.Errorf(agent.StoreUnavailable, "deleting session %s: the store says that chunk %s was put in the future; set the clocks right and run fermata store gc", d.session, digest)
		}
		d.done.Chunks = append(d.done.Chunks, digest)
	}
	for _, session := range slices.Sorted(maps.Keys(kept)) {
		d.done.Kept = append(d.done.Kept, Kept{Session: session, Chunks: kept[session]})
	}
	return nil
}

// verify looks whether all is gone that was deleted.
func (d *deletion) verify(ctx context.Context) error {
	again := agent.Errorf(agent.Stale, "session %s was written while it was deleted: end its runs and delete it again", d.session)
	if _, err := d.store.Head(ctx, d.session); err == nil {
		return again
	} else if !errors.Is(err, agent.NotFound) {
		return err
	}
	for h, err := range d.store.Heads(ctx, d.session+"/") {
		if err == nil || h.Session != "" {
			return again
		}
		if !lasting(err) {
			return err
		}
	}
	for _, digest := range d.done.Chunks {
		_, err := d.store.Chunk(ctx, digest)
		if err == nil || errors.Is(err, agent.ChunkDamaged) {
			return agent.Errorf(agent.StoreUnavailable, "deleting session %s: chunk %s is in the store again; end the session's runs and run fermata store gc", d.session, digest)
		}
		if !errors.Is(err, agent.ChunkMissing) {
			return err
		}
	}
	for at, err := range d.broken {
		if len(d.kept[at]) == 0 {
			return agent.Errorf(agent.CodeOf(err), "session %s is deleted, but for what came before chunk %s, which could not be read: fermata store gc deletes it", d.session, at)
		}
	}
	return nil
}
