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

// maxRelists is how often the tools of one run may change. Each time stands in its log.
const maxRelists = 16

// heardOf is what a run knows of the server's tools, as far as this process has told it.
type heardOf struct {
	link   *link // whose notices are counted
	news   int   // of them, when the tools were listed
	anew   bool  // somebody has signed in since
	digest [sha256.Size]byte
	times  int
}

// Relist lists the tools of a session's run where the server has said since the last time
// that it has others, or somebody has signed in, and reports whether that is so. A run's
// tools change 16 times at most.
func (s *Server) Relist(ctx context.Context, session, run string) ([]agent.ToolSpec, bool) {
	h := s.heardBy(owner{session, run})
	s.mu.Lock()
	l := s.current(s.ownerFor(session, run))
	if l == nil || h.times >= maxRelists {
		s.mu.Unlock()
		return nil, false
	}
	news := l.heardNews()
	if h.link != l {
		h.link, h.news = l, 0
	}
	if news == h.news && !h.anew {
		s.mu.Unlock()
		return nil, false
	}
	before := h.digest
	s.mu.Unlock()
	var specs []agent.ToolSpec
	err := s.with(ctx, s.ownerFor(session, run), func(l *link) (err error) {
		specs, _, err = s.list(ctx, l)
		return err
	})
	if err != nil {
		s.log.Warn("MCP server has other tools, and does not list them", "session", session, "error", err)
		return nil, false
	}
	after := digestOf(specs)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.news, h.anew, h.digest = news, false, after
	if after == before {
		return nil, false
	}
	h.times++
	return specs, true
}

// heardBy is what a run knows.
func (s *Server) heardBy(who owner) *heardOf {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heard[who]
	if h == nil {
		for other := range s.heard {
			if len(s.heard) < maxMemory {
				break
			}
			delete(s.heard, other) // it hears of its tools once more
		}
		h = &heardOf{}
		s.heard[who] = h
	}
	return h
}

// told notes what a run was told when it asked.
func (s *Server) told(ctx context.Context, specs []agent.ToolSpec) {
	session, run := tool.CallerOf(ctx)
	if session == "" {
		return
	}
	h := s.heardBy(owner{session, run})
	s.mu.Lock()
	defer s.mu.Unlock()
	h.digest = digestOf(specs)
}

// current is an owner's link; nil if there is none. The caller holds mu.
func (s *Server) current(who owner) *link {
	where := s.slots[who]
	if where == nil {
		where = s.shared
	}
	return where.live
}

func (l *link) heardNews() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// digestOf is what tools are known by, in whatever order they are listed.
func digestOf(specs []agent.ToolSpec) [sha256.Size]byte {
	sorted := slices.Clone(specs)
	slices.SortFunc(sorted, func(a, b agent.ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
	raw, _ := json.Marshal(sorted) // out of JSON
	return sha256.Sum256(raw)
}
