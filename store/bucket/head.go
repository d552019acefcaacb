package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Head implements [store.Store].
func (s *Store) Head(ctx context.Context, session string) (store.Head, error) {
	for range tries {
		list, err := s.places(ctx, session, 1)
		if err != nil {
			return store.Head{}, s.unavailable(err, "looking for the head of session %s in", session)
		}
		if len(list) == 0 || list[0].deleted() {
			h, err := s.none(ctx, session, list)
			if err == nil {
				err = agent.Errorf(agent.CodeNotFound, "session %s is not in the store, %s", session, s.name)
			}
			return h, err
		}
		h, ok, err := s.head(ctx, list[0])
		if ok || err != nil {
			return h, err
		}
	}
	return store.Head{}, s.unavailable(errBusy, "reading the head of session %s from", session)
}

// none returns the version and fence of a session without a head.
func (s *Store) none(ctx context.Context, session string, list []place) (store.Head, error) {
	key := goneKey(session)
	if len(list) > 0 {
		key = list[0].key()
	}
	left, err := s.readTombstone(ctx, key)
	if err == nil && left.Version == 0 && len(list) > 0 { // Heads has moved it since
		left, err = s.readTombstone(ctx, goneKey(session))
	}
	if err != nil {
		return store.Head{}, s.unavailable(err, "looking for the head of session %s in", session)
	}
	return store.Head{Session: session, Version: left.Version, Fence: left.Fence}, nil
}

// stored returns a session's version and fence, by its newest places. If the head can't
// be read, the version of its place counts.
func (s *Store) stored(ctx context.Context, session string, list []place) (store.Head, error) {
	if len(list) == 0 || list[0].deleted() {
		return s.none(ctx, session, list)
	}
	h, ok, err := s.head(ctx, list[0])
	if err != nil && !errors.Is(err, agent.CodeChunkDamaged) {
		return h, err
	}
	if !ok { // damaged, or just replaced: then the write finds its place taken
		h = store.Head{Session: session, Version: list[0].version}
	}
	return h, nil
}

// head reads the head in a place. ok is false if it is no longer there.
func (s *Store) head(ctx context.Context, p place) (h store.Head, ok bool, err error) {
	data, err := s.read(ctx, p.key())
	if missing(err) || err == nil && string(data) == emptied {
		return h, false, nil
	}
	if err != nil {
		return h, false, s.unavailable(err, "reading the head of session %s from", p.session)
	}
	err = json.Unmarshal(data, &h)
	if err == nil && (h.Session != p.session || h.Version != p.version) {
		err = errors.New("it belongs to another session")
	}
	if err != nil {
		return store.Head{Session: p.session}, false, agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: %w; see %s in %s", p.session, err, p.key(), s.name)
	}
	return h, true, nil
}

// PutHead implements [store.Store]. If the stored head can't be read, the version of its
// place counts.
func (s *Store) PutHead(ctx context.Context, h store.Head) error {
	const most = 100 // places that are tidied at once
	data, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding the head of session %s: %w", h.Session, err)
	}
	// The size tells heads from tombstones, so a head has to be larger.
	data = padded(data, tombstoneSize+1)
	if err := s.checkCondition(ctx); err != nil {
		return err
	}
	look := s.now().Round(0) // wall time: the monotonic clock stops while a machine sleeps
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.places(within, h.Session, most)
	if err != nil {
		return s.unavailable(err, "looking for the head of session %s in", h.Session)
	}
	old, err := s.stored(within, h.Session, list)
	if err != nil {
		return err
	}
	if err := h.CheckReplaces(old); err != nil {
		return err
	}
	next := place{session: h.Session, version: h.Version}
	switch err := s.create(within, next.key(), data); {
	case taken(err):
		return agent.Errorf(agent.CodeStale, "the head of session %s has version %d already: another run wrote it", h.Session, h.Version)
	case err != nil:
		return s.unavailable(err, "writing the head of session %s to", h.Session)
	case s.now().Sub(look) > patience:
		return s.checkLate(ctx, next)
	}
	// Here and not only in Heads: a session that is written often would pile up versions.
	if len(list) > 0 {
		_ = s.tidy(within, list, false) // the head is written, so an error here does not matter
	}
	return nil
}

// checkLate checks a write that took too long. Its place may have been taken and removed
// meanwhile, so that the session is beyond it. Then the written head is removed.
func (s *Store) checkLate(ctx context.Context, written place) error {
	list, err := s.places(ctx, written.session, 1)
	left := tombstone{}
	if err == nil {
		left, err = s.readTombstone(ctx, goneKey(written.session))
	}
	if err != nil {
		return s.unavailable(err, "looking for the head of session %s in", written.session)
	}
	// Still the newest, and no deletion came after it: the late write did no harm.
	if len(list) > 0 && list[0].version == written.version && left.Version < written.version {
		return nil
	}
	if err := s.remove(ctx, written.key()); err != nil {
		return s.unavailable(err, "removing a late head of session %s from", written.session)
	}
	return agent.Errorf(agent.CodeStale, "the head of session %s had version %d long before: another run wrote it", written.session, written.version)
}

// DeleteHead implements [store.Store]. If the stored head can't be read, the version of
// its place counts.
func (s *Store) DeleteHead(ctx context.Context, session string, version int64) error {
	if err := s.checkCondition(ctx); err != nil {
		return err
	}
	for range tries {
		list, err := s.createTombstone(ctx, session, version)
		if err == nil {
			err = s.emptyOld(ctx, list)
		}
		if err == nil || errors.Is(err, agent.CodeStale) {
			return err
		}
		if !taken(err) { // otherwise it was written or deleted since: look again
			return s.unavailable(err, "deleting the head of session %s from", session)
		}
	}
	return s.unavailable(errBusy, "deleting the head of session %s from", session)
}

// createTombstone creates a session's tombstone under the key of its next version, if there is none yet.
// It returns the session's places from before.
func (s *Store) createTombstone(ctx context.Context, session string, version int64) ([]place, error) {
	const most = 1000 // Heads removes those beyond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.places(ctx, session, most)
	if err != nil || len(list) == 0 || list[0].deleted() {
		return list, err
	}
	top := list[0]
	if top.version != version {
		return nil, agent.Errorf(agent.CodeStale, "the head of session %s has version %d, not %d: another run wrote it", session, top.version, version)
	}
	h, _, err := s.head(ctx, top) // if it can't be read, the version of its place counts
	if err != nil && !errors.Is(err, agent.CodeChunkDamaged) {
		return nil, err
	}
	top.version++
	return list, s.create(ctx, top.key(), tombstone{top.version, h.Fence}.encode())
}

// emptyOld overwrites the old versions of a deleted session. Their keys stay, only to keep
// slow writers out.
func (s *Store) emptyOld(ctx context.Context, list []place) error {
	for _, p := range list {
		if p.deleted() {
			continue // its fence is still needed
		}
		if err := s.write(ctx, p.key(), []byte(emptied)); err != nil {
			return err
		}
	}
	return nil
}

// Heads implements [store.Store]. It also removes old versions, if it has the right to.
func (s *Store) Heads(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
	return func(yield func(store.Head, error) bool) {
		may := true // remove something
		tell := func(list []place) bool {
			if len(list) == 0 {
				return true
			}
			if may {
				may = s.tidy(ctx, list, true) == nil
			}
			return s.tell(ctx, list[0], yield)
		}
		var list []place // of one session
		for o, err := range s.list(ctx, headPrefix(prefix)) {
			if err != nil {
				yield(store.Head{}, s.unavailable(err, "listing the sessions of"))
				return
			}
			p, ok := placeOf(o)
			if !ok {
				continue // not ours
			}
			if len(list) > 0 && list[0].session != p.session {
				if !tell(list) {
					return
				}
				list = list[:0]
			}
			list = append(list, p)
		}
		tell(list)
	}
}

// tell yields the head in the newest place of a session, if there is one. It returns
// whether the iteration continues.
func (s *Store) tell(ctx context.Context, newest place, yield func(store.Head, error) bool) bool {
	if newest.deleted() {
		return true
	}
	h, ok, err := s.head(ctx, newest)
	if !ok && err == nil { // written or deleted since
		h, err = s.Head(ctx, newest.session)
	}
	if errors.Is(err, agent.CodeNotFound) {
		return true
	}
	return yield(h, err) && (err == nil || errors.Is(err, agent.CodeChunkDamaged))
}
