package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// TokenClaim returns what a token has to claim so that a principal may send a verb to a
// session's live run now. request is the request to decide; it is empty for verbs that
// decide none. The caller, who has authenticated the principal, adds Expires and, for an
// approval, Edits and Always. [signals.Signer.Mint] then makes the token.
//
// Errors are [agent.CodeNotFound] if the request is not open, and [agent.CodeDenied] if
// it names approvers and the principal is none of them. [agent.CodeInvalidInput] is for a
// verb without its request. Other errors are those of [Run.Status].
func (c *Client) TokenClaim(ctx context.Context, session string, verb agent.Verb, request, principal string) (signals.Claim, error) {
	decides := slices.Contains([]agent.Verb{agent.VerbAnswer, agent.VerbApprove, agent.VerbReject}, verb)
	switch {
	case verb == agent.VerbAnswers || !slices.Contains(signals.Verbs, verb):
		return signals.Claim{}, agent.Errorf(agent.CodeInvalidInput, "no token is for the verb %q; of several answers each has its own", verb).WithPath("verb")
	case decides == (request == ""):
		return signals.Claim{}, agent.Errorf(agent.CodeInvalidInput, "answer, approve and reject want a request, and no other verb does").WithPath("request")
	}
	s, err := signals.Status.Ask(ctx, c.temporal, session, "", signals.None{})
	if err != nil {
		return signals.Claim{}, fmt.Errorf("asking session %s where it stands: %w", session, err)
	}
	claim := signals.Claim{Session: session, Execution: s.Execution, Verb: verb, Request: request, Principal: principal}
	if !decides {
		return claim, nil
	}
	open := s.OpenRequests()
	i := slices.IndexFunc(open, func(q agent.Request) bool { return q.ID == request })
	if i < 0 {
		return signals.Claim{}, missing(s, request, open)
	}
	if named := open[i].Approvers; len(named) > 0 && !slices.Contains(named, principal) {
		return signals.Claim{}, agent.Errorf(agent.CodeDenied, "request %s has no approver %q; it names %s", request, principal, strings.Join(named, ", "))
	}
	// Only an approval: the digest binds the token to the arguments that the approver
	// saw.
	if verb == agent.VerbApprove {
		claim.Digest = open[i].Digest
	}
	return claim, nil
}
