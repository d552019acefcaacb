package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TurnSnapshot is what a run has used up when a turn has ended, and what its turn
// changed of the session's state. The conversation at that point is the log up to
// the event that holds it: a checkpoint costs nothing of its own.
type TurnSnapshot struct {
	Usage Usage       `json:"usage"`
	Cost  USD         `json:"cost_usd"`
	Tools []ToolCount `json:"tools,omitempty"`
	// Request is how many tokens the model has counted in the turn's last request that it
	// answered; zero if it has answered none.
	Request int64 `json:"request,omitempty"`
	// StateChanges are the keys of the session's state that the turn's calls have set; one
	// that was deleted is null. Of two calls that set one key the later counts.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
}

// CheckpointID names the point behind an event of a session's log (docs/wire.md §2). It
// is unique over the session's life.
func CheckpointID(seq int64) string { return fmt.Sprintf("cp-%d", seq) }

// CheckpointSeq is the number of the event behind which a checkpoint lies. It
// returns an [CodeInvalidInput] error for what is none.
func CheckpointSeq(id string) (int64, error) {
	digits, ok := strings.CutPrefix(id, "cp-")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || seq < 0 || CheckpointID(seq) != id {
		return 0, Errorf(CodeInvalidInput, "%q names no checkpoint; it looks like cp-118, see fermata checkpoints", id).WithPath("checkpoint")
	}
	return seq, nil
}

// StartFrom says where in a log a run begins: behind a checkpoint, and not at the
// session's end. What came after it stays in the log and is not known to the run.
type StartFrom struct {
	// Session is whose checkpoint it is; empty means the run's own session. Another
	// one's is taken only by a session that has no log of its own yet.
	Session string `json:"session,omitempty"`
	// Checkpoint names the point. Beside Retry it may be empty: the last one from
	// which the failed run can go on.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Retry is the failed run that is tried again; it has to be the session's last.
	Retry string `json:"retry,omitempty"`
}

// Check refuses a From that can't be meant, with [CodeInvalidInput].
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

// Forked says where in a log a run has begun.
type Forked struct {
	Session    string `json:"session"`
	Run        string `json:"run"` // whose checkpoint it is; empty for the session's beginning
	Checkpoint string `json:"checkpoint"`
	// Retry means that the run tries that one again.
	Retry bool `json:"retry,omitempty"`
}

// At is the number of the last event that the run knows of what came before it.
func (f Forked) At() int64 {
	seq, err := CheckpointSeq(f.Checkpoint)
	if err != nil {
		return 0 // the log holds only what was checked
	}
	return seq
}
