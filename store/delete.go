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

// listed is added to the time at which a chunk was put, to delete it as it was listed. Stored
// times have microseconds, so the sum is after this put and after no later one.
const listed = time.Microsecond

// soon is the longest time that a fork takes from its edge to its head.
const soon = time.Hour

// Delete deletes a session and all sessions below it (SESSION/NAME-N): their heads, and
// the chunks that no other session needs. Then it checks that they are gone. It reads
// their heads and names, and the edges of sessions that were forked from them, but
// nothing else of other sessions.
//
// First it marks the heads, see Head.Deleting. From then on nobody reads or writes the
// sessions. A head goes after everything that it names, and the session's own head last.
// So whoever lists heads finds a deletion that was cut short, and may call it again; many
// may do so at once.
//
// No run of the session may be live: it would lose its log. A fork counts as soon as its
// edge is stored, see [Log.Adopt]. Before anything is deleted, the errors are
// [agent.CodeNotFound] if there is no such session, and those of [Log.CheckDelete].
// [agent.CodeStale] means that a run wrote the session meanwhile. The result also says
// what was deleted before an error.
func (l *Log) Delete(ctx context.Context, session string) (DeleteResult, error) {
	return l.DeleteVersion(ctx, session, 0)
}

// DeleteVersion deletes a session as [Log.Delete] does, if its head still has a version: so a
// session that a run has begun to write since the caller read the head is kept. The error is then
// [agent.CodeStale], and nothing was deleted. Version zero means any.
func (l *Log) DeleteVersion(ctx context.Context, session string, version int64) (DeleteResult, error) {
	d := l.deletion(session)
	d.version = version
	return d.do(ctx)
}

func (d *deletion) do(ctx context.Context) (DeleteResult, error) {
	defer d.forget()
	all, err := d.find(ctx)
	if err == nil {
		err = d.mark(ctx, all)
	}
	for _, one := range all {
		if err == nil {
			err = d.one(ctx, one)
		}
	}
	if err == nil && len(d.done.Sessions)+len(d.done.Chunks) == 0 && len(d.done.Faults) == 0 {
		return d.done, agent.Errorf(agent.CodeNotFound, "session %s is not in the store", d.session)
	}
	if err == nil {
		err = d.verify(ctx, all)
	}
	for _, by := range slices.Sorted(maps.Keys(d.kept)) {
		d.done.Shared = append(d.done.Shared, SharedChunks{Session: by, Chunks: d.kept[by]})
	}
	return d.done, err
}

// Vacate is [Log.Head] for a run that begins. If the session is being deleted, it first deletes
// the rest, so that the session begins anew. [agent.CodeStale] means that something else wrote
// the session meanwhile: try again.
func (l *Log) Vacate(ctx context.Context, session string) (Head, error) {
	stored, err := l.store.Head(ctx, session)
	if err == nil && stored.Deleting {
		if _, err := l.DeleteVersion(ctx, session, stored.Version); err != nil && !errors.Is(err, agent.CodeNotFound) {
			return Head{Session: session}, err
		}
	}
	return l.Head(ctx, session)
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
	version int64               // of the session's head; zero means any
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
	if d.version > 0 && own.Version != d.version && (err == nil || errors.Is(err, agent.CodeNotFound)) {
		return nil, agent.Errorf(agent.CodeStale, "session %s was written since: nothing was deleted", d.session)
	}
	if err == nil {
		return append(all, own), unreadable(own.sound())
	}
	if !errors.Is(err, agent.CodeNotFound) {
		return nil, unreadable(err)
	}
	for _, listErr := range d.store.Chunks(ctx, ChunkPrefix(d.session)) { // without a head, such as a first run that was cut short
		return append(all, own), listErr
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

// mark marks heads, the session's own first: if a run has written it meanwhile, nothing is
// deleted.
func (d *deletion) mark(ctx context.Context, all []Head) error {
	for i := range slices.Backward(all) {
		h := &all[i]
		if h.V == 0 || h.Deleting { // there is no head, or an earlier deletion has marked it
			continue
		}
		h.Version, h.Deleting = h.Version+1, true
		if err := d.store.PutHead(ctx, *h); err != nil {
			return err
		}
	}
	return nil
}

// one deletes one session: the chunks that nobody needs, and then the head.
func (d *deletion) one(ctx context.Context, h Head) error {
	edges, err := d.edges(ctx, h) // listed while the head is there, because a new session of that name puts its own edges
	if err != nil {
		return err
	}
	if err := d.chunks(ctx, h); err != nil {
		return err
	}
	// Secrets go with their session, and are useless without it.
	secrets, err := d.list(ctx, h, vaultPrefix(h.Session))
	if err != nil {
		return err
	}
	for _, e := range append(secrets, edges...) {
		if err := d.entry(ctx, e); err != nil {
			return err
		}
	}
	// Chunks of deleted ancestors may have been kept only for this session.
	for _, o := range h.Origins {
		ancestor, err := d.store.Head(ctx, o.Session)
		if errors.Is(err, agent.CodeNotFound) || ancestor.Deleting {
			err = d.chunks(ctx, ancestor)
		}
		if err != nil && !lasting(err) {
			return err
		}
	}
	if !h.Deleting {
		return nil
	}
	if err := d.store.DeleteHead(ctx, h.Session, h.Version); err != nil {
		return err
	}
	d.done.Sessions = append(d.done.Sessions, h.Session)
	return nil
}

// list lists chunks, if a session's head is still as it was. So they were put before another
// deletion has taken the head and a new session of that name has begun.
func (d *deletion) list(ctx context.Context, h Head, prefix string) (all []ChunkInfo, err error) {
	for info, err := range d.store.Chunks(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	now, err := d.store.Head(ctx, h.Session)
	switch {
	case err != nil && !errors.Is(err, agent.CodeNotFound):
		return nil, err
	case errors.Is(err, agent.CodeNotFound) == h.Deleting || now.Version != h.Version:
		return nil, agent.Errorf(agent.CodeStale, "session %s was written or deleted while it was deleted; delete it again if it is there", h.Session)
	}
	return all, nil
}

// chunks deletes the chunks that no other session needs, of a session that is being deleted or
// has no head.
func (d *deletion) chunks(ctx context.Context, h Head) error {
	n, err := d.needsOf(ctx, ChunkPrefix(h.Session), "", time.Now().Add(-soon), d.below)
	if err != nil {
		return err
	}
	d.done.Faults = append(d.done.Faults, n.odd...)
	// It is unknown what is needed, so everything stays.
	if n.fault != nil {
		d.done.Faults = append(d.done.Faults, *n.fault)
		return nil
	}
	all, err := d.list(ctx, h, ChunkPrefix(h.Session)+ofChunk)
	if err != nil {
		return err
	}
	for _, info := range all {
		if err := d.chunk(ctx, info, n.by[info.Name]); err != nil {
			return err
		}
	}
	for _, e := range n.gone {
		if err := d.entry(ctx, e.ChunkInfo); err != nil {
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

// entry deletes an edge or a secret as it was listed. If it was put again since, a new session
// of that name needs it. Then it stays, however late the deletion comes.
func (d *deletion) entry(ctx context.Context, e ChunkInfo) error {
	_, err := d.store.DeleteChunk(ctx, e.Name, e.Put.Add(listed))
	if err != nil && lasting(err) { // it is no chunk
		d.done.Faults = append(d.done.Faults, *faultOf("", e.Name, err))
		return nil
	}
	return err
}

// chunk deletes a chunk as it was listed, unless a session needs it.
func (d *deletion) chunk(ctx context.Context, c ChunkInfo, by map[string]bool) error {
	for session := range by {
		d.kept[session] = append(d.kept[session], c.Name)
	}
	if len(by) > 0 {
		return nil
	}
	gone, err := d.store.DeleteChunk(ctx, c.Name, c.Put.Add(listed))
	if err != nil && lasting(err) { // it is no chunk
		d.done.Faults = append(d.done.Faults, *faultOf("", c.Name, err))
		return nil
	}
	if err == nil && !gone {
		err = agent.Errorf(agent.CodeStale, "chunk %s was stored again while session %s was deleted: end its runs and delete it again", c.Name, d.session)
	}
	if err == nil {
		d.done.Chunks = append(d.done.Chunks, c.Name)
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
