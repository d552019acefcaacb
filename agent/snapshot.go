package agent

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
// (docs/wire.md §2). It is unique over the session's life. The last six digits are the beginning of
// the SHA-256 of the session's id, so another session refuses the checkpoint. The beginning of
// every session is cp-0.
func CheckpointID(session string, seq int64) string {
	if seq == 0 {
		return "cp-0"
	}
	sum := sha256.Sum256([]byte(session))
	return fmt.Sprintf("cp-%d-%x", seq, sum[:checkpointBytes])
}

// checkpointBytes is how many bytes of the digest of a session's id a checkpoint's id has. They
// detect a mistake, and prove nothing.
const checkpointBytes = 3

// CheckpointSeq returns the number of the event that a session's checkpoint follows. Errors are
// [CodeInvalidInput] if id is no checkpoint's or has a number alone, and [CodeNotFound] if the
// checkpoint is another session's.
func CheckpointSeq(session, id string) (int64, error) {
	seq, err := parseCheckpoint(id)
	if err != nil || CheckpointID(session, seq) == id {
		return seq, err
	}
	if strings.Count(id, "-") == 1 {
		return 0, Errorf(CodeInvalidInput, "%s does not say whose checkpoint it is; that of session %s is %s", id, session, CheckpointID(session, seq)).WithPath("checkpoint")
	}
	return 0, Errorf(CodeNotFound, "%s is a checkpoint of another session, and not of %s; see fermata checkpoints %s", id, session, session).WithPath("checkpoint")
}

// checkpointForm also matches an id without its session, which logs of older builds have.
var checkpointForm = regexp.MustCompile(`^cp-(?:0|([1-9][0-9]*)(?:-[0-9a-f]{6})?)$`)

// parseCheckpoint returns the number in a checkpoint's id, whichever session it is of.
func parseCheckpoint(id string) (seq int64, err error) {
	match := checkpointForm.FindStringSubmatch(id)
	if match != nil && match[1] != "" {
		seq, err = strconv.ParseInt(match[1], 10, 64)
	}
	if match == nil || err != nil {
		return 0, Errorf(CodeInvalidInput, "%q names no checkpoint; it looks like cp-118-3fa9c1, see fermata checkpoints", id).WithPath("checkpoint")
	}
	return seq, nil
}

// checkpointOf returns a recorded checkpoint's id as that of the session whose log has the record.
// A fork's log begins with the events of another session.
func checkpointOf(session, id string) string {
	seq, err := parseCheckpoint(id)
	if err != nil {
		return id
	}
	return CheckpointID(session, seq)
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
	// Redo are paths of a flow's steps whose results the run does not know: it makes these
	// steps again. The path of a scope, such as "file.3", names all steps in it, and "file" those of
	// all its items. At most 64.
	Redo []string `json:"redo,omitempty"`
	// ReplaceInput makes the start's input the flow's, whose run has had another. Steps
	// with the same arguments keep their results. Only for flows.
	ReplaceInput bool `json:"replace_input,omitempty"`
	// DropArtifacts makes the run begin without the artifacts that were saved before the
	// checkpoint. They stay in the store, and versions count on.
	DropArtifacts bool `json:"drop_artifacts,omitempty"`
}

// maxRedo is how many paths a start may name.
const maxRedo = 64

// Check returns a [CodeInvalidInput] error if the fields do not fit together.
func (f StartFrom) Check() error {
	switch {
	case f.Checkpoint == "" && f.Retry == "":
		return Errorf(CodeInvalidInput, "from.checkpoint is missing; see fermata checkpoints").WithPath("from.checkpoint")
	case f.Retry != "" && f.Session != "":
		return Errorf(CodeInvalidInput, "from.retry tries a run of the same session again; leave from.session out").WithPath("from.session")
	case len(f.Redo) > maxRedo:
		return Errorf(CodeInvalidInput, "from.redo has %d paths, and at most %d are allowed; name the scopes that the steps are in", len(f.Redo), maxRedo).WithPath("from.redo")
	case slices.Contains(f.Redo, ""):
		return Errorf(CodeInvalidInput, "from.redo has an empty path; fermata show --draw lists the paths of a flow").WithPath("from.redo")
	case f.Checkpoint == "":
		return nil
	}
	_, err := parseCheckpoint(f.Checkpoint)
	return err
}

// Forked says at which checkpoint a run has started.
type Forked struct {
	Session    string `json:"session"`
	Run        string `json:"run"` // the run that has the checkpoint; empty for the session's beginning
	Checkpoint string `json:"checkpoint"`
	// Retry means that the run tries the failed run again.
	Retry bool `json:"retry,omitempty"`
	// Redo, ReplaceInput and DropArtifacts are those of [StartFrom].
	Redo          []string `json:"redo,omitempty"`
	ReplaceInput  bool     `json:"replace_input,omitempty"`
	DropArtifacts bool     `json:"drop_artifacts,omitempty"`
}

// Keeps reports whether the run takes over the result of a flow's step from the run that it forks.
// A retry forgets what has failed, and each fork what it makes again and what nobody waited for.
// What a person has approved holds for that run, and for a plain retry of it, alone.
func (f Forked) Keeps(path, tool string, status CallStatus, dropped bool) bool {
	switch {
	case f.Redoes(path), (f.Retry || dropped) && status != CallOK:
		return false
	case tool == ApproveTool:
		return f.Retry && len(f.Redo) == 0 && !f.ReplaceInput
	}
	return true
}

// Redoes reports whether the run makes a flow's step again that the run before it has made.
func (f Forked) Redoes(path string) bool {
	return slices.ContainsFunc(f.Redo, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/") || strings.HasPrefix(path, p+".")
	})
}

// At returns the number of the last event before the run that the run knows.
func (f Forked) At() int64 {
	seq, err := parseCheckpoint(f.Checkpoint)
	if err != nil {
		return 0 // the log only has checked ids
	}
	return seq
}
