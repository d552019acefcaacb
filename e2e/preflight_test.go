package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/worker"
)

// planted is what the changed build has beside its own code: which change it makes is
// said by the environment, so that one build is enough for all.
const planted = `package workflows

import (
	"os"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
)

var planted = os.Getenv("` + plantedEnv + `")

func begin(ctx workflow.Context) {
	gated := planted == "gated, and quiet" && workflow.GetVersion(ctx, "planted", workflow.DefaultVersion, 1) == 1
	if gated || planted == "another timer" {
		workflow.NewTimer(ctx, time.Hour)
	}
	workflow.GetLogger(ctx).Debug("planted")
}

func ask() durable.Activity[activities.ModelInput, wire.Reply] {
	if planted == "another step" {
		return durable.Activity[activities.ModelInput, wire.Reply]{Name: "fermata.think"}
	}
	return activities.CallModel
}
`

const plantedEnv = "FERMATA_PLANTED"

// edits are where the changed build's code differs.
var edits = []edit{
	{"../workflows/run.go", "	r.wake() // signals", "	begin(ctx)\n	r.wake() // signals"},
	{"../workflows/model.go", "activity: activities.CallModel,", "activity: ask(),"},
	{"../workflows/perform.go", "		r.publish(ctx)\n", "		if planted != \"a publish less\" {\n			r.publish(ctx)\n		}\n"},
}

// breaks are the changes, and the events at which each breaks a history; nil for one
// that does not.
var breaks = map[string]func(*historypb.HistoryEvent) bool{
	"gated, and quiet": nil,
	"another timer": func(e *historypb.HistoryEvent) bool {
		return e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity"
	},
	"a publish less": func(e *historypb.HistoryEvent) bool {
		_, ok := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()[agent.AttrStatus]
		return ok
	},
	"another step": func(e *historypb.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "fermata.model"
	},
}

// buildChanged builds the program in testdata/preflight on a changed package
// workflows, and leaves the tree as it is.
func buildChanged(t *testing.T) (binary string) {
	t.Helper()
	texts := edited(t, edits)
	texts["../workflows/planted.go"] = []byte(planted)
	return buildOver(t, overlay(t, texts), "preflight")
}

// verdicts reads what a build with some change says of the runs, by their session.
func (s *stage) verdicts(t *testing.T, binary, change string) map[string]worker.Verdict {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, s.addr, s.queue)
	cmd.Env = append(os.Environ(), plantedEnv+"="+change)
	out, err := cmd.Output()
	require.NoError(t, err)
	all := map[string]worker.Verdict{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var v worker.Verdict
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		all[v.Session] = v
	}
	return all
}

// A change of the workflow that runs which are parked on a real server can't go on
// with is found before it is deployed, with each run and the event; one that is gated,
// and one that makes no command, passes (HX-91).
func TestPreflightFindsWhatWouldBreak(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	w := s.open(t, s.parkable())
	runs := s.park(t)
	w.Stop()
	binary := buildChanged(t)
	for change, breaks := range breaks {
		t.Run(change, func(t *testing.T) {
			found, broken := s.verdicts(t, binary, change), 0
			require.Len(t, found, len(runs))
			for state, run := range runs {
				v := found[run.Session]
				require.Equal(t, run.ID, v.Run, state)
				at := s.first(t, run, breaks)
				if at == nil {
					require.NoError(t, v.Err(), state)
					continue
				}
				broken++
				require.Equal(t, worker.Incompatible, v.Compatibility, state)
				require.Equal(t, worker.EventRef{ID: at.GetEventId(), Type: at.GetEventType().String(), Time: at.GetEventTime().AsTime()}, *v.Event, "%s: %s", state, v.Reason)
			}
			require.Equal(t, breaks != nil, broken > 0)
		})
	}
}

// first is the first event of a run that is of some kind; nil if none is.
func (s *stage) first(t *testing.T, run *client.Run, is func(*historypb.HistoryEvent) bool) *historypb.HistoryEvent {
	t.Helper()
	for _, e := range s.history(t, run.Session, "") {
		if is != nil && is(e) {
			return e
		}
	}
	return nil
}

// What a preflight looks at is what its options say, and it ends with its context.
func TestWhatAPreflightLooksAt(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	w := s.open(t, s.parkable())
	_, out := s.run(t, "be done", nil)
	require.Equal(t, agent.StatusCompleted, out.Status)
	run := s.begin(t, "ask me", nil)
	s.suspended(t, run)
	w.Stop()
	ctx := t.Context()
	try := func(o *worker.Options, p *worker.PreflightOptions) (sessions []string, err error) {
		for v, err := range worker.Preflight(ctx, s.temporal, o, p) {
			if err != nil {
				return nil, err
			}
			require.NoError(t, v.Err())
			sessions = append(sessions, v.Session)
		}
		return sessions, nil
	}
	closed := func() bool {
		found, err := try(s.parkable(), &worker.PreflightOptions{Closed: 1})
		require.NoError(t, err)
		return len(found) == 2
	}
	require.Eventually(t, closed, patience, 50*time.Millisecond, "the server lists what has closed")
	found, err := try(s.parkable(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{run.Session}, found)
	found, err = try(s.parkable(), &worker.PreflightOptions{Query: "FermataAgent = 'nobody'", Closed: 9})
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = try(s.parkable(), &worker.PreflightOptions{Query: "FermataAgent ="})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	other := s.parkable()
	other.TaskQueue = "other-" + s.queue
	found, err = try(other, &worker.PreflightOptions{AllQueues: true, Query: "WorkflowId = '" + run.Session + "'"})
	require.NoError(t, err)
	require.Equal(t, []string{run.Session}, found)
	lacking := s.parkable()
	lacking.Tools, lacking.Agents = nil, lacking.Agents[1:2]
	for v, err := range worker.Preflight(ctx, s.temporal, lacking, nil) {
		require.NoError(t, err)
		require.Equal(t, worker.MissingParts, v.Compatibility)
		require.Contains(t, v.Reason, "agent tester, tool echo")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ctx = ended
	_, err = try(s.parkable(), nil)
	require.ErrorIs(t, err, context.Canceled)
}

// slowServer answers no listing in time until it has been asked often enough.
type slowServer struct {
	temporal.Client
	late int
}

func (s *slowServer) ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if s.late--; s.late >= 0 {
		return nil, context.DeadlineExceeded
	}
	return s.Client.ListWorkflow(ctx, r)
}

func TestAPreflightAsksASlowServerAgain(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	w := s.open(t, s.parkable())
	s.suspended(t, s.begin(t, "ask me", nil))
	w.Stop()
	n := 0
	for v, err := range worker.Preflight(t.Context(), &slowServer{s.temporal, 2}, s.parkable(), nil) {
		require.NoError(t, err)
		require.NoError(t, v.Err())
		n++
	}
	require.Equal(t, 1, n)
	var last error
	for _, err := range worker.Preflight(t.Context(), &slowServer{s.temporal, 3}, s.parkable(), nil) {
		last = err
	}
	require.ErrorIs(t, last, agent.CodeTimeout)
}
