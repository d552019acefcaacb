package loop

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Revision is the revision of this build. An execution pins it in its first task, and each
// [Moment] carries it. Until it continues as new, every build decides by that revision. A
// new execution pins the revision of the build that begins it.
//
// Whatever changes what a recorded history asks for needs a new revision: in the machine, in
// a decoder, or in a bound. Nothing is released, so builds of different days do not share runs.
// But the recorded histories (workflows/testdata/history) replay. Until the first release, what
// none of them meets, such as a size that is counted better, changes without a revision.
const (
	Revision = 2
	// OldestRevision is the oldest that this build can replay.
	OldestRevision = 1
)

// cancelGraceSince is the revision from which a cancel gives the calls in flight a grace. Before, it
// ended the run at once.
const cancelGraceSince = 2

// childNewsSince is the revision from which subagent_wait waits for what the model has not read, and the call
// of a released child has failed. Before, a wait returned as soon as no child worked.
const childNewsSince = 2

// vetoStaysSince is the revision from which the veto of a hook before a resume refuses that resume only, if it
// does not say more. Before, it counted as the failure of the owner.
const vetoStaysSince = 2

// droppedHookSince is the revision from which a run continues as new only when a hook that was cancelled has
// returned. Before, it did in the same task, and the server refused that.
const droppedHookSince = 2

// rejectionStaysSince is the revision from which answers that come together are each heard, and then an approval
// of all calls of a tool. Before, that one approved what another of them rejects.
const rejectionStaysSince = 2

// importAsksAgainSince is the revision from which an imported run asks again for what was approved for the whole run
// before its export. Before, it did not ask.
const importAsksAgainSince = 2

// suspendedAckSince is the revision from which an interrupt of a run whose sub-agents work is answered when the
// run's own calls have ended. Before, it was at once.
const suspendedAckSince = 2

// hearsFirstSince is the revision from which a run takes the signals that came before it began, and then begins
// its first turn. Before, a hold or a stop among them met the turn.
const hearsFirstSince = 2

// oneMetHoldSince is the revision from which a run takes one hold that a call met, and no other until its parent
// has answered, which it asks within a minute. Before, a later one replaced it, and a run that was suspended for
// long asked later; and no number above [wire.MaxMet] was believed.
const oneMetHoldSince = 2

// interruptedCompactionSince is the revision from which a message that interrupts a compaction is in the next model
// call, also if the summary comes whole. Before, it was in the one after that.
const interruptedCompactionSince = 2

// silentFailureSince is the revision from which a check or a hook has also failed if its call failed with an empty text.
// Before, the hook of a turn counted as having decided nothing, and a check that holds its run was made again at once.
const silentFailureSince = 2

// StateVersion is the version of [State] as JSON. The wire, chunks, heads and exports have
// versions of their own.
const StateVersion = 1

// ReadState reads the state that an execution handed on. The error is
// [agent.CodeIncompatible] if a newer build wrote it, even if that one only added a field:
// without the field, what it says would be lost.
func ReadState(raw []byte) (s State, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, agent.Errorf(agent.CodeIncompatible, "the run's state can't be read by this build: %w", err)
	}
	if s.V > StateVersion {
		return State{}, agent.Errorf(agent.CodeIncompatible, "the run's state has version %d; this build reads up to %d", s.V, StateVersion)
	}
	return s, nil
}
