package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// DeleteResult says what was deleted, as a proof for who asked for it.
type DeleteResult struct {
	// Sessions are the sessions whose heads were deleted: those below the session, and
	// the session itself.
	Sessions []string `json:"sessions"`
	Chunks   []string `json:"chunks"` // by name
	// Shared are chunks that other sessions need, because one was forked from the other.
	// They are deleted with the last session that needs them.
	Shared []SharedChunks `json:"shared,omitempty"`
	// Faults are other sessions that can't be read. Chunks that they might need were not
	// deleted. Entries that are neither a chunk nor an edge are faults too.
	Faults []Fault `json:"faults,omitempty"`
}

// SharedChunks are chunks that a session shares with the deleted one.
type SharedChunks struct {
	Session string   `json:"session"`
	Chunks  []string `json:"chunks"` // by name
}

// clocks is how far the clocks of a process and of a store may differ.
const clocks = time.Minute

// soon is the longest time that a fork takes from its edge to its head.
const soon = time.Hour

// Delete deletes a session and all sessions below it (SESSION/NAME-N): their heads, and
// the chunks that no other session needs. Then it checks that they are gone. It reads
// their heads and names, and the edges of sessions that were forked from them, but
// nothing else of other sessions. The session's own head goes last, so an interrupted
// deletion can be called again.
//
// No run of the session may be live: it would lose its log. A fork counts as soon as its
// edge is stored, see [Log.Adopt]. Before anything is deleted, the errors are
// [agent.CodeNotFound] if there is no such session, and those of [Log.CheckDelete].
// [agent.CodeStale] means that a run wrote the session meanwhile. The result also says
// what was deleted before an error.
func (l *Log) Delete(ctx context.Context, session string) (DeleteResult, error) {
	defer l.forget()
	d := l.deletion(session)
	all, err := d.find(ctx)
	for _, one := range all {
		if err == nil {
			err = d.one(ctx, one)
		}
	}
	if err == nil && len(d.done.Sessions)+len(d.done.Chunks) == 0 && len(d.done.Faults) == 0 {
		return d.done, agent.Errorf(agent.CodeNotFound, "session %s is not in the store", session)
	}
	if err == nil {
		err = d.verify(ctx, all)
	}
	for _, by := range slices.Sorted(maps.Keys(d.kept)) {
		d.done.Shared = append(d.done.Shared, SharedChunks{Session: by, Chunks: d.kept[by]})
	}
	return d.done, err
}

// CheckDelete returns the error with which [Log.Delete] would refuse because of what is
// stored. It deletes nothing: call it before you delete anything else of the session.
// Errors are [agent.CodeChunkDamaged] and [agent.CodeIncompatible] if the head of the
// session, or of one below it, can't be read. Only the head has the version and the fence
// that keep late writes away from a deleted session. A missing session is no error.
func (l *Log) CheckDelete(ctx context.Context, session string) error {
	_, err := l.deletion(session).find(ctx)
	return err
}

func (l *Log) deletion(session string) *deletion {
	return &deletion{Log: l, session: session, kept: map[string][]string{}, done: DeleteResult{Sessions: []string{}, Chunks: []string{}}}
}

// deletion is one Delete in progress.
type deletion struct {
	*Log
	session string
	kept    map[string][]string // chunks that others need, by session
	done    DeleteResult
}

// below reports whether a session is deleted too.
func (d *deletion) below(session string) bool {
	return session == d.session || strings.HasPrefix(session, d.session+"/")
}

// find lists what is to be deleted, the session itself last.
func (d *deletion) find(ctx context.Context) (all []Head, err error) {
	for h, err := range d.store.Heads(ctx, d.session+"/") {
		if err == nil {
			err = h.sound()
		}
		if err != nil && h.Session == "" && lasting(err) { // its session is unknown
			d.done.Faults = append(d.done.Faults, *faultOf("", "", err))
			continue
		}
		if err != nil {
			return nil, unreadable(err)
		}
		all = append(all, h)
	}
	own, err := d.store.Head(ctx, d.session)
	if err == nil {
		return append(all, own), unreadable(own.sound())
	}
	if !errors.Is(err, agent.CodeNotFound) {
		return nil, unreadable(err)
	}
	for _, listErr := range d.store.Chunks(ctx, ChunkPrefix(d.session)) { // what an interrupted deletion left
		return append(all, Head{Session: d.session}), listErr
	}
	return all, nil
}

// unreadable adds to an error what to do about a head that prevents a deletion.
func unreadable(err error) error {
	switch {
	case errors.Is(err, agent.CodeChunkDamaged):
		return fmt.Errorf("%w. Nothing was deleted: restore this head from a backup, or without one remove it from the store, and delete again", err)
	case errors.Is(err, agent.CodeIncompatible):
		return fmt.Errorf("%w. Nothing was deleted: delete with the build that wrote it", err)
	}
	return err
}

// one deletes one session. The head goes first, so that no run and no fork continues from
// it. Then go the chunks that nobody needs.
func (d *deletion) one(ctx context.Context, h Head) error {
	edges, err := d.edges(ctx, h) // listed before the head is deleted, because a new session of that name puts its own edges
	if err != nil {
		return err
	}
	if h.Version > 0 {
		if err := d.store.DeleteHead(ctx, h.Session, h.Version); err != nil {
			return err
		}
		d.done.Sessions = append(d.done.Sessions, h.Session)
	}
	if err := d.chunks(ctx, h.Session); err != nil {
		return err
	}
	// Secrets go with their session, and are useless without it.
	if err := forgetSecrets(ctx, d.store, h.Session); err != nil {
		return err
	}
	for _, e := range edges {
		if err := d.edge(ctx, e); err != nil {
			return err
		}
	}
	// Chunks of deleted ancestors may have been kept only for this session.
	for _, o := range h.Origins {
		_, err := d.store.Head(ctx, o.Session)
		if errors.Is(err, agent.CodeNotFound) { // it was deleted before, and left chunks that this session needed
			err = d.chunks(ctx, o.Session)
		}
		if err != nil && !lasting(err) {
			return err
		}
	}
	return nil
}

// chunks deletes the chunks of a session without a head that no other session needs.
func (d *deletion) chunks(ctx context.Context, session string) error {
	n, err := d.needsOf(ctx, ChunkPrefix(session), "", time.Now().Add(-soon), d.below)
	if err != nil {
		return err
	}
	d.done.Faults = append(d.done.Faults, n.odd...)
	// It is unknown what is needed, so everything stays.
	if n.fault != nil {
		d.done.Faults = append(d.done.Faults, *n.fault)
		return nil
	}
	for info, err := range d.store.Chunks(ctx, ChunkPrefix(session)+ofChunk) {
		if err == nil {
			err = d.chunk(ctx, info.Name, n.by[info.Name])
		}
		if err != nil {
			return err
		}
	}
	for _, e := range n.gone {
		if err := d.edge(ctx, e.ChunkInfo); err != nil {
			return err
		}
	}
	return nil
}

// edges lists the edges that a session has put beside the chunks of others.
func (d *deletion) edges(ctx context.Context, h Head) (all []ChunkInfo, err error) {
	for _, o := range h.Origins {
		for info, err := range d.store.Chunks(ctx, edgeName(h.Session, o.Chunk)) {
			if err != nil {
				return nil, err
			}
			all = append(all, info)
		}
	}
	return all, nil
}

// edge deletes an edge as it was listed. If it was put again since, a new session of that
// name needs it. Then it stays, however late the deletion comes.
func (d *deletion) edge(ctx context.Context, e ChunkInfo) error {
	// Stored times have microseconds; the next one includes this put and no later one.
	_, err := d.store.DeleteChunk(ctx, e.Name, e.Put.Add(time.Microsecond))
	if err != nil && lasting(err) { // it is no chunk
		d.done.Faults = append(d.done.Faults, *faultOf("", e.Name, err))
		return nil
	}
	return err
}

// chunk deletes a chunk, unless a session needs it.
func (d *deletion) chunk(ctx context.Context, name string, by map[string]bool) error {
	for session := range by {
		d.kept[session] = append(d.kept[session], name)
	}
	if len(by) > 0 {
		return nil
	}
	// In the future by the clocks' difference, so that the chunk counts as old.
	gone, err := d.store.DeleteChunk(ctx, name, time.Now().Add(clocks))
	if err != nil && lasting(err) { // it is no chunk
		d.done.Faults = append(d.done.Faults, *faultOf("", name, err))
		return nil
	}
	if err == nil && !gone {
		err = agent.Errorf(agent.CodeStoreUnavailable, "deleting session %s: the store says that chunk %s was put in the future; set the clocks right and run fermata store gc", d.session, name)
	}
	if err == nil {
		d.done.Chunks = append(d.done.Chunks, name)
	}
	return err
}

// verify checks that everything that was deleted is gone.
func (d *deletion) verify(ctx context.Context, all []Head) error {
	// A run that writes during the deletion brings the session back.
	again := agent.Errorf(agent.CodeStale, "session %s was written while it was deleted: end its runs and delete it again", d.session)
	if _, err := d.store.Head(ctx, d.session); err == nil {
		return again
	} else if !errors.Is(err, agent.CodeNotFound) {
		return err
	}
	for h, err := range d.store.Heads(ctx, d.session+"/") {
		if h.Session != "" {
			return again
		}
		if !lasting(err) {
			return err
		}
	}
	for _, h := range all {
		for info, err := range d.store.Chunks(ctx, ChunkPrefix(h.Session)+ofChunk) {
			if err != nil {
				return err
			}
			if slices.Contains(d.done.Chunks, info.Name) {
				return agent.Errorf(agent.CodeStoreUnavailable, "deleting session %s: chunk %s is in the store again; end the session's runs and run fermata store gc", d.session, info.Name)
			}
		}
	}
	return nil
}
