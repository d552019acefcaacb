package remembered

import "github.com/fermata-agents/fermata/agent"

// Counters are the numbers of the session's last suspension, request, hold, child and artifact. They count
// over the session's life, and no number is used twice, even if a run begins from a checkpoint:
// yesterday's button must not approve today's question (docs/wire.md §2). Temporal's reset of a workflow
// takes them back with the run: tokens then differ by the execution, but versions of artifacts are used
// again (decision 0048).
type Counters struct {
	Suspension int `json:"suspension,omitempty"`
	Request    int `json:"request,omitempty"`
	Hold       int `json:"hold,omitempty"`
	Child      int `json:"child,omitempty"`
	// Artifact is the highest version that any artifact has had. ArtifactFloor is what it was when a
	// run last began without some of the session's artifacts: each later version is higher.
	Artifact      int `json:"artifact,omitempty"`
	ArtifactFloor int `json:"artifact_floor,omitempty"`
	// Skill is 1 once a skill was active in the session: the next run reads which ones still are.
	Skill int `json:"skill,omitempty"`
	// Principal is who started the session, for the tool memory: the first who ran an agent that has
	// it. It never changes, so a later message from somebody else brings no other memory into it.
	Principal string `json:"principal,omitempty"`
	// Lesson is how many lessons the session's runs have learned.
	Lesson int `json:"lesson,omitempty"`
	// Grants are the last approvals for the whole session.
	Grants []Grant `json:"grants,omitempty"`
}

// Grant is an approval of all calls of a tool in a session.
type Grant struct {
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
	// Starter is a digest of who started the run in which it was given. It holds for their runs.
	Starter string `json:"starter"`
	// Approver is whom a token proved; empty without one. It holds where they may approve.
	Approver string `json:"approver,omitempty"`
}

// Receipt remembers a message or an event that came with an id, and the run that accepted it. If
// the same one comes again, the session accepts it once.
type Receipt struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Digest identifies the content: see [MessageDigest] and [EventDigest].
	Digest string `json:"digest"`
}

// Check returns nil if the receipt has this digest. Otherwise the id was used for something else,
// and it returns [agent.CodeInvalidInput].
func (r Receipt) Check(digest string) error {
	if r.Digest == digest {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "id %s is that of something else, which run %s has; use a new id for what is new", r.ID, r.Run).WithPath("id")
}
