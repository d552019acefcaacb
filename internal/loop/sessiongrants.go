package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// An approval may be for the whole session: then later runs of it make calls of the tool unasked, too, if
// the same principal has started them with the same agent. The session's head hands such grants on.

// maxGrants bounds how many grants are kept. The oldest is forgotten, and asked for again.
const maxGrants = 8

// inheritGrants keeps what the session's earlier runs were granted, unless the run begins elsewhere than
// they ended: something else was approved.
func (s *step) inheritGrants() {
	if s.Origin.Start.From != nil || s.Origin.Start.Carry == agent.CarryReset {
		s.Counters.Grants = nil
	}
}

// sessionGrant returns a grant of all calls of a tool, as this run may use it.
func (s *step) sessionGrant(tool string) remembered.Grant {
	return remembered.Grant{Agent: s.agent(), Tool: tool, Starter: s.Origin.By}
}

// allowInSession lets the session's later runs make calls of a tool without an approval.
func (s *step) allowInSession(tool string) {
	g := s.sessionGrant(tool)
	if slices.Contains(s.Counters.Grants, g) {
		return
	}
	kept := append(slices.Clip(s.Counters.Grants), g)
	s.Counters.Grants = kept[max(0, len(kept)-maxGrants):]
}

// allowed reports whether calls of a tool were approved for the run, or for the session.
func (s *step) allowed(tool string) bool {
	g := s.sessionGrant(tool)
	return slices.Contains(s.Requests.Always, tool) || g.Starter != "" && slices.Contains(s.Counters.Grants, g)
}

// mayAllowInSession returns why an approval can't be for the whole session; nil if it can.
func (s *step) mayAllowInSession() error {
	switch {
	case s.Spec.Stateless:
		return s.refuseAs(agent.CodeInvalidInput, "always_in_session", "agent %s keeps no session: use always, which holds for this run", s.agent())
	case s.Origin.By == "":
		return s.refuseAs(agent.CodeInvalidInput, "always_in_session", "nobody is named as who started this run, so no later run could be known as theirs: name who starts runs (by), or use always")
	}
	return nil
}
