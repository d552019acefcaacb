package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// bare is a connection without keys, as whoever may write to the namespace has it.
func bare(t *testing.T, s place) temporal.Client {
	t.Helper()
	c, err := temporal.DialContext(t.Context(), temporal.Options{HostPort: s.Addr(), Logger: connection(slog.DiscardHandler).Logger})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// until is a process with keys that takes what is plain until a time.
func until(t *testing.T, keys string, s place, until time.Time) *keyedProcess {
	t.Helper()
	ring, err := keyring.Parse(keys)
	require.NoError(t, err)
	options := temporal.Options{HostPort: s.Addr(), Logger: connection(slog.DiscardHandler).Logger}
	require.NoError(t, client.Prepare(&options, &client.PrepareOptions{Keyring: ring, PlainUntil: until}))
	c, err := temporal.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	dir, err := store.OpenDir("transcripts", nil)
	require.NoError(t, err)
	st := store.Encrypt(dir, ring)
	return &keyedProcess{client.New(c, &client.Options{TaskQueue: t.Name(), Store: st}), c, st}
}

// payloadOf is a signal's payload as it lies at the server.
func payloadOf(t *testing.T, c temporal.Client, session, name string) *commonpb.Payloads {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), session, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if a := e.GetWorkflowExecutionSignaledEventAttributes(); a.GetSignalName() == name {
			return a.GetInput()
		}
	}
	t.Fatalf("no signal %s", name)
	return nil
}

// Where there are keys, nobody without one says anything to a run: not by a signal, an update
// or a start, nor by moving what somebody else has said. Each is refused by itself: the worker
// goes on, and so does the run.
func TestNobodyWithoutAKeySaysAnything(t *testing.T) {
	t.Chdir(t.TempDir())
	s := devserver.ForTest(t)
	v, thief := process(t, newKey(t, "k1"), s), bare(t, s)
	w := v.worker(t)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run, asked := v.begin(t)
	other, _ := v.begin(t)

	require.NoError(t, thief.SignalWorkflow(t.Context(), run.Session, "", "cancel", map[string]string{"reason": "plain"}))
	require.NoError(t, thief.SignalWorkflow(t.Context(), run.Session, "", "pause", nil))
	require.NoError(t, v.temporal.SignalWorkflow(t.Context(), other.Session, "", "pause", map[string]string{"reason": "lunch"}))
	moved := payloadOf(t, thief, other.Session, "pause")
	for session, name := range map[string]string{run.Session: "pause", other.Session: "cancel"} {
		_, err := thief.WorkflowService().SignalWorkflowExecution(t.Context(), &workflowservice.SignalWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: session}, SignalName: name, Input: moved,
		})
		require.NoError(t, err)
	}
	require.NoError(t, thief.SignalWorkflow(t.Context(), run.Session, "", signals.ChildReport, map[string]any{"run": run.ID, "session": "x", "from": "y", "seq": 1, "status": "completed"}))

	update, err := thief.UpdateWorkflow(t.Context(), temporal.UpdateWorkflowOptions{
		WorkflowID: run.Session, UpdateName: "cancel", WaitForStage: temporal.WorkflowUpdateStageCompleted, Args: []any{map[string]string{"reason": "plain"}},
	})
	if err == nil {
		err = update.Get(t.Context(), nil)
	}
	require.ErrorContains(t, err, "nothing plain is taken where there are keys")
	mistaken := process(t, newKey(t, "k1"), s) // a person with a wrong key
	_, err = mistaken.temporal.UpdateWorkflow(t.Context(), temporal.UpdateWorkflowOptions{
		WorkflowID: run.Session, UpdateName: "cancel", WaitForStage: temporal.WorkflowUpdateStageCompleted, Args: []any{map[string]string{"reason": "mistaken"}},
	})
	require.Error(t, err)

	started, err := thief.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: "plain-1", TaskQueue: t.Name()}, signals.WorkflowType, map[string]any{"agent": "lead", "input": map[string]string{"text": "begin"}})
	require.NoError(t, err)
	failed, err := v.Get(t.Context(), started.GetID())
	require.NoError(t, err)
	out, err := failed.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, agent.CodeBadSignature, out.Error.Code)

	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status)
	require.Len(t, st.Refused, 4, "%+v", st.Refused)
	for _, r := range st.Refused {
		require.Equal(t, agent.CodeBadSignature, r.Error.Code)
	}
	_, err = v.Answer(t.Context(), asked, "door", nil)
	require.NoError(t, err, "the worker takes its work as before")
	require.Equal(t, agent.StatusFailed, v.rests(t, run, agent.StatusFailed).Status)
}

// A run that began before there were keys goes on with them if what was plain until then is
// taken, also where its whole history is read again; what is plain and came later is not.
func TestARunFromBeforeTheKeysGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	s, keys := devserver.ForTest(t), newKey(t, "k1")
	before := process(t, "", s)
	w := before.worker(t)
	require.NoError(t, w.Start(t.Context()))
	run, asked := before.begin(t)
	w.Stop()

	strict := process(t, keys, s)
	_, err := strict.store.(*store.Encrypted).Rekey(t.Context(), &store.RekeyOptions{Plain: true})
	require.NoError(t, err)
	now := until(t, keys, s, time.Now())
	w = now.worker(t)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	require.NoError(t, before.temporal.SignalWorkflow(t.Context(), run.Session, "", "cancel", map[string]string{"reason": "plain"}))
	_, err = now.Answer(t.Context(), asked, "door", nil)
	require.NoError(t, err)
	run, err = now.Get(t.Context(), run.Session)
	require.NoError(t, err)
	now.rests(t, run, agent.StatusFailed)
}

// A topic is no secret that the namespace tells, and an event still finds who waits for it.
func TestTopicsAreNotPlain(t *testing.T) {
	t.Chdir(t.TempDir())
	s := devserver.ForTest(t)
	v := process(t, newKey(t, "k1"), s)
	w, err := worker.New(v.temporal, &worker.Options{
		TaskQueue: t.Name(), Store: v.store, Logger: zap.NewNop(), Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "lead", Model: "m"}}, Models: map[string]model.Model{"m": testsuite.NewScript(testsuite.Reply{Text: "done"})},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run, err := v.Start(t.Context(), "lead", "wait", &client.StartOptions{Park: &agent.Conditions{Event: &agent.EventCondition{Topic: hushed}}})
	require.NoError(t, err)
	v.rests(t, run, agent.StatusSuspended)
	d, err := bare(t, s).DescribeWorkflowExecution(t.Context(), run.Session, "")
	require.NoError(t, err)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(raw), hushed)
	waits := string(d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()[agent.AttrWaitsFor].GetData())
	require.Contains(t, waits, "topic:~")
	require.False(t, strings.Contains(waits, hushed))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for sent := 0; sent == 0; { // listings may be behind
		e, err := v.Emit(ctx, hushed, nil, nil)
		require.NoError(t, err)
		require.Empty(t, e.Failed)
		sent = e.Accepted
	}
	v.rests(t, run, agent.StatusCompleted)
}
