package loop

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Revision is that of this build. An execution pins it in its first task, and each [Moment]
// carries it: an execution that began under an older one is decided by that one, on every
// build, until it carries over. Whatever changes what a recorded history asks for, in the
// machine, in a decoder, in a bound, gets a new revision and asks for it. A new execution
// pins the revision of the build that begins it. Until the first release there is one
// revision, and builds of different days do not share runs: what a decoder takes still changes.
const (
	Revision = 1
	// OldestRevision is the oldest that this build can replay.
	OldestRevision = 1
)

// StateVersion is that of [State] as JSON. The wire, chunks, heads and exports have versions
// of their own.
const StateVersion = 1

// ReadState reads a state that an execution handed on. The error is [agent.CodeIncompatible] if
// a newer build wrote it, also one that only added a field: to go on without it would lose
// what it says.
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
