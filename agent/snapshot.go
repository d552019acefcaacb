package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TurnSnapshot is what a run has used at the end of a turn, and what the turn changed in
// the session's state. It holds no conversation: the log up to this event is the
// conversation at the checkpoint.
type TurnSnapshot struct {
	Usage Usage       `json:"usage"`
	Cost  USD         `json:"cost_usd"`
	Tools []ToolCount `json:"tools,omitempty"`
	// Request is the size in tokens that the model reported for the last request of the
	// turn that it answered; zero if there was none.
	Request int64 `json:"request,omitempty"`
	// StateChanges are the keys of the session's state that the turn's calls set; null
	// for a deleted key. If two calls set one key, the later call wins.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
}

// CheckpointID returns the id of the checkpoint after an event of a session's log
// (docs/wire.md §2). It is unique over the session's life.
func CheckpointID(seq int64) string { return fmt.Sprintf("cp-%d", seq) }

// CheckpointSeq returns the number of the event that a checkpoint follows. It returns a
// [CodeInvalidInput] error if id is no checkpoint's.
func CheckpointSeq(id string) (int64, error) {
	digits, ok := strings.CutPrefix(id, "cp-")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || seq < 0 || CheckpointID(seq) != id {
		return 0, Errorf(CodeInvalidInput, "%q names no checkpoint; it looks like cp-118, see fermata checkpoints", id).WithPath("checkpoint")
	}
	return seq, nil
}

// StartFrom makes a run begin at a checkpoint instead of the session's end. Later events
// stay in the log, and the run does not know them.
type StartFrom struct {
	// Session is the session that has the checkpoint; empty means the run's own. Another
	// session's checkpoint is accepted only if the run's session has no log yet.
	Session string `json:"session,omitempty"`
	// Checkpoint is the checkpoint's id. With Retry it may be empty: then it is the last
	// checkpoint from which the failed run can continue.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Retry is the failed run that is tried again. It has to be the session's last run.
	Retry string `json:"retry,omitempty"`
}

// Check returns a [CodeInvalidInput] error if the fields do not fit together.
func (f StartFrom) Check() error {
	switch {
	case f.Checkpoint == "" && f.Retry == "":
		return Errorf(CodeInvalidInput, "from.checkpoint is missing; see fermata checkpoints").WithPath("from.checkpoint")
	case f.Retry != "" && f.Session != "":
		return Errorf(CodeInvalidInput, "from.retry tries a run of the same session again; leave from.session out").WithPath("from.session")
	case f.Checkpoint == "":
		return nil
	}
	_, err := CheckpointSeq(f.Checkpoint)
	return err
}

// Forked says at which checkpoint a run has begun.
type Forked struct {
	Session    string `json:"session"`
	Run        string `json:"run"` // the run that has the checkpoint; empty for the session's beginning
	Checkpoint string `json:"checkpoint"`
	// Retry means that the run tries the failed run again.
	Retry bool `json:"retry,omitempty"`
}

// At returns the number of the last event before the run that the run knows.
func (f Forked) At() int64 {
	seq, err := CheckpointSeq(f.Checkpoint)
	if err != nil {
		return 0 // the log only has checked ids
	}
	return seq
}
