package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// asked is a server that says of which attempt it waits for the end.
type asked struct {
	client.Client
	status    enums.WorkflowExecutionStatus
	activity  string
	attempt   int32
	meanwhile func()
}

func (a *asked) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if a.meanwhile != nil {
		a.meanwhile()
		a.meanwhile = nil
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: a.status},
		PendingActivities:     []*workflowpb.PendingActivityInfo{{ActivityId: a.activity, Attempt: a.attempt}},
	}, nil
}

func fenced(chain, n int64, by string) agent.Fence { return agent.Fence{Chain: chain, N: n, By: by} }

// headOf is version 2 of a session's head, which a run has decided under a fence.
func headOf(f agent.Fence, change func(*store.Head)) store.Head {
	h := store.Head{V: 1, Version: 2, Session: "s", Fence: f, Run: "r", Execution: "e", Status: agent.StatusRunning, Agent: "d-" + f.By, Seq: f.N, Updated: time.Unix(0, 0).UTC()}
	if change != nil {
		change(&h)
	}
	return h
}

// Whose head it is: the fence decides, whenever a write comes, and whatever the writer
// believes the head's version to be.
func TestWhoseHeadItIs(t *testing.T) {
	own := headOf(fenced(5, 3, "own"), nil)
	for name, c := range map[string]struct {
		stored  store.Head
		version int64 // that it has then; 0 if it is refused
		agent   string
	}{
		"by an attempt of the same write":        {own, 2, own.Agent},
		"by an earlier write of the run":         {headOf(fenced(5, 2, "x"), nil), 3, own.Agent},
		"by the late end of an older run":        {headOf(fenced(4, 9, "x"), func(h *store.Head) { h.Run = "old" }), 3, own.Agent},
		"by a younger run":                       {headOf(fenced(6, 1, "x"), func(h *store.Head) { h.Run = "young" }), 0, "d-x"},
		"by the claim of the run after it":       {headOf(fenced(6, 1, "x"), nil), 0, "d-x"},
		"by a later write of the run":            {headOf(fenced(5, 4, "x"), nil), 0, "d-x"},
		"by a task that decided otherwise":       {headOf(fenced(5, 3, "x"), nil), 0, "d-x"},
		"by its own claim":                       {headOf(fenced(5, 1, "x"), nil), 3, own.Agent},
		"by the run that stored the run's end":   {headOf(fenced(6, 2, "x"), func(h *store.Head) { h.Recovered = true }), 0, "d-x"},
		"by nobody, for the session was deleted": {store.Head{}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.OpenDir(t.TempDir(), nil)
			require.NoError(t, err)
			require.NoError(t, s.PutHead(t.Context(), headOf(fenced(3, 1, "first"), func(h *store.Head) { h.Version = 1 })))
			if c.stored.Session == "" {
				require.NoError(t, s.DeleteHead(t.Context(), "s", 1))
			} else {
				require.NoError(t, s.PutHead(t.Context(), c.stored))
			}
			for range 2 { // later it is refused as well
				require.NoError(t, inActivity(t, func(ctx context.Context) error {
					stored, err := (&Activities{Log: store.NewLog(s)}).putHead(ctx, own)
					require.Equal(t, c.version, stored.Version)
					if c.version == 0 {
						require.ErrorIs(t, err, agent.CodeStale)
						return nil
					}
					return err
				}))
				head, _ := s.Head(t.Context(), "s")
				require.Equal(t, c.agent, head.Agent)
			}
		})
	}
}

// An execution that was reset counts anew: what it decides is stored over what the one
// before it had stored, if Temporal waits for it; a late attempt is refused, also if
// it was held back after it was told that it is current.
func TestAResetExecutionGoesOn(t *testing.T) {
	late, own := headOf(fenced(5, 7, "before"), nil), headOf(fenced(5, 3, "own"), func(h *store.Head) { h.Execution = "e2" })
	running := &asked{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, attempt: 1}
	for name, c := range map[string]struct {
		server *asked
		want   agent.Fence
	}{
		"the current attempt":          {running, fenced(8, 3, "own")},
		"another attempt is current":   {&asked{status: running.status, attempt: 2}, fenced(7, 7, "before")},
		"the step is over":             {&asked{status: running.status, activity: "another", attempt: 1}, fenced(7, 7, "before")},
		"the execution was terminated": {&asked{status: terminated, attempt: 1}, fenced(7, 7, "before")},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.OpenDir(t.TempDir(), nil)
			require.NoError(t, err)
			late.Version, late.Fence = 1, fenced(7, 7, "before")
			require.NoError(t, s.PutHead(t.Context(), late))
			d := &Activities{Log: store.NewLog(s), Client: c.server}
			for range 2 { // the answer of the first attempt may be lost
				_ = inActivity(t, func(ctx context.Context) error {
					if c.server.activity == "" {
						c.server.activity = activity.GetInfo(ctx).ActivityID
					}
					stored, err := d.putHead(ctx, own)
					if c.want.By == "own" {
						require.NoError(t, err)
						require.Equal(t, c.want, stored.Fence)
					} else {
						require.ErrorIs(t, err, agent.CodeStale)
					}
					return nil
				})
			}
			h, err := s.Head(t.Context(), "s")
			require.NoError(t, err)
			require.Equal(t, c.want, h.Fence)
		})
	}
	t.Run("held back after it was told", func(t *testing.T) {
		s, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		late.Version = 1
		require.NoError(t, s.PutHead(t.Context(), late))
		server := &asked{status: running.status, attempt: 1}
		server.meanwhile = func() { // it is reset once more, and that one stores
			defer func() { server.status = terminated }()
			next := headOf(fenced(8, 3, "next"), func(h *store.Head) { h.Execution = "e3" })
			require.NoError(t, s.PutHead(t.Context(), next))
		}
		d := &Activities{Log: store.NewLog(s), Client: server}
		require.NoError(t, inActivity(t, func(ctx context.Context) error {
			server.activity = activity.GetInfo(ctx).ActivityID
			_, err := d.putHead(ctx, own)
			require.ErrorIs(t, err, agent.CodeStale)
			return nil
		}))
		h, err := s.Head(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, "next", h.Fence.By)
	})
}
