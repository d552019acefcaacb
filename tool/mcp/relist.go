package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// maxRelists is how often the tools of one run may change. Each change is an event in its
// log.
const maxRelists = 16

// knownTools is what a run knows of the server's tools, as far as this process reported it.
type knownTools struct {
	link     *link // the link that counts the notices
	news     int   // how many notices there were when the tools were listed
	signedIn bool  // somebody has signed in since
	digest   [sha256.Size]byte
	times    int
}

// Relist lists the tools again if the server said since the last time that they changed,
// or if somebody signed in. It reports whether they differ; nil and false otherwise. A
// run's tools change at most 16 times.
func (s *Server) Relist(ctx context.Context, session, run string) ([]agent.ToolSpec, bool) {
	h := s.knownToolsOf(owner{session, run})
	s.mu.Lock()
	l := s.current(s.ownerFor(session, run))
	if l == nil || h.times >= maxRelists {
		s.mu.Unlock()
		return nil, false
	}
	news := l.changeNotices()
	// The tools of a new connection count from its own first notice.
	if h.link != l {
		h.link, h.news = l, 0
	}
	if news == h.news && !h.signedIn {
		s.mu.Unlock()
		return nil, false
	}
	before := h.digest
	// Not while the lock is held: with and list take it themselves and wait for the
	// server.
	s.mu.Unlock()
	var specs []agent.ToolSpec
	err := s.with(ctx, s.ownerFor(session, run), func(l *link) (err error) {
		specs, _, err = s.list(ctx, l)
		return err
	})
	if err != nil {
		s.log.Warn("MCP server's tools changed, but listing them failed", "session", session, "error", err)
		return nil, false
	}
	after := digestOf(specs)
	s.mu.Lock()
	// news was read before the list, so a notice that came meanwhile lists again next
	// time.
	defer s.mu.Unlock()
	h.news, h.signedIn, h.digest = news, false, after
	if after == before {
		return nil, false
	}
	h.times++
	return specs, true
}

// knownToolsOf returns what a run knows, and begins to keep it.
func (s *Server) knownToolsOf(who owner) *knownTools {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.toolsKnown[who]
	if h == nil {
		for other := range s.toolsKnown {
			if len(s.toolsKnown) < maxMemory {
				break
			}
			delete(s.toolsKnown, other) // that run lists its tools once more
		}
		h = &knownTools{}
		s.toolsKnown[who] = h
	}
	return h
}

// recordTools records what a run got when it asked for its tools.
func (s *Server) recordTools(ctx context.Context, specs []agent.ToolSpec) {
	session, run := tool.CallerOf(ctx)
	if session == "" {
		return
	}
	h := s.knownToolsOf(owner{session, run})
	s.mu.Lock()
	defer s.mu.Unlock()
	h.digest = digestOf(specs)
}

// current returns an owner's link, or nil if there is none. The caller holds mu.
func (s *Server) current(who owner) *link {
	where := s.slots[who]
	if where == nil {
		where = s.shared
	}
	return where.live
}

func (l *link) changeNotices() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// digestOf identifies a set of tools, in any order.
func digestOf(specs []agent.ToolSpec) [sha256.Size]byte {
	sorted := slices.Clone(specs)
	slices.SortFunc(sorted, func(a, b agent.ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
	raw, _ := json.Marshal(sorted) // out of JSON
	return sha256.Sum256(raw)
}
