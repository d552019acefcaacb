package loop

import "github.com/fermata-agents/fermata/agent"

// Refreshing is the part that renews the agent's instructions after each suspension, if the Spec has
// refresh_on_resume.
type Refreshing struct {
	// Digest is that of the instructions that the run has, without those of its sources.
	Digest string `json:"digest,omitempty"`
	// Due means that a suspension has ended since they were read, and Fetching that they were asked for. The
	// next turn waits for both.
	Due      bool `json:"due,omitempty"`
	Fetching bool `json:"fetching,omitempty"`
}

// pending reports whether the next turn has to wait for instructions.
func (r Refreshing) pending() bool { return r.Due || r.Fetching }

// has keeps which instructions the run has.
func (r *Refreshing) has(digest string) { r.Digest = digest }

// setDue notes that a suspension has ended. fetch notes that the instructions were asked for, and fetched
// that they have come, or can't.
func (r *Refreshing) setDue()  { r.Due = true }
func (r *Refreshing) fetch()   { r.Due, r.Fetching = false, true }
func (r *Refreshing) fetched() { r.Fetching = false }

// refreshes reports whether the agent says to renew its instructions after each suspension.
func (s *State) refreshes() bool { return s.Spec != nil && s.Spec.RefreshOnResume && !s.isFlow() }

// knowInstructions keeps which instructions the run has, so that the same ones are not recorded again.
func (s *step) knowInstructions(digest string) {
	if s.refreshes() {
		s.Refreshing.has(digest)
	}
}

// knowOwnInstructions keeps which instructions the run begins with. The state has no texts later.
func (s *step) knowOwnInstructions() {
	if s.refreshes() {
		s.Refreshing.has(agent.NewInstructions(s.Spec.Instructions, "").Digest)
	}
}

// refreshLater lets the next turn wait for the agent's newest instructions, after a suspension. A resume with
// refresh has brought them already.
func (s *step) refreshLater() {
	if s.refreshes() && !s.gotInstructions {
		s.Refreshing.setDue()
	}
}

// mustRefresh reports whether the instructions have to be read now. A stop keeps those that the run has.
func (s *step) mustRefresh() bool {
	return s.Refreshing.Due && s.Phase == RunActive && s.Suspensions.Open == nil && s.End.Stopping == nil
}

func (s *step) refreshInstructions() {
	s.Refreshing.fetch()
	s.do(Refresh{RefreshArgs{Agent: s.agent(), Known: s.Refreshing.Digest, Policy: true}})
}

// refreshedByPolicy takes the newest instructions. If there are none, the run goes on with those that it has: it
// must not be stuck or fail for a build, since maybe no person looks at it.
func (s *step) refreshedByPolicy(in Refreshed) error {
	if !s.Refreshing.Fetching {
		return s.refuse("the run does not wait for instructions")
	}
	s.Refreshing.fetched()
	switch {
	case s.End.Stopping != nil || s.outcomeDecided(): // no turn follows
	case in.Err != nil:
		why := &agent.Error{Code: fit(in.Err.Code, receiptFrame), Message: fit(in.Err.Message, maxReason)}
		s.record(agent.Event{Type: agent.EventInstructionsKept, Instructions: &agent.InstructionsChange{Error: why}})
	case !in.Same:
		fresh := agent.NewInstructions(in.Instructions, "")
		s.Refreshing.has(fresh.Digest)
		s.record(agent.Event{Type: agent.EventInstructionsChanged, Instructions: &fresh})
	}
	return nil
}
