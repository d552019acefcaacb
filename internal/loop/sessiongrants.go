package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// An approval may be for the whole session: then later runs of it make calls of the tool unasked, too, if
// the same principal has started them with the same agent. The session's head hands such grants on.

const (
	// maxGrants bounds how many grants are kept. The oldest is forgotten, and asked for again.
	maxGrants = 8
	// maxGranter bounds the name of who proved that they may approve, in bytes of JSON.
	maxGranter = 128
)

// inheritGrants keeps what the session's earlier runs were granted, unless the run begins elsewhere than
// they ended: something else was approved.
func (s *step) inheritGrants() {
	if s.Origin.Start.From != nil || s.Origin.Start.Carry == agent.CarryReset {
		s.Counters.Grants = nil
	}
}

// allowInSession lets the session's later runs make calls of a tool without an approval. approver is whom
// a token proved.
func (s *step) allowInSession(tool, approver string) {
	kept := slices.DeleteFunc(slices.Clone(s.Counters.Grants), func(g remembered.Grant) bool { return s.grants(g, tool) })
	kept = append(kept, remembered.Grant{Agent: s.agent(), Tool: tool, Starter: starterDigest(s.Origin.By), Approver: approver})
	s.Counters.Grants = kept[max(0, len(kept)-maxGrants):]
}

// starterDigest names who starts runs. Their names may be long.
func starterDigest(by string) string {
	sum := sha256.Sum256([]byte(by))
	return hex.EncodeToString(sum[:8])
}

// grants reports whether a grant is for a tool in this run.
func (s *step) grants(g remembered.Grant, tool string) bool {
	return g.Agent == s.agent() && g.Tool == tool && s.Origin.By != "" && g.Starter == starterDigest(s.Origin.By)
}

// allowed reports whether calls of a tool were approved for the run, or for the session by somebody who
// may approve in this run, too: its policy may be another one.
func (s *step) allowed(tool string) bool {
	return slices.Contains(s.Requests.Always, tool) || slices.ContainsFunc(s.Counters.Grants, func(g remembered.Grant) bool {
		return s.grants(g, tool) && s.Policy().Refuses(s.Labels(), agent.VerbApprove, g.Approver) == nil
	})
}

// mayAllowInSession returns why an approval can't be for the whole session; nil if it can.
func (s *step) mayAllowInSession(approver string) error {
	why := ""
	switch {
	case s.Spec.Stateless:
		why = "agent " + s.agent() + " keeps no session"
	case s.Parent.Start != nil:
		why = "a sub-agent's session has no later runs"
	case s.Origin.By == "":
		why = "nobody is named as who started this run, so no later run could be known as theirs: name who starts runs (by of a start; fermata run takes USER)"
	case jsonLen(approver) > maxGranter:
		why = "the approver's name is too long to be kept"
	default:
		return nil
	}
	return s.refuseAs(agent.CodeInvalidInput, "always_in_session", "%s; or use always, which holds for this run", why)
}
