package loop

import (
	"cmp"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
)

// beginMemory decides whose memory the session uses, once: that of who starts it, or who started the
// tree that it belongs to. A sub-agent whose parent passes no principal has no memory. The principal
// is never cut: a start's by is short, and two principals may begin alike.
func (s *step) beginMemory() {
	if s.Counters.Principal != "" || !s.needsPrincipal() {
		return
	}
	if b := s.Parent.Start; b != nil {
		s.Counters.Principal = b.Principal
		return
	}
	s.Counters.Principal = cmp.Or(s.Origin.Start.By, agent.AnonymousPrincipal)
}

// needsPrincipal reports whether the run, a sub-agent of it, or an agent that checks its answers may
// have the tool memory. The tools of agents further below are among those of an entry here.
func (s *step) needsPrincipal() bool {
	if _, has := s.Spec.Tool(agent.MemoryTool); has {
		return true
	}
	remembers := func(tools []string) bool { return s.isFlow() || glob.MatchesAny(tools, agent.MemoryTool) }
	return slices.ContainsFunc(s.Spec.Agents, func(a agent.SubAgent) bool { return remembers(a.Tools) }) ||
		slices.ContainsFunc(s.Spec.Checks(), func(k agent.Check) bool { return k.Agent != "" && remembers(k.Tools) })
}

// importMemory decides whose memory an imported session uses: that of who imports it, whatever its
// state says.
func (s *step) importMemory(by string) {
	if s.Counters.Principal != "" {
		s.Counters.Principal = cmp.Or(by, agent.AnonymousPrincipal)
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
