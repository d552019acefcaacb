package loop

import (
	"cmp"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
)

// maxPrincipal bounds a principal in the state, by its length in JSON.
const maxPrincipal = maxBy

// beginMemory decides whose memory the session uses, once: that of who starts it, or who started the
// tree that it belongs to.
func (s *step) beginMemory() {
	if s.Counters.Principal != "" || !s.needsPrincipal() {
		return
	}
	by := s.Origin.Start.By
	if b := s.Parent.Start; b != nil {
		by = b.Principal
	}
	s.Counters.Principal = fit(cmp.Or(by, agent.AnonymousPrincipal), maxPrincipal)
}

// needsPrincipal reports whether the run, or a sub-agent of it, may have the tool memory.
func (s *step) needsPrincipal() bool {
	if _, has := s.Spec.Tool(agent.MemoryTool); has {
		return true
	}
	return slices.ContainsFunc(s.Spec.Agents, func(a agent.SubAgent) bool {
		return s.isFlow() || glob.MatchesAny(a.Tools, agent.MemoryTool)
	})
}

// importMemory decides whose memory an imported session uses: that of who imports it, whatever its
// state says.
func (s *step) importMemory(by string) {
	if s.Counters.Principal != "" {
		s.Counters.Principal = fit(cmp.Or(by, agent.AnonymousPrincipal), maxPrincipal)
	}
}

// memoryOf returns whose memory a call uses; empty for other tools.
func (s *step) memoryOf(c Call) string {
	if c.Tool != agent.MemoryTool {
		return ""
	}
	return s.Counters.Principal
}

// principal returns who started the tree, for the memories of sub-agents.
func (s *step) principal() string {
	if b := s.Parent.Start; b != nil {
		return b.Principal
	}
	return s.Counters.Principal
}
