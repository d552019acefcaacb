package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A checkpoint's id has its place and its session. Another session refuses it, and a number alone
// is refused by all (HX-28, HX-63).
func TestCheckpointIDs(t *testing.T) {
	require.Equal(t, "cp-118-9c025a", CheckpointID("invoice-118", 118), "programs keep it, so it must not change")
	seq, err := CheckpointSeq("invoice-118", "cp-118-9c025a")
	require.NoError(t, err)
	require.EqualValues(t, 118, seq)
	for _, session := range []string{"invoice-118", "invoice-119"} {
		seq, err := CheckpointSeq(session, CheckpointID(session, 0))
		require.NoError(t, err)
		require.Zero(t, seq, "the beginning of every session is the same")
	}
	_, err = CheckpointSeq("invoice-119", "cp-118-9c025a")
	require.ErrorIs(t, err, CodeNotFound)
	require.ErrorContains(t, err, "see fermata checkpoints invoice-119")
	_, err = CheckpointSeq("invoice-118", "cp-118")
	require.ErrorIs(t, err, CodeInvalidInput)
	require.ErrorContains(t, err, "that of session invoice-118 is cp-118-9c025a")
	for _, id := range []string{"", "118", "cp-", "cp--1", "cp-0118-9c025a", "cp-0-9c025a", "cp-118-9C025A", "cp-118-9c025", "cp-118-9c025a0", "cp-118-", "cp-99999999999999999999-9c025a"} {
		_, err := CheckpointSeq("invoice-118", id)
		require.ErrorIs(t, err, CodeInvalidInput, id)
	}
}

// Logs of older builds have numbers alone; what was forked there is still found.
func TestAForkOfAnOlderBuild(t *testing.T) {
	for _, id := range []string{"cp-118", "cp-118-9c025a"} {
		require.EqualValues(t, 118, Forked{Session: "s", Checkpoint: id}.At())
		require.NoError(t, StartFrom{Checkpoint: id}.Check())
	}
}

// A log that begins with another session's events shows ids that its own session accepts.
func TestEventsOfAForkNameItsOwnCheckpoints(t *testing.T) {
	old := CheckpointID("trip-41", 9)
	for _, e := range []Event{{Suspension: &Suspension{Checkpoint: old}}, {Resumed: &Resumed{Checkpoint: old}}, {Seq: 9, Snapshot: &TurnSnapshot{}}} {
		w, err := e.Wire("trip-42", "01a1")
		require.NoError(t, err)
		var data struct{ Checkpoint string }
		require.NoError(t, json.Unmarshal(w.Data, &data))
		require.Equal(t, CheckpointID("trip-42", 9), data.Checkpoint)
	}
	w, err := Event{Suspension: &Suspension{}}.Wire("trip-42", "01a1")
	require.NoError(t, err)
	require.NotContains(t, string(w.Data), "checkpoint", "a run has none before its first turn")
}
