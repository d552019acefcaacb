package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// newer are the edits that make a build of the next revision. It knows a verb and some fields more,
// from a revision on. Runs in the recorded histories were told each of them before any
// build knew it: what came to v1-signalled would cancel it, and the start of v1-refused
// would be no mistake.
func newer(revision int) []edit {
	since := strconv.Itoa(revision)
	gently := "	Gently bool `json:\"gently,omitempty\" since:\"" + since + "\"`\n"
	return []edit{
		{"../internal/loop/revision.go", fmt.Sprintf("	Revision = %d\n", loop.Revision), fmt.Sprintf("	Revision = %d\n", next)},
		{"../signals/verbs.go", "agent.VerbAnswers, agent.VerbEmit,\n}", "agent.VerbAnswers, agent.VerbEmit, \"interupt\",\n}"},
		{"../signals/verbs.go", "var since = map[agent.Verb]int{}", "var since = map[agent.Verb]int{\"interupt\": " + since + "}"},
		{"../signals/verbs.go", "	case agent.VerbCancel:\n", "	case agent.VerbCancel, \"interupt\":\n"},
		{"../agent/verb.go", "type CancelCommand struct {\n", "type CancelCommand struct {\n" + gently},
		{"../internal/wire/parent.go", "type ParentOrder struct {\n", "type ParentOrder struct {\n" + gently},
		{"../agent/run.go", "type Start struct {\n", "type Start struct {\n" + gently},
		// The machine decides by the run's revision, too.
		{"../internal/loop/cancel.go", "	s.endedBy = fit(by, maxBy)\n", "	s.endedBy = fit(by, maxBy)\n	if s.Revision >= " + since + " {\n		reason = \"" + newerReason + "\"\n	}\n"},
	}
}

// next is the revision of the newer build.
const next = loop.Revision + 1

// newerReason is why a run of the next revision says that it was cancelled.
const newerReason = "the machine of the next revision"

// A build that knows a verb and some fields more replays every recorded history as it was:
// for an execution that pinned an older revision they stay unknown. If the build does not ask for
// the revision, the two histories break.
func TestANewerBuildReplaysWhatOlderOnesRefused(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	said, err := replaysOver(t, overlay(t, edited(t, newer(next))))
	require.NoError(t, err, said)
	said, err = replaysOver(t, overlay(t, edited(t, newer(1))))
	require.Error(t, err)
	for _, story := range []string{"v1-signalled.json", "v1-refused.json"} {
		require.Contains(t, said, "--- FAIL: TestRecordedHistoriesReplay/"+story)
	}
	require.Equal(t, 2, strings.Count(said, "--- FAIL: TestRecordedHistoriesReplay/"), said)
}

// Thresholds belong to a revision, too: a build that seals earlier from its revision on replays every recorded
// history as it was. If it seals earlier in every run, it replays none that has so much to store.
func TestANewerBuildKeepsTheThresholdsOfOlderRuns(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	seals := func(since int) []edit {
		return []edit{
			{"../internal/loop/revision.go", fmt.Sprintf("	Revision = %d\n", loop.Revision), fmt.Sprintf("	Revision = %d\n", next)},
			{"../internal/loop/rules.go", "s.Log.needsSeal() && s.Log.canSeal()", fmt.Sprintf("(s.Log.needsSeal() || s.Revision >= %d && s.Log.Bytes >= 2048) && s.Log.canSeal()", since)},
		}
	}
	said, err := replaysOver(t, overlay(t, edited(t, seals(next))))
	require.NoError(t, err, said)
	said, err = replaysOver(t, overlay(t, edited(t, seals(1))))
	require.Error(t, err)
	require.Contains(t, said, "--- FAIL: TestRecordedHistoriesReplay/", said)
}

// A run that a build of the next revision began knows what that revision knows. If a task of it comes
// to a build of this revision, the task fails and the run does not: it goes on with a build
// that knows the revision.
func TestARunOfANewerRevisionWaitsForItsBuild(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	s := on(t, shared(t))
	binary := buildOver(t, overlay(t, edited(t, newer(next))), "newer")
	said := map[string]string{"interupt": `{}`, "cancel": `{"gently":true}`}
	dir := t.TempDir()
	var err error
	s.store, err = store.OpenDir(dir, nil) // both builds have one store
	require.NoError(t, err)
	began := s.workNewer(t, binary, dir)
	runs := map[string]*client.Run{}
	for verb := range said {
		runs[verb] = s.begin(t, "go", nil)
		s.suspended(t, runs[verb])
	}
	kill(began)
	old := s.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	for verb, payload := range said {
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), runs[verb].Session, "", verb, json.RawMessage(payload)))
	}
	for _, run := range runs {
		require.Eventually(t, func() bool { return s.count(t, run, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED) > 0 }, patience, 20*time.Millisecond)
		d, err := s.temporal.DescribeWorkflowExecution(t.Context(), run.Session, "")
		require.NoError(t, err)
		require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, d.GetWorkflowExecutionInfo().GetStatus())
	}
	old.Stop()
	s.workNewer(t, binary, dir)
	for verb, run := range runs {
		out := s.result(t, run)
		require.Equal(t, []any{agent.StatusCancelled, newerReason}, []any{out.Status, out.Reason}, verb)
	}
}

// A run that this build began keeps that revision, machine and all, when a newer build goes on
// with it.
func TestAnOlderRunKeepsTheMachineOfItsRevision(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	s := on(t, shared(t))
	binary := buildOver(t, overlay(t, edited(t, newer(next))), "newer")
	dir := t.TempDir()
	var err error
	s.store, err = store.OpenDir(dir, nil)
	require.NoError(t, err)
	old := s.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, testsuite.NewScript(asks("Where to?")))
	run := s.begin(t, "go", nil)
	s.suspended(t, run)
	old.Stop()
	s.workNewer(t, binary, dir)
	_, err = run.Cancel(t.Context(), "as it was", nil)
	require.NoError(t, err)
	out := s.result(t, run)
	require.Equal(t, []any{agent.StatusCancelled, "as it was"}, []any{out.Status, out.Reason})
}

// workNewer starts the program in testdata/newer, a worker whose agent asks a person.
func (s *stage) workNewer(t *testing.T, binary, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, s.addr, s.queue, dir)
	ready(t, cmd)
	return cmd
}
