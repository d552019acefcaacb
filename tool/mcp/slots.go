package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/tool"
)

// Per says who shares a process, or a session over HTTP.
type Per string

const (
	// PerSession separates the server's state by session of Fermata. A process that its
	// session has not called for ten minutes is ended.
	PerSession Per = "session"
	// PerRun also separates it by run of a session.
	PerRun Per = "run"
	// PerWorker lets all calls of this process share it. Choose it for servers that keep
	// no state, or only state that every session may know.
	PerWorker Per = "worker"
)

const (
	// maxSlots is how many sessions or runs have a process each. One more ends the
	// process that was unused for longest.
	maxSlots = 32
	// idleTime is how long a process may be unused.
	idleTime = 10 * time.Minute
)

// owner is whom a server's state belongs to. The zero owner means that all share it.
type owner struct{ session, run string }

// slot holds one owner's server.
type slot struct {
	live  *link  // the server that started last; it may have ended since
	next  *start // one that is starting
	busy  int    // how many use it
	used  bool   // a call was made in it, so it may keep state
	since time.Time
	as    *login // see OAuth; nil if nobody signs in
}

// start is a server that is being started, on behalf of all who wait for it.
type start struct {
	cancel context.CancelFunc
	done   chan struct{}
	link   *link
	err    error
}

// ownerOf returns the owner of a call's server; the zero owner if all share one.
func (s *Server) ownerOf(c *tool.Call) owner { return s.ownerFor(c.Session, c.Run) }

func (s *Server) ownerFor(session, run string) owner {
	switch {
	case s.opts.Per == PerWorker || session == "":
		return owner{}
	case s.opts.Per == PerRun:
		return owner{session, run}
	}
	return owner{session: session}
}

// share records that the shared server may now keep state of a call.
func (s *Server) share() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared.used = true
}

// linked returns the running server of an owner. The caller must call done after use.
func (s *Server) linked(ctx context.Context, who owner) (l *link, done func(), err error) {
	if who != (owner{}) && s.url != nil && s.opts.Per == "" && !s.people() {
		// Only the handshake shows whether the server keeps state, so begin with the
		// shared link.
		l, done, err := s.linked(ctx, owner{})
		if err != nil || !l.keeps {
			return l, done, err
		}
		done()
	}
	where, err := s.take(who)
	if err != nil {
		return nil, nil, err
	}
	l, err = s.connected(ctx, where)
	if err != nil {
		s.release(who, where)
		return nil, nil, err
	}
	return l, func() { s.release(who, where) }, nil
}

// take returns an owner's slot. If the shared server was only asked for its tools, its
// first caller takes it over.
func (s *Server) take(who owner) (*slot, error) {
	as := s.loginOf(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	where := s.shared
	if who != (owner{}) {
		var ok bool
		if where, ok = s.slots[who]; !ok {
			if len(s.slots) >= maxSlots && !s.evict() {
				return nil, fmt.Errorf("the MCP server %s is used by %d sessions at once, and no more are served by this worker; nothing was done", s.name, maxSlots)
			}
			where = s.shared
			// A used server may keep state of somebody else; another login has other
			// rights.
			if where.busy > 0 || where.used || where.as != as || s.closed {
				where = &slot{}
			} else {
				s.shared = &slot{}
			}
			s.slots[who] = where
		}
	}
	where.as = as
	where.busy++
	return where, nil
}

func (s *Server) release(who owner, where *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	where.busy--
	where.since = time.Now()
	if who != (owner{}) && where.busy == 0 {
		time.AfterFunc(idleTime, func() { s.expire(who, where) })
	}
}

// expire ends a server that was unused for long.
func (s *Server) expire(who owner, where *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[who] == where && where.busy == 0 && time.Since(where.since) >= idleTime {
		s.drop(who)
	}
}

// evict ends the server that was unused for longest; false if all are in use. The caller
// holds mu.
func (s *Server) evict() bool {
	oldest, any := owner{}, false
	for who, each := range s.slots {
		if each.busy == 0 && (!any || each.since.Before(s.slots[oldest].since)) {
			oldest, any = who, true
		}
	}
	if !any {
		return false
	}
	s.drop(oldest)
	return true
}

// drop removes a slot that nobody uses. The caller holds mu.
func (s *Server) drop(who owner) {
	where := s.slots[who]
	delete(s.slots, who)
	if s.closed {
		return // Close ends it
	}
	if where.live != nil {
		where.live.peer.leave(errGivenUp) // handshakeDone then does not log its end as a failure
	}
	s.ending.Go(func() {
		s.halt(where)
		s.stop(where)
		s.log.Info("MCP server of an idle session was ended")
	})
}

// halt cancels a start that is in progress, and waits for it.
func (s *Server) halt(where *slot) {
	s.mu.Lock()
	next := where.next
	s.mu.Unlock()
	if next != nil {
		next.cancel()
		<-next.done
	}
}

// stop ends a slot's server. It reports whether the server has ended.
func (s *Server) stop(where *slot) bool {
	s.mu.Lock()
	live := where.live
	s.mu.Unlock()
	return live == nil || live.peer.stop()
}

// connected returns the running server. If there is none it is started, once for all who
// wait. A caller who stops waiting does not disturb the others.
func (s *Server) connected(ctx context.Context, where *slot) (*link, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, s.errClosed()
	}
	if where.live != nil && where.live.peer.broken() == nil {
		defer s.mu.Unlock()
		return where.live, nil
	}
	next := where.next
	if next == nil {
		// Not the caller's context: the others wait for this start, too.
		begin, cancel := withStartTimeout(context.Background(), s.opts.startTimeout())
		next = &start{cancel: cancel, done: make(chan struct{})}
		where.next = next
		go s.begin(begin, where, next)
	}
	s.mu.Unlock()
	select {
	case <-next.done:
		return next.link, next.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the MCP server %s to start: %w", s.name, context.Cause(ctx))
	}
}

func (s *Server) begin(ctx context.Context, where *slot, next *start) {
	defer next.cancel()
	s.mu.Lock()
	last, as := where.live, where.as
	s.mu.Unlock()
	// Outside the lock: this waits for calls that still run on it.
	if last != nil {
		last.peer.retire()
	}
	next.link, next.err = s.dial(ctx, as)
	s.mu.Lock()
	if where.next = nil; next.err == nil {
		where.live = next.link
	}
	s.mu.Unlock()
	if next.err != nil {
		s.log.Warn("MCP server did not start", "error", next.err)
	}
	close(next.done)
}
