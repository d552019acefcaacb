package activities

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/store"
)

// recorded is a server that has the store of a queue, and tells it when it is let.
type recorded struct {
	client.Client
	id    string
	asked chan struct{}
	tell  chan struct{}
}

func (r *recorded) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	r.asked <- struct{}{}
	<-r.tell
	return &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig:       &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "fermata/store/" + r.id + "@here"}},
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}, nil
}

func (r *recorded) ListWorkflow(_ context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	req.Namespace = "default"
	return nil, nil
}

// Runs that begin together look once which store the queue has. Who can't wait for that goes
// without, and leaves the look to the others.
func TestRunsThatBeginTogetherShareALook(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	id, err := store.ID(t.Context(), dir)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		server := &recorded{id: id, asked: make(chan struct{}, 1000), tell: make(chan struct{})}
		i := &Identity{Client: server, Store: dir, Queue: "q"}
		gone, leave := context.WithCancel(t.Context())
		errs := make(chan error, 1000)
		go func() { errs <- i.checkCached(gone) }()
		synctest.Wait()
		for range 999 {
			go func() { errs <- i.checkCached(t.Context()) }()
		}
		synctest.Wait()
		leave()
		require.Error(t, <-errs)
		close(server.tell)
		for range 999 {
			require.NoError(t, <-errs)
		}
		require.NoError(t, i.checkCached(t.Context()))
		require.NoError(t, i.Check(t.Context()))
		require.Len(t, server.asked, 1)
	})
}

// A new session's store is read each time, so that one that was emptied is found at once, and
// what Temporal has recorded once a minute.
func TestAnEmptiedStoreIsFoundAtOnce(t *testing.T) {
	root := t.TempDir()
	dir, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	id, err := store.ID(t.Context(), dir)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		server := &recorded{id: id, asked: make(chan struct{}, 10), tell: make(chan struct{})}
		close(server.tell)
		i := &Identity{Client: server, Store: dir, Queue: "q"}
		for range 3 {
			require.NoError(t, i.Check(t.Context()))
		}
		require.Len(t, server.asked, 1)
		<-time.After(identityCheckAge)
		require.NoError(t, i.Check(t.Context()))
		require.Len(t, server.asked, 2)
		require.NoError(t, os.RemoveAll(root))
		_, err := store.OpenDir(root, nil)
		require.NoError(t, err)
		for range 2 {
			require.Error(t, i.Check(t.Context()))
		}
	})
}

// unwritten is a server whose runs of a session have stored nothing, each after the one that
// is named; of one that is named after itself nobody can replay the history.
type unwritten struct {
	past
	after  map[string]string
	asked  []string
	silent bool // no worker answers
}

func (u *unwritten) QueryWorkflow(_ context.Context, _, run, _ string, _ ...any) (converter.EncodedValue, error) {
	u.asked = append(u.asked, run)
	if u.silent {
		return nil, serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")
	}
	if u.after[run] == run {
		return nil, serviceerror.NewQueryFailed("[TMPRL1100] nondeterministic")
	}
	return stateOf{loop.State{Origin: loop.Origin{Start: &agent.Start{After: u.after[run]}}}}, nil
}

// stateOf is what a run says of its state.
type stateOf struct{ loop.State }

func (stateOf) HasValue() bool { return true }

func (s stateOf) Get(into any) (err error) {
	*into.(*json.RawMessage), err = json.Marshal(s.State)
	return err
}

// A claim that takes long among runs that have stored nothing continues where the attempt
// before it was.
func TestAClaimGoesOnAmongRunsBefore(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	failed := enums.WORKFLOW_EXECUTION_STATUS_FAILED
	server := &unwritten{past: past{status: map[string]enums.WorkflowExecutionStatus{"r1": failed, "r2": failed, "r3": failed, "r4": failed}}, after: map[string]string{"r4": "r3", "r3": "r2", "r2": "r1"}}
	d := &Activities{Client: server, Log: store.NewLog(dir), InFlight: NewInFlight()}
	claim := func(left any) []string {
		var suite sdk.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		if left != nil {
			env.SetHeartbeatDetails(left)
		}
		Claim.Register(env, d.claimHead)
		server.asked = nil
		_, err := env.ExecuteActivity(Claim.Name, OpenInput{OpenArgs: loop.OpenArgs{Session: t.Name() + fmt.Sprint(left), After: "r4"}})
		require.NoError(t, err)
		return server.asked
	}
	require.Equal(t, []string{"r4", "r3", "r2", "r1"}, claim(nil))
	require.Equal(t, []string{"r2", "r1"}, claim("r2"))
	require.Equal(t, []string{"r4", "r3", "r2", "r1"}, claim(7), "another build has left something else")
}

// A session continues after a run that was ended since nobody can replay it, as one does that
// breaks with a deploy. If the store has nothing of the session, that run may be why.
func TestASessionGoesOnAfterARunThatNobodyCanReplay(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	server := &unwritten{past: past{status: map[string]enums.WorkflowExecutionStatus{"r1": terminated}}, after: map[string]string{"r1": "r1"}}
	d := &Activities{Client: server, Log: store.NewLog(dir)}
	in := OpenInput{OpenArgs: loop.OpenArgs{Session: "s", After: "r1"}}
	require.NoError(t, d.checkStoreKnows(t.Context(), in, store.Head{Version: 3, Run: "r1", Status: agent.StatusRunning}))
	require.ErrorIs(t, d.checkStoreKnows(t.Context(), in, store.Head{}), agent.CodeChunkMissing)
	server.down = true
	require.ErrorIs(t, d.checkStoreKnows(t.Context(), in, store.Head{Version: 3, Run: "r1", Status: agent.StatusRunning}), agent.CodeUnreachable)
}

// A session continues after a run that nobody answers for, as one whose task queue has no
// workers any more: not at once, and not if the store has nothing of the session.
func TestASessionGoesOnAfterARunThatNobodyAnswersFor(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	server := &unwritten{past: past{status: map[string]enums.WorkflowExecutionStatus{"r1": terminated}}, silent: true}
	d := &Activities{Client: server, Log: store.NewLog(dir)}
	in := OpenInput{OpenArgs: loop.OpenArgs{Session: "s", After: "r1"}, attempts: recoverTries - 1}
	head := store.Head{Version: 3, Run: "r1", Status: agent.StatusRunning}
	require.ErrorIs(t, d.checkStoreKnows(t.Context(), in, head), agent.CodeNoWorker)
	in.attempts++
	require.NoError(t, d.checkStoreKnows(t.Context(), in, head))
	require.ErrorIs(t, d.checkStoreKnows(t.Context(), in, store.Head{}), agent.CodeNoWorker)
}

// written is a server whose one run has stored what it says.
type written struct {
	past
	state loop.State
}

func (w *written) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return stateOf{w.state}, nil
}

// The answer to a run's last seal was lost, and the run was terminated. That seal had merged
// the chunks before it, which are collected: nothing is missing.
func TestAStoreThatHasMoreThanTheRunKnowsIsWhole(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	log, deleted := store.NewLog(dir), 0
	head := store.Head{V: store.HeadVersion, Session: "s", Run: "r1", Status: agent.StatusRunning, Agent: "a"}
	for i := int64(1); deleted == 0; i++ {
		require.LessOrEqual(t, i, int64(20), "nothing was merged")
		known := head
		head.Version, head.Seq = i, i
		head.Digest, err = log.Seal(t.Context(), known.Digest, "s", "r1", false, []agent.Event{{Seq: i, Type: agent.EventTurnStarted}})
		require.NoError(t, err)
		head.Updated = time.Now().UTC()
		require.NoError(t, dir.PutHead(t.Context(), head))
		c, err := log.Collect(t.Context(), 0, false)
		require.NoError(t, err)
		deleted = c.Deleted
		server := &written{past{status: map[string]enums.WorkflowExecutionStatus{"r1": terminated}}, loop.State{Log: loop.Log{Version: known.Version, Head: known.Digest, Seq: i}}}
		d := &Activities{Client: server, Log: store.NewLog(dir)}
		require.NoError(t, d.checkStoreKnows(t.Context(), OpenInput{OpenArgs: loop.OpenArgs{Session: "s", After: "r1"}}, head))
	}
}

// Whoever can write to the store, and has no key, can put an older head back as it was. The next
// run is refused if Temporal knows that its last one had stored more, also where the chunks are
// all there. Without keys the head is what an operator has restored.
func TestAHeadThatWasPutBackIsRefused(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	ring, err := keyring.Parse("k1:" + base64.StdEncoding.EncodeToString(make([]byte, 32)))
	require.NoError(t, err)
	log := store.NewLog(store.Encrypt(dir, ring))
	old := store.Head{V: store.HeadVersion, Session: "s", Run: "r1", Status: agent.StatusCompleted, Agent: "a", Version: 2, Seq: 1, Updated: time.Now().UTC()}
	old.Digest, err = log.Seal(t.Context(), "", "s", "r1", true, []agent.Event{{Seq: 1, Type: agent.EventTurnStarted}})
	require.NoError(t, err)
	next := old
	next.Run, next.Version, next.Seq = "r2", 4, 2
	next.Digest, err = log.Seal(t.Context(), old.Digest, "s", "r2", true, []agent.Event{{Seq: 2, Type: agent.EventTurnStarted}})
	require.NoError(t, err)
	server := &written{past{status: map[string]enums.WorkflowExecutionStatus{"r1": completed, "r2": completed}}, loop.State{Log: loop.Log{Version: next.Version, Head: next.Digest, Seq: next.Seq}}}
	d := &Activities{Client: server, Log: log}
	in := OpenInput{OpenArgs: loop.OpenArgs{Session: "s", After: "r2"}}
	require.NoError(t, d.checkStoreKnows(t.Context(), in, next))
	err = d.checkStoreKnows(t.Context(), in, old)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	require.ErrorContains(t, err, "has an older head")
	same := old // of the run itself, from before its end
	same.Run, same.Status, same.Version = "r2", agent.StatusRunning, 3
	require.ErrorIs(t, d.checkStoreKnows(t.Context(), in, same), agent.CodeChunkMissing)
}

// A worker that is refused leaves a store as it was: it may be that of others.
func TestARefusedWorkerChangesNoStore(t *testing.T) {
	for name, has := range map[string]func(store.Store){
		"nobody has used it": func(store.Store) {},
		"others use it":      func(s store.Store) { _, err := store.ID(t.Context(), s); require.NoError(t, err) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir, err := store.OpenDir(root, nil)
			require.NoError(t, err)
			has(dir)
			before, err := os.ReadDir(root)
			require.NoError(t, err)
			server := &recorded{id: "0123456789abcdef0123456789abcdef", asked: make(chan struct{}, 9), tell: make(chan struct{})}
			close(server.tell)
			require.ErrorIs(t, (&Identity{Client: server, Store: dir, Queue: "q"}).Check(t.Context()), agent.CodeNotSetUp)
			after, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(before), fmt.Sprint(after))
			require.NoError(t, store.ClaimNamespace(t.Context(), dir, "prod"), "it is still anybody's")
		})
	}
}
