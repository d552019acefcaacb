package client

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
)

// liveDaemon is a session with a live run; close ends it.
func liveDaemon(t *testing.T, status agent.RunStatus) (f *fake, close func()) {
	at := running
	f = &fake{
		describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
			return execution(t, "desk", "01a1", at, agent.Memo{}, map[string]any{agent.AttrAgent: "watcher"}), nil
		},
		status: func(context.Context) (agent.RunStatus, error) { return status, nil },
		result: func(string) (agent.Outcome, error) {
			return agent.Outcome{Type: "outcome", Run: "01a1", Status: agent.StatusStopped}, nil
		},
	}
	f.history = func(context.Context, string) (*historypb.HistoryEvent, error) {
		f.now(func() { at = completed }) // it ends while somebody waits for that
		return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}, nil
	}
	return f, func() { f.now(func() { at = completed }) }
}

// A daemon that is being stopped is resumed when it has ended: a new run of the same agent begins (HA-94).
func TestADaemonIsResumedAfterItsStop(t *testing.T) {
	f, _ := liveDaemon(t, agent.RunStatus{Reason: agent.ReasonStopping})
	var begun agent.Start
	f.begin = func(s agent.Start) (string, error) { begun = s; return "02b2", nil }
	run, err := New(f, nil).Daemon("desk").Resume(t.Context(), &DaemonResumeOptions{By: "ana"})
	require.NoError(t, err)
	require.Equal(t, "02b2", run.ID)
	require.Equal(t, agent.Start{V: 1, Agent: "watcher", By: "ana", Carry: agent.CarryInherit, After: "01a1"}, begun)

	// Another caller has resumed it meanwhile.
	f.begin = func(agent.Start) (string, error) {
		return "", &serviceerror.WorkflowExecutionAlreadyStarted{RunId: "01a1"}
	}
	run, err = New(f, nil).Daemon("desk").Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "01a1", run.ID)
}

// A held daemon ends while it is resumed: the next run begins (HA-94).
func TestAHeldDaemonEndsWhileItIsResumed(t *testing.T) {
	f, end := liveDaemon(t, agent.RunStatus{Suspension: &agent.Suspension{Holds: []agent.Hold{{ID: "h-1"}}}})
	f.update = func(context.Context, string, agent.Command) (agent.Ack, error) {
		end()
		return agent.Ack{}, errCompleted
	}
	f.begin = func(agent.Start) (string, error) { return "02b2", nil }
	run, err := New(f, nil).Daemon("desk").Resume(t.Context(), &DaemonResumeOptions{By: "ana", Token: "t"})
	require.NoError(t, err)
	require.Equal(t, "02b2", run.ID)
	require.JSONEq(t, `{"by":"ana","run":"01a1","token":"t"}`, onWire(t, f.said[0]))
}

// A resume that another one delays is refused, and waits for no end: the daemon goes on (HA-94).
func TestADaemonIsResumedTwice(t *testing.T) {
	f, _ := liveDaemon(t, agent.RunStatus{Suspension: &agent.Suspension{Holds: []agent.Hold{{ID: "h-1"}}}})
	f.update = func(context.Context, string, agent.Command) (agent.Ack, error) {
		return agent.Ack{}, agent.Errorf(agent.CodeStale, "another resume waits for hooks")
	}
	f.history = func(context.Context, string) (*historypb.HistoryEvent, error) {
		return nil, errors.New("its end is waited for")
	}
	_, err := New(f, nil).Daemon("desk").Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeStale)
}

// Nobody answers for a session that there is not (HA-94).
func TestADaemonThatIsNotThere(t *testing.T) {
	d := New(&fake{update: func(context.Context, string, agent.Command) (agent.Ack, error) {
		return agent.Ack{}, agent.Errorf(agent.CodeNotFound, "no session desk")
	}}, nil).Daemon("desk")
	_, err := d.Snapshot(t.Context())
	require.ErrorIs(t, err, agent.CodeNotFound)
	_, err = d.Stop(t.Context(), "", nil)
	require.ErrorIs(t, err, agent.CodeNotFound)
	_, err = d.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeNotFound)
	require.ErrorIs(t, d.Trigger(t.Context(), "orders.paid", nil, nil), agent.CodeNotFound)
}
