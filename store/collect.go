package store

import (
	"context"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// CollectResult says what a collection found and deleted.
type CollectResult struct {
	Sessions int `json:"sessions"` // in the store
	Chunks   int `json:"chunks"`   // in the store
	// Deleted counts the chunks that no session needs and that are old enough, and Bytes
	// their size. A dry collection counts what it would delete.
	Deleted int   `json:"deleted"`
	Bytes   int64 `json:"bytes"`
	// Left counts chunks that stay although no session is known to need them: young ones,
	// and those of sessions that can't be read.
	Left int `json:"left"`
	// Faults are the sessions that can't be read, and entries that are neither a chunk
	// nor an edge. The chunks of these sessions, and of those that they were forked from,
	// stay.
	Faults []Fault `json:"faults,omitempty"`
}

// Collect deletes the chunks that no session needs and that were last put longer ago than
// older. A dry collection only counts them. It may be called while sessions are written.
// So older has to be longer than the time between the put of a chunk and of the head that
// names it, plus the difference of clocks; an hour is plenty. It reads names, heads and a
// few envelopes, session by session. If it is interrupted, what it did stays done, and
// the next call does the rest.
//
// A session that can't be read keeps its chunks and is listed in Faults. If a head does
// not even say which session it belongs to, the chunks of all sessions without a head
// stay too. Errors are [agent.CodeStoreUnavailable], and [agent.CodeInvalidInput] for a
// negative time. The result also counts what was deleted before an error.
func (l *Log) Collect(ctx context.Context, older time.Duration, dry bool) (CollectResult, error) {
	c := &collection{Log: l, dry: dry, heads: map[string]string{}, broken: map[string]bool{}}
	if older < 0 {
		return c.done, agent.Errorf(agent.CodeInvalidInput, "collecting chunks that are older than %s: name a time that is not negative", older)
	}
	// Deleted chunks must not stay in memory.
	if !dry {
		defer l.forget()
	}
	// Before the heads are read: a chunk that is put later is always too young.
	c.before = time.Now().Add(-older)
	if err := c.sessions(ctx); err != nil {
		return c.done, err
	}
	var group []ChunkInfo // the chunks of one tag
	for info, err := range l.store.Chunks(ctx, "") {
		if err != nil {
			return c.done, err
		}
		if len(group) > 0 && tagOf(group[0].Name) != tagOf(info.Name) {
			if err := c.group(ctx, group); err != nil {
				return c.done, err
			}
			group = group[:0]
		}
		// One session at a time, so memory does not grow with the store.
		if tagOf(info.Name) != "" { // others are not ours
			group = append(group, info)
		}
	}
	return c.done, c.group(ctx, group)
}

// collection is one Collect in progress.
type collection struct {
	*Log
	before  time.Time
	dry     bool
	heads   map[string]string // names of sessions, by tag
	broken  map[string]bool   // tags of sessions that can't be read
	unnamed bool              // a head can't be read and does not name its session
	done    CollectResult
}

// sessions reads the heads.
func (c *collection) sessions(ctx context.Context) error {
	for h, err := range c.store.Heads(ctx, "") {
		if err == nil {
			err = h.sound()
		}
		if !isMemory(h.Session) {
			c.done.Sessions++
		}
		switch {
		case err == nil:
			c.heads[ChunkPrefix(h.Session)] = h.Session
		case !lasting(err):
			return err
		default:
			c.done.Faults = append(c.done.Faults, *faultOf(h.Session, "", err))
			// Its chunks may be needed, so all of them stay.
			c.broken[ChunkPrefix(h.Session)] = true
			c.unnamed = c.unnamed || h.Session == ""
		}
	}
	return nil
}

// group collects the chunks of one session. They were listed before the session is read.
// So what it needs later is in its chain already, or is too young.
func (c *collection) group(ctx context.Context, group []ChunkInfo) error {
	if len(group) == 0 {
		return nil
	}
	tag := tagOf(group[0].Name)
	session := c.heads[tag]
	n := &needs{}
	// An unnamed head may belong to any session without a head.
	keep := c.broken[tag] || c.unnamed && session == ""
	if !keep {
		var err error
		if n, err = c.needsOf(ctx, tag, session, c.before, func(string) bool { return false }); err != nil {
			return err
		}
		c.done.Faults = append(c.done.Faults, n.odd...)
		if keep = n.fault != nil; keep {
			c.done.Faults = append(c.done.Faults, *n.fault)
		}
	}
	for _, info := range group {
		// Edges are deleted below, if no session stands for them.
		if !isChunk(info.Name) {
			continue
		}
		c.done.Chunks++
		switch {
		case keep:
			c.done.Left++
		// Nobody needs it; sweep still checks its age.
		case n.by[info.Name] == nil:
			if err := c.sweep(ctx, info); err != nil {
				return err
			}
		}
	}
	for _, e := range n.gone {
		if c.dry {
			break
		}
		if _, err := c.delete(ctx, e.Name); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a chunk if it is old, and reports whether it is gone. An entry that is
// no chunk becomes a fault, and the collection continues.
func (c *collection) delete(ctx context.Context, name string) (gone bool, err error) {
	if gone, err = c.store.DeleteChunk(ctx, name, c.before); err != nil && lasting(err) {
		c.done.Faults = append(c.done.Faults, *faultOf("", name, err))
		return false, nil
	}
	return gone, err
}

// sweep deletes an unneeded chunk if it is old.
func (c *collection) sweep(ctx context.Context, info ChunkInfo) error {
	gone := info.Put.Before(c.before)
	if gone && info.Put.After(c.before.Add(-UnusedFile)) {
		waits, err := c.isFile(ctx, info.Name)
		if err != nil {
			return err
		}
		gone = !waits
	}
	if gone && !c.dry {
		var err error
		if gone, err = c.delete(ctx, info.Name); err != nil {
			return err
		}
	}
	if !gone {
		c.done.Left++
		return nil
	}
	c.done.Deleted++
	c.done.Bytes += info.Size
	return nil
}
